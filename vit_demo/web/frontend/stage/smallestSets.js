// @ts-check
// The fewest squares whose loss changes the answer, and the fewest that are enough for it, which a search finds.

import { constants } from "../shared/constants.js";
import { put, setText } from "../shared/dom.js";
import { english, translate, translateName } from "../shared/language.js";
import { createTasks } from "../shared/tasks.js";
import { formatProbability, percent } from "./format.js";
import { fitCanvas, paintResult } from "./picture.js";

/**
 * `update(drawing, verb)` shows how far a search is; `request` is the stage's, and `onDrop(patches, before)` rubs out what was
 * found, in place of what the same search had found `before`.
 */
export function createSmallestSets(element, { request, onDrop, redraw }) {
  const find = (selector) => element.querySelector(selector);
  const [fewest, enough] = [".fewest", ".enough"].map(find);
  let whole = /** @type {any} */ (null); // the picture with all its squares
  let wanted = "needed"; // the search that was begun last
  let view = ""; // the result on the stage and what is chosen of it
  let asked = ""; // the view in which it was asked what is enough: what was found is shown in no other
  const tasks = createTasks(() => subjectOf(wanted), redraw);
  const subjectOf = (/** @type {string} */ kind) =>
    whole && { result: whole, fields: { wanted: kind, label: whole.predictions[0].index } };
  const foundOf = (/** @type {string} */ kind) => (whole ? (tasks.of(subjectOf(kind))?.found ?? null) : null);

  /** Whether another answer is to be had. */
  const canChange = () => whole?.predictions[0].scores === "softmax" && whole.predictions.length > 1;

  /** What a search finds; null if it was cancelled, or the picture is another by then. `onFewer(patches)` gets the fewest so far. */
  async function search(/** @type {string} */ kind, onFewer = (/** @type {number[]} */ _patches) => {}) {
    const searched = whole;
    wanted = kind;
    if (!foundOf(kind)) {
      await tasks.start(subjectOf(kind), { found: null, tried: [], fewest: [] }, async ({ put, isCurrent }) => {
        const sent = { kind: "smallest_set", source: searched.source, ...subjectOf(kind).fields };
        const onProgress = (progress, { tried = [], fewest = [] }) => {
          put({ progress, tried, fewest });
          if (fewest.length) onFewer(fewest);
        };
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

  onPress(fewest, async () => {
    let before = /** @type {number[] | null} */ (null);
    const drop = (/** @type {number[] | undefined} */ patches) => {
      const dropped = droppedBy(whole, "needed", { patches });
      if (dropped && String(dropped) !== String(before)) onDrop(dropped, before);
      before = dropped;
    };
    drop((await search("needed", drop))?.patches);
  });
  onPress(enough, async () => {
    asked = view;
    const isFound = (await search("enough"))?.patches;
    if (isFound && asked && canChange()) await search("needed");
    redraw();
  });

  function update(drawing, verb) {
    if (!drawing) {
      whole = null;
      put(fewest, { hidden: true });
      return;
    }
    const { result, whole: next, choices } = drawing;
    const [first] = next.predictions;
    whole = first ? next : null;
    view = JSON.stringify([result.run, result.dropped, choices.method, choices.label, choices.against]);
    if (asked !== view) asked = "";
    const task = whole && tasks.of(subjectOf(wanted));
    const found = { needed: foundOf("needed"), enough: foundOf("enough") };
    put(fewest, { hidden: verb !== "rub" || !canChange() });
    setText(fewest, task?.error || labelOf(task, english("Find the fewest")));
    if (enough) {
      const isShown = Boolean(asked && found.enough);
      put(enough, { disabled: !whole || (isShown && !task?.running) });
      setText(enough, labelOf(task, english("Show what is enough")));
      setText(enough.nextElementSibling, task?.error ?? "");
      for (const [i, kind] of ["enough", "needed"].entries()) {
        drawFound(find(".little").children[i], next, kind, isShown ? found[kind] : null);
      }
    }
  }

  /** What the search for the fewest squares found, or has found so far, with all that is rubbed out then; null without one. */
  function found() {
    const task = whole && tasks.of(subjectOf("needed"));
    const needed = task?.running ? { patches: task.fewest, isSoFar: true } : task?.found;
    return needed && { ...needed, dropped: droppedBy(whole, "needed", needed) };
  }

  /** The squares that a search for the fewest has just tried to do without, at most a few sets a second. */
  function tried() {
    const task = whole && tasks.of(subjectOf("needed"));
    return task?.running ? task.tried : [];
  }

  return { update, found, tried };
}

/** Shows what a search found as a small picture of its own, with what the network says to it; nothing for null. */
function drawFound(/** @type {any} */ figure, whole, kind, found) {
  const patches = droppedBy(whole, kind, found);
  put(figure, { hidden: !patches });
  if (!patches) return;
  const [canvas, caption] = [figure.querySelector("canvas"), figure.querySelector("figcaption")];
  paintResult(canvas, fitCanvas(canvas, whole.size), whole, { dropped: new Set(patches) });
  setText(caption, kind === "enough" ? enoughWords(whole, found) : neededWords(whole, found));
  put(canvas, { ariaLabel: caption.textContent });
}

/** The patches that are rubbed out to show what a search found: the set, or all others of a set that is enough. */
function droppedBy(result, kind, found) {
  if (!found?.patches) return null;
  const isOut = (patch) => found.patches.includes(patch) === (kind === "needed");
  return [...result.tokenOf.keys()].filter((patch) => result.tokenOf[patch] < 0 || isOut(patch));
}

/** What a button of a search says: what it begins, or how far it is. */
export function labelOf(task, idle) {
  if (!task?.running) return idle;
  return task.progress === null
    ? english("Cancel")
    : translate("Cancel ({share})", { share: percent(100 * task.progress) });
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

/** How few squares the answer cannot do without, and what leads then, however surely. */
const neededWords = ({ predictions: [{ scores }] }, { patches, prediction, predicted_probability: probability }) =>
  translate(
    "Without 1 square *{label}* leads: {probability}.|Without {count} squares *{label}* leads: {probability}.",
    { count: patches.length, label: translateName(prediction), probability: formatProbability(probability, scores) },
  );
