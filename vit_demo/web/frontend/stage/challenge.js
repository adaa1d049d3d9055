// @ts-check
// The challenge below the picture: rub out squares until the network says something else, and the fewest that a search finds.

import { constants } from "../shared/constants.js";
import { setText } from "../shared/dom.js";
import { english, translate, translateName } from "../shared/language.js";
import { createTasks } from "../shared/tasks.js";
import { formatProbability, isUnsure, percent } from "./format.js";
import { fitCanvas, paintResult } from "./picture.js";

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
  let view = ""; // the result on the stage and what is chosen of it
  let asked = ""; // the view in which it was asked what is enough: what was found is shown in no other
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

  undo.addEventListener("click", () => onDrop(null));
  onPress(fewest, async () => {
    const patches = droppedBy(whole, "needed", await search("needed"));
    if (patches) onDrop(patches);
  });
  onPress(enough, async () => {
    asked = view;
    const isFound = (await search("enough"))?.patches;
    if (isFound && asked && !fewest.hidden) await search("needed");
    redraw();
  });

  function update({ result, whole: next, choices, chosenMethod, tokens }) {
    const [first] = next.predictions;
    whole = first ? next : null;
    view = JSON.stringify([result.run, result.dropped, choices.method, choices.label, choices.against]);
    if (asked !== view) asked = "";
    const task = whole && tasks.of(subjectOf(wanted));
    const count = result.dropped.length - next.dropped.length;
    undo.hidden = !choices.dropped?.length;
    fewest.hidden = first?.scores !== "softmax" || next.predictions.length < 2;
    setText(fewest, labelOf(task, english("Show me which")));
    const found = { needed: foundOf("needed"), enough: foundOf("enough") };
    const isMap = !tokens && !choices.plain;
    const looking = isMap && (chosenMethod.uses.includes("patch") ? LOOK : READ);
    setText(words, task?.error || wordsOf(result, next, count, found, choices.dropping ? INVITATION : looking || ""));
    if (enough) {
      const isShown = Boolean(asked && found.enough);
      enough.disabled = !whole || (isShown && !task?.running);
      setText(enough, labelOf(task, english("Show what is enough")));
      setText(enough.nextElementSibling, task?.error ?? "");
      for (const [i, kind] of ["enough", "needed"].entries()) {
        drawFound(find(".little").children[i], next, kind, isShown ? found[kind] : null);
      }
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

/** What a click does, in words, before the first square is rubbed out. */
const INVITATION = english("Rub out squares. Can you make it say something else?");
const LOOK = english("Choose a square: what does it look at?");
const READ = english("Choose a square to read its value.");

/** Shows what a search found as a small picture of its own, with what the network says to it; nothing for null. */
function drawFound(/** @type {any} */ figure, whole, kind, found) {
  const patches = droppedBy(whole, kind, found);
  figure.hidden = !patches;
  if (!patches) return;
  const [canvas, caption] = [figure.querySelector("canvas"), figure.querySelector("figcaption")];
  paintResult(canvas, fitCanvas(canvas, whole.size), whole, { dropped: new Set(patches) });
  setText(caption, kind === "enough" ? enoughWords(whole, found) : neededWords(whole, found));
  canvas.ariaLabel = caption.textContent;
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

function wordsOf(result, whole, count, found, invitation) {
  const [first, before] = [result.predictions[0], whole.predictions[0]];
  if (!before) return translate("Rub out squares: what changes?");
  const { needed } = found;
  if (needed && !needed.patches && !count) {
    return translate("Whatever is rubbed out, it says {name} down to its last square.", { name: before.label });
  }
  if (count <= 0) return invitation;
  const values = { count, name: first.label, before: before.label };
  if (needed?.patches && String(droppedBy(whole, "needed", needed)) === String(result.dropped)) {
    const fewest = { ...values, name: translateName(needed.prediction ?? first.name) };
    return needed.is_minimal
      ? translate("The fewest found, 1: now it says *{name}*.|The fewest found, {count}: now it says *{name}*.", fewest)
      : translate("Found 1: now it says *{name}*.|Found {count}, fewer may do: now it says *{name}*.", fewest);
  }
  const isSame = first.index === before.index;
  if (isSame && count >= MANY) return translate("{count} rubbed out, still {before}. Let it search?", values);
  if (isUnsure(result)) {
    return translate("1 rubbed out: unsure, *{name}*?|{count} rubbed out: unsure, *{name}*?", values);
  }
  return isSame
    ? translate("1 rubbed out: still {before}.|{count} rubbed out: still {before}.", values)
    : translate("1 rubbed out: now it says *{name}*.|{count} rubbed out: now it says *{name}*.", values);
}

/** How few squares are enough, and for what. */
const enoughWords = ({ predictions: [{ label, scores }] }, { patches, probability }) =>
  translate(
    "*1 square* is enough: with all others taken out of the input, not painted over, *{name}* keeps {probability}, at least {share} of what it had.|*{count} squares*, the fewest found, are enough: with all others taken out of the input, not painted over, *{name}* keeps {probability}, at least {share} of what it had.",
    {
      count: patches.length,
      name: label,
      probability: formatProbability(probability, scores),
      share: percent(100 * constants.enoughShare),
    },
  );

/** How few squares the answer cannot do without, and what it is then. */
const neededWords = ({ predictions: [{ scores }] }, { patches, prediction, predicted_probability: probability }) =>
  translate(
    "Without this 1 square it says *{name}*: {probability}.|Without these {count} squares it says *{name}*: {probability}.",
    { count: patches.length, name: translateName(prediction), probability: formatProbability(probability, scores) },
  );
