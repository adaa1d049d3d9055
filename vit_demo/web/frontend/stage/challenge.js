// @ts-check
// The challenge below the picture: rub out squares until the network says something else, and the fewest that a search finds.

import { setText } from "../shared/dom.js";
import { english, translate, translateName } from "../shared/language.js";
import { createTasks } from "../shared/tasks.js";
import { percent } from "./format.js";

const MANY = 10; // squares without another answer, after which the search is offered in words

/**
 * `update(drawing)` shows how far one is; `request` is the stage's, and `onDrop(patches)` rubs out what was found, or
 * brings everything back for null.
 */
export function createChallenge(element, { request, onDrop, redraw }) {
  const find = (selector) => element.querySelector(selector);
  const [words, undo, fewest] = [".challenge p", ".undo", ".fewest"].map(find);
  let current = /** @type {any} */ (null); // {result, fields}: the picture with all its squares
  const tasks = createTasks(() => current, redraw);

  async function search() {
    const subject = current;
    if (tasks.of(subject)?.running) return tasks.cancel(subject);
    const known = tasks.of(subject)?.found;
    if (known?.patches) return onDrop(known.patches);
    await tasks.start(subject, { found: null }, async ({ put, isCurrent, onProgress }) => {
      const sent = { kind: "smallest_set", source: subject.result.source, wanted: "needed", ...subject.fields };
      const reply = await request(sent, { isCurrent, onProgress });
      if (reply?.result) put({ found: reply.result });
      return reply;
    });
    const { patches } = tasks.of(subject)?.found ?? {};
    if (patches && current === subject) onDrop([...patches].sort((one, other) => one - other));
  }

  undo.addEventListener("click", () => onDrop(null));
  fewest.addEventListener("click", search);

  function update({ result, whole, choices }) {
    const [first] = whole.predictions;
    if (current?.result !== whole) current = first ? { result: whole, fields: { label: first.index } } : null;
    const task = current && tasks.of(current);
    const count = result.dropped.length - whole.dropped.length;
    const chosen = (choices.dropped ?? []).length;
    undo.hidden = !chosen;
    fewest.hidden = first?.scores !== "softmax" || whole.predictions.length < 2;
    setText(fewest, labelOf(task));
    setText(words, task?.error || wordsOf(result, whole, count, task?.found));
    find(".challenge").classList.toggle(
      "won",
      Boolean(first && count > 0 && result.predictions[0].index !== first.index),
    );
    find(".challenge").classList.toggle("offers", count >= MANY && result.predictions[0]?.index === first?.index);
  }

  /** Nothing can be rubbed out without a picture. */
  function clear() {
    current = null;
    setText(words, "");
    undo.hidden = fewest.hidden = true;
  }

  return { update, clear };
}

function labelOf(task) {
  if (!task?.running) return english("Show me the fewest");
  return task.progress === null
    ? english("Searching … Cancel")
    : translate("Searching, {share} … Cancel", { share: percent(100 * task.progress) });
}

function wordsOf({ predictions, dropped }, whole, count, found) {
  const [first, before] = [predictions[0], whole.predictions[0]];
  if (!before) return translate("Rub out squares: what changes?");
  if (found && !found.patches) {
    return translate("Whatever is rubbed out, it says {name} down to its last square.", { name: before.label });
  }
  if (count <= 0) return english("Rub out squares. Can you make it say something else?");
  const values = { count, name: first.label, before: before.label };
  if (found?.patches && String([...found.patches].sort((one, other) => one - other)) === String(dropped)) {
    const fewest = { ...values, name: translateName(found.prediction ?? first.name) };
    return found.is_minimal
      ? translate(
          "1 is enough, the fewest found: now it says *{name}*.|{count} are enough, the fewest found: now it says *{name}*.",
          fewest,
        )
      : translate("1 is enough: now it says *{name}*.|{count} are enough, fewer may do: now it says *{name}*.", fewest);
  }
  if (first.index !== before.index) {
    return translate("1 rubbed out: now it says *{name}*.|{count} rubbed out: now it says *{name}*.", values);
  }
  return count < MANY
    ? translate("1 rubbed out: still {before}.|{count} rubbed out: still {before}.", values)
    : translate("{count} rubbed out, still {before}. Let it search?", values);
}
