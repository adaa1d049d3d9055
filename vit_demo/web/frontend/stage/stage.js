// The state of a stage, what a visitor does to it, and the frame that follows from it.

import { setProgress, setText } from "../shared/dom.js";
import { middlePatch, neighbour } from "../shared/geometry.js";
import { english, translate } from "../shared/language.js";
import { modelInput, PUSH, pageState, REPLACE } from "../shared/pageState.js";
import { firstChoices, isStep, viewIn, viewOf } from "./choices.js";
import { placeOf, targetOf } from "./format.js";
import { classMethod } from "./methods.js";
import { loadTrace, mapFields, servedMap } from "./onDemand.js";
import { fitCanvas, paintResult } from "./pictureCanvas.js";
import { FIRST_SECTION } from "./sections.js";

/** The state of a stage in its element. Its `parts` are made in main.js, because they call back with the state. */
export function createState(element, methods) {
  const find = (selector) => element.querySelector(selector);
  return {
    find,
    host: find(".stage"),
    canvas: find(".picture"),
    picture: find(".view"),
    methods,
    choices: firstChoices(),
    result: null,
    latestPayload: null,
    openedPayload: null, // that of the result with all its patches
    shape: { numBlocks: 1, numHeads: 4 }, // of the last result, or a first guess
    scene: null, // what the picture shows: {result, method, view, map}
    frame: 0, // the next one, if it is scheduled
    isNewBlock: false, // whether the block was chosen since the last frame
    isErasing: true, // whether the brush drops patches or restores them
    parts: null, // {replies, dropping, controls, caption, views, sections}
  };
}

/** Changes some choices and draws them with the next frame, however many changes come before it. */
export function change(stage, part) {
  const { choices } = stage;
  stage.isNewBlock ||= part.block !== undefined && part.block !== choices.block;
  const how = isStep(part, choices) ? PUSH : REPLACE;
  Object.assign(choices, part);
  publishView(part, how);
  if ("pinned" in part) publishInput(stage);
  if (!stage.frame) stage.frame = requestAnimationFrame(() => render(stage));
}

/** Tells the page's state what the visitor chose. */
export function publishView(part, how) {
  if (pageState.get()) pageState.changeView(viewIn(part), how);
}

/** Shows the pad which digit the model saw, and the small photo which part of which photo. */
export function publishInput({ result, choices: { pinned } }) {
  const { pixelated, image, photo, rows, columns } = result ?? {};
  modelInput.publish({ digit: pixelated ? image : null, photo: photo ? { ...photo, rows, columns, pinned } : null });
}

/** Shows what is chosen; while the server still computes its map, the scene stays as it was. */
export function render(stage) {
  const { result, choices, methods, shape, parts } = stage;
  stage.frame = 0;
  parts.sections.open(choices.section);
  parts.controls.update(choices, shape, result);
  if (!result) {
    for (const each of parts.views) each.drawEmpty?.({ choices });
    return;
  }
  const chosenMethod = methods[choices.method];
  const { entry, trace } = updateScene(stage);
  const { method, view, map } = stage.scene;
  const { opacity, smooth, hovered } = choices;
  const size = fitCanvas(stage.canvas, stage.picture, result.size);
  const queried = method.uses.includes("patch") ? view.query : null;
  const dropped = parts.dropping.dropped();
  const style = method.style(result);
  paintResult(stage.canvas, size, result, { map, style, opacity, smooth, queried, hovered, dropped });
  updateButtons(stage, entry);
  const pinnedView = viewOf(result, chosenMethod, { ...choices, hovered: null });
  const drawing = { result, method, view, map, trace, choices, chosenMethod, pinnedView };
  parts.caption.update(drawing, entry, parts.dropping.error());
  for (const each of parts.views) if (each.sections.includes(choices.section)) each.draw?.(drawing);
}

/** Makes the scene that of the choices, once its map is there; returns the entries of what the server is asked for. */
function updateScene(stage) {
  const { result, choices, methods, parts } = stage;
  const method = methods[choices.method];
  const view = viewOf(result, method, choices);
  const isPointed = stage.picture.matches(":hover");
  const isNeeded = usesPatch(stage) && (isPointed || !view.isComplete);
  const trace = loadTrace(parts.replies, result, choices.block, { isNeeded, isNewBlock: stage.isNewBlock });
  stage.isNewBlock = false;
  const entry = method.map ? null : servedMap(parts.replies, result, mapFields(methods, result, choices));
  if (!entry) parts.replies.release("map");
  const map = entry ? entry.value : method.map(result, view);
  if (map || stage.scene?.result !== result) stage.scene = { result, method, view, map };
  return { entry, trace };
}

function updateButtons(stage, entry) {
  const { find, choices, parts } = stage;
  setProgress(find(".view .progress"), Boolean(entry?.isSlow && entry.isLoading), entry?.progress);
  find(".drop").setAttribute("aria-pressed", String(choices.dropping));
  find(".smooth").setAttribute("aria-pressed", String(choices.smooth));
  find(".follow").setAttribute("aria-pressed", String(choices.follows && !choices.dropping));
  stage.host.classList.toggle("following", isFollowing(stage));
  find(".follow").disabled = !usesPatch(stage) || choices.dropping;
  find(".restore").disabled = !parts.dropping.dropped().size;
  stage.host.classList.toggle("dropping", choices.dropping);
}

const usesPatch = ({ methods, choices }) => methods[choices.method].uses.includes("patch");
const isFollowing = (stage) => stage.choices.follows && usesPatch(stage) && !stage.choices.dropping;

export function pickHead(stage, block, head) {
  change(stage, { method: "attention", direction: "from", pinned: null, block, head });
}

/** Shows the evidence for a class; choosing the shown class again goes back to the predicted one. */
export function pickClass(stage, index) {
  const { methods, choices, result } = stage;
  retry(stage);
  const { classSpecific } = methods[choices.method];
  const shown = targetOf(result, choices.label).index;
  const isShown = choices.section === FIRST_SECTION && classSpecific && shown === index;
  const label = isShown ? null : index;
  // A class cannot be compared with itself: the two change places.
  const against = targetOf(result, label).index === choices.against ? shown : choices.against;
  const method = classSpecific ? choices.method : classMethod(methods);
  change(stage, { section: FIRST_SECTION, method, label, against });
}

/** A visitor's choice sends failed requests again, even a choice that changes no control. */
export function retry(stage) {
  stage.parts.replies.retry();
  for (const each of stage.parts.views) each.retry?.();
  change(stage, {});
}

export function clickPatch(stage, patch) {
  const { result, choices } = stage;
  if (!result) return;
  if (choices.dropping) toggleDropped(stage, patch);
  else if (usesPatch(stage)) pin(stage, patch === choices.pinned ? null : patch);
  else change(stage, { hovered: patch });
}

export function pin(stage, patch) {
  change(stage, { pinned: patch });
  if (patch !== null) return;
  const { hasClassToken } = stage.result;
  setText(stage.find(".news"), hasClassToken ? english("Back to class token") : english("Back to all tokens"));
}

function toggleDropped({ find, result, parts: { dropping } }, patch) {
  dropping.toggle(patch);
  const place = placeOf(result, patch);
  const news = dropping.dropped().has(patch)
    ? translate("Patch removed: {place}.", { place })
    : translate("Patch restored: {place}.", { place });
  setText(find(".news"), news);
}

/** What pointer and keys on the picture do, as `listenToPatches` takes it. */
export function patchActions(stage) {
  const { choices } = stage;
  return {
    hover: (patch) => patch !== choices.hovered && change(stage, { hovered: patch }),
    click: (patch) => clickPatch(stage, patch),
    isFollowed: () => isFollowing(stage),
    move(step) {
      const { result, parts } = stage;
      const from = choices.pinned ?? choices.hovered;
      const patch = from === null ? middlePatch(result) : neighbour(from, step, result);
      parts.caption.announceNext();
      if (usesPatch(stage) && !choices.dropping) pin(stage, patch);
      else change(stage, { hovered: patch });
    },
    brush: {
      isOn: () => choices.dropping,
      start(patch) {
        const { dropping } = stage.parts;
        stage.isErasing = !dropping.dropped().has(patch);
        dropping.brush(patch, stage.isErasing);
      },
      over: (patch) => stage.parts.dropping.brush(patch, stage.isErasing),
      end: () => stage.parts.dropping.commit(),
    },
    press: () => choices.dropping && choices.hovered !== null && toggleDropped(stage, choices.hovered),
    leave() {
      choices.hovered = null;
      pin(stage, null);
    },
  };
}
