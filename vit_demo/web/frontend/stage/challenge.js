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
  const [words, undo, fewest, enough] = [".challenge p", ".undo", ".fewest", ".enough"].map(find);
  let whole = /** @type {any} */ (null); // the picture with all its squares
  let wanted = "needed"; // the search that was begun last
  const tasks = createTasks(() => subjectOf(wanted), redraw);
  const subjectOf = (/** @type {string} */ kind) =>
    whole && { result: whole, fields: { wanted: kind, label: whole.predictions[0].index } };
  const foundOf = (/** @type {string} */ kind) => (whole ? (tasks.of(subjectOf(kind))?.found ?? null) : null);

  async function search(/** @type {string} */ kind) {
    const searched = whole;
    if (tasks.of(subjectOf(wanted))?.running) return tasks.cancel(subjectOf(wanted));
    wanted = kind;
    if (!foundOf(kind)) {
      await tasks.start(subjectOf(kind), { found: null }, async ({ put, isCurrent, onProgress }) => {
        const sent = { kind: "smallest_set", source: searched.source, ...subjectOf(kind).fields };
        const reply = await request(sent, { isCurrent, onProgress });
        if (reply?.result) put({ found: reply.result });
        return reply;
      });
    }
    const patches = droppedBy(whole, kind, foundOf(kind));
    if (patches && whole === searched) onDrop(patches);
  }

  undo.addEventListener("click", () => onDrop(null));
  fewest.addEventListener("click", () => search("needed"));
  enough?.addEventListener("click", () => search("enough"));

  function update({ result, whole: next, choices }) {
    const [first] = next.predictions;
    whole = first ? next : null;
    const task = whole && tasks.of(subjectOf(wanted));
    const count = result.dropped.length - next.dropped.length;
    undo.hidden = !choices.dropped?.length;
    fewest.hidden = first?.scores !== "softmax" || next.predictions.length < 2;
    setText(fewest, labelOf(task, english("Show me the fewest")));
    const found = { needed: foundOf("needed"), enough: foundOf("enough") };
    const news = task?.error || wordsOf(result, next, count, found, !choices.dropping);
    setText(words, news);
    if (enough) {
      enough.disabled = !whole;
      setText(enough, labelOf(task, english("Keep the fewest that are enough")));
      setText(find(".little"), wanted === "enough" && (task?.error || found.enough) ? news : "");
    }
    const isSame = Boolean(first) && result.predictions[0].index === first.index;
    find(".challenge").classList.toggle("won", count > 0 && Boolean(first) && !isSame);
    find(".challenge").classList.toggle("offers", count >= MANY && isSame);
  }

  /** Nothing can be rubbed out without a picture. */
  function clear() {
    whole = null;
    setText(words, "");
    undo.hidden = fewest.hidden = true;
  }

  return { update, clear };
}

/** The patches that are rubbed out to show what a search found: the set, or all others of a set that is enough. */
function droppedBy(result, kind, found) {
  if (!found?.patches) return null;
  const isOut = (patch) => found.patches.includes(patch) === (kind === "needed");
  return [...result.tokenOf.keys()].filter((patch) => result.tokenOf[patch] < 0 || isOut(patch));
}

function labelOf(task, idle) {
  if (!task?.running) return idle;
  return task.progress === null
    ? english("Searching … Cancel")
    : translate("Searching, {share} … Cancel", { share: percent(100 * task.progress) });
}

function wordsOf({ predictions, dropped }, whole, count, found, isLooking) {
  const [first, before] = [predictions[0], whole.predictions[0]];
  if (!before) return translate("Rub out squares: what changes?");
  const { needed, enough } = found;
  if (needed && !needed.patches && !count) {
    return translate("Whatever is rubbed out, it says {name} down to its last square.", { name: before.label });
  }
  if (count <= 0 && isLooking) return english("Choose a square: what does it look at?");
  if (count <= 0) return english("Rub out squares. Can you make it say something else?");
  const values = { count, name: first.label, before: before.label };
  const shows = (kind) => String(droppedBy(whole, kind, found[kind])) === String(dropped);
  if (needed?.patches && shows("needed")) {
    const fewest = { ...values, name: translateName(needed.prediction ?? first.name) };
    return needed.is_minimal
      ? translate("The fewest found, 1: now it says *{name}*.|The fewest found, {count}: now it says *{name}*.", fewest)
      : translate("Found 1: now it says *{name}*.|Found {count}, fewer may do: now it says *{name}*.", fewest);
  }
  if (enough?.patches && shows("enough")) {
    const kept = { count: enough.patches.length, name: before.label };
    return translate(
      "1 square is enough for *{name}*.|The fewest found: {count} squares are enough for *{name}*.",
      kept,
    );
  }
  if (first.index !== before.index) {
    return translate("1 rubbed out: now it says *{name}*.|{count} rubbed out: now it says *{name}*.", values);
  }
  return count < MANY
    ? translate("1 rubbed out: still {before}.|{count} rubbed out: still {before}.", values)
    : translate("{count} rubbed out, still {before}. Let it search?", values);
}
