// @ts-check
// The challenge below the picture: rub out squares until the network says something else, and the fewest that a search finds.

import { constants } from "../shared/constants.js";
import { documentEvents, setText } from "../shared/dom.js";
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
  let shown = /** @type {any} */ (null); // the result on the stage
  let preview = /** @type {any} */ (null); // {result, hidden}: its squares but the fewest that are enough, if those are shown alone
  const tasks = createTasks(() => subjectOf(wanted), redraw);
  const subjectOf = (/** @type {string} */ kind) =>
    whole && { result: whole, fields: { wanted: kind, label: whole.predictions[0].index } };
  const foundOf = (/** @type {string} */ kind) => (whole ? (tasks.of(subjectOf(kind))?.found ?? null) : null);

  /** What a search finds; null if it was cancelled, or the picture is another by then. */
  async function search(/** @type {string} */ kind) {
    const searched = whole;
    wanted = kind;
    if (!foundOf(kind)) {
      await tasks.start(subjectOf(kind), { found: null }, async ({ put, isCurrent, onProgress }) => {
        const sent = { kind: "smallest_set", source: searched.source, ...subjectOf(kind).fields };
        const reply = await request(sent, { isCurrent, onProgress });
        if (reply?.result) put({ found: reply.result });
        return reply;
      });
    }
    return whole === searched ? foundOf(kind) : null;
  }

  /** A press of a button: it ends the search that runs, or begins. */
  const onPress = (button, begin) =>
    button?.addEventListener("click", () =>
      tasks.of(subjectOf(wanted))?.running ? tasks.cancel(subjectOf(wanted)) : begin(),
    );

  /** Hides squares in the pictures alone: answer, test and files stay those of the whole picture. */
  function hide(/** @type {Set<number> | null} */ hidden) {
    preview = hidden && { result: shown, hidden };
    redraw();
  }

  undo.addEventListener("click", () => (preview ? hide(null) : onDrop(null)));
  onPress(fewest, async () => {
    const patches = droppedBy(whole, "needed", await search("needed"));
    if (patches) onDrop(patches);
  });
  onPress(enough, async () => {
    if (preview) return hide(null);
    const patches = droppedBy(whole, "enough", await search("enough"));
    if (!patches) return;
    hide(new Set(patches));
    if (!fewest.hidden) search("needed");
  });
  documentEvents(element)("keydown", ({ key }) => key === "Escape" && preview && hide(null));

  function update({ result, whole: next, choices }) {
    const [first] = next.predictions;
    whole = first ? next : null;
    shown = result;
    if (preview?.result !== result) preview = null;
    const task = whole && tasks.of(subjectOf(wanted));
    const count = result.dropped.length - next.dropped.length;
    undo.hidden = !choices.dropped?.length && !preview;
    fewest.hidden = first?.scores !== "softmax" || next.predictions.length < 2;
    setText(fewest, labelOf(task, english("Show me the fewest")));
    const found = { needed: foundOf("needed"), enough: foundOf("enough") };
    const news = task?.error || wordsOf(result, next, count, found, !choices.dropping);
    setText(words, preview ? translate("Shown: the squares that are enough.") : news);
    if (enough) {
      enough.disabled = !whole;
      const idle = preview ? english("Show the whole picture again") : english("Show the fewest that are enough");
      setText(enough, labelOf(task, idle));
      setText(find(".little"), task?.error || littleOf(next, found));
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

  return { update, clear, hidden: (result) => (preview?.result === result ? preview.hidden : null) };
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
  const { needed } = found;
  if (needed && !needed.patches && !count) {
    return translate("Whatever is rubbed out, it says {name} down to its last square.", { name: before.label });
  }
  if (count <= 0 && isLooking) return english("Choose a square: what does it look at?");
  if (count <= 0) return english("Rub out squares. Can you make it say something else?");
  const values = { count, name: first.label, before: before.label };
  if (needed?.patches && String(droppedBy(whole, "needed", needed)) === String(dropped)) {
    const fewest = { ...values, name: translateName(needed.prediction ?? first.name) };
    return needed.is_minimal
      ? translate("The fewest found, 1: now it says *{name}*.|The fewest found, {count}: now it says *{name}*.", fewest)
      : translate("Found 1: now it says *{name}*.|Found {count}, fewer may do: now it says *{name}*.", fewest);
  }
  if (first.index !== before.index) {
    return translate("1 rubbed out: now it says *{name}*.|{count} rubbed out: now it says *{name}*.", values);
  }
  return count < MANY
    ? translate("1 rubbed out: still {before}.|{count} rubbed out: still {before}.", values)
    : translate("{count} rubbed out, still {before}. Let it search?", values);
}

/** How few squares are enough, for what, and how few the answer cannot do without. */
function littleOf({ predictions: [first] }, { needed, enough }) {
  if (!enough?.patches) return "";
  const values = { count: enough.patches.length, name: first.label, share: percent(100 * constants.enoughShare) };
  const words = translate(
    "*1 square* is enough: with all others taken out of the input, not painted over, *{name}* keeps at least {share} of its probability.|*{count} squares*, the fewest found, are enough: with all others taken out of the input, not painted over, *{name}* keeps at least {share} of its probability.",
    values,
  );
  if (!needed?.patches) return words;
  const others = { count: needed.patches.length, name: translateName(needed.prediction) };
  return `${words} ${translate("Without this 1 square it says *{name}*.|Without these {count} squares it says *{name}*.", others)}`;
}
