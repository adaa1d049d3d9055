// What a stage keeps, what a visitor does to it, and the frame that follows from that and the view of the page's state.

import { isNew, setProgress, setText } from "../shared/dom.js";
import { middlePatch, neighbour } from "../shared/geometry.js";
import { english, translate } from "../shared/language.js";
import { modelInput, PUSH, pageState, REPLACE } from "../shared/pageState.js";
import { FIRST_GUESS, firstPointing, isStep, validFor, viewOf } from "./choices.js";
import { placeOf, targetOf } from "./format.js";
import { classMethod } from "./methods.js";
import { loadTrace, mapFields, servedMap } from "./onDemand.js";
import { fitCanvas, paintResult } from "./pictureCanvas.js";
import { FIRST_SECTION } from "./sections.js";

/** What a stage in its element keeps. Its `parts` are made in main.js, because they call back with it. */
export function createState(element, methods) {
  const find = (selector) => element.querySelector(selector);
  return {
    find,
    host: find(".stage"),
    canvas: find(".picture"),
    picture: find(".view"),
    methods,
    pointing: firstPointing(),
    result: null,
    latestPayload: null,
    openedPayload: null, // that of the result with all its patches
    latest: FIRST_GUESS, // the last result, even where there is none now
    scene: null, // what the picture shows: {result, method, view, map}
    frame: 0, // the next one, if it is scheduled
    parts: null, // {replies, dropping, controls, caption, views, sections}
  };
}

/** What is drawn of a result: the page's view and what no link holds, as far as the result has it. */
export const choicesOf = ({ latest, methods, pointing, parts }, result = latest) =>
  validFor(result, { ...pageState.get().view, ...pointing }, methods, parts.sections);

/** Draws with the next frame, however many changes come before it. */
export function redraw(stage) {
  if (!stage.frame) stage.frame = requestAnimationFrame(() => render(stage));
}

/** Changes some choices: the page's view, and what no link holds. */
export function change(stage, part) {
  const { hovered, dropping, follows, ...view } = { ...stage.pointing, ...part };
  stage.pointing = { hovered, dropping, follows };
  pageState.changeView(view, isStep(view, pageState.get().view) ? PUSH : REPLACE);
  redraw(stage);
}

/** Shows the pad which digit the model saw, and the small photo which part of which photo, where that is new. */
function publishInput(stage, { pinned }) {
  const { run, pixelated, image, photo, rows, columns } = stage.result ?? {};
  if (!isNew(stage.picture, [run, pinned])) return;
  modelInput.publish({ digit: pixelated ? image : null, photo: photo ? { ...photo, rows, columns, pinned } : null });
}

/** Shows what is chosen; while the server still computes its map, the scene stays as it was. */
export function render(stage) {
  const { result, latest, methods, parts } = stage;
  const choices = choicesOf(stage);
  stage.frame = 0;
  parts.sections.open(choices.section);
  parts.controls.update(choices, latest, result);
  publishInput(stage, choices);
  if (!result) {
    for (const each of parts.views) each.drawEmpty?.({ choices });
    return;
  }
  parts.dropping.follow();
  const chosenMethod = methods[choices.method];
  const { entry, trace } = updateScene(stage, choices);
  const { method, view, map } = stage.scene;
  const { opacity, smooth, hovered } = choices;
  const size = fitCanvas(stage.canvas, stage.picture, result.size);
  const queried = method.uses.includes("patch") ? view.query : null;
  const dropped = parts.dropping.dropped();
  const style = method.style(result);
  paintResult(stage.canvas, size, result, { map, style, opacity, smooth, queried, hovered, dropped });
  updateButtons(stage, choices, entry);
  const pinnedView = viewOf(result, chosenMethod, { ...choices, hovered: null });
  const drawing = { result, method, view, map, trace, choices, chosenMethod, pinnedView };
  parts.caption.update(drawing, entry, parts.dropping.error());
  for (const each of parts.views) if (each.sections.includes(choices.section)) each.draw?.(drawing);
}

/** Makes the scene that of the choices, once its map is there; returns the entries of what the server is asked for. */
function updateScene(stage, choices) {
  const { result, methods, parts, scene } = stage;
  const method = methods[choices.method];
  const view = viewOf(result, method, choices);
  const isPointed = stage.picture.matches(":hover");
  const isNeeded = method.uses.includes("patch") && (isPointed || !view.isComplete);
  const isNewBlock = scene?.result === result && scene.view.block !== view.block;
  const trace = loadTrace(parts.replies, result, choices.block, { isNeeded, isNewBlock });
  const entry = method.map ? null : servedMap(parts.replies, result, mapFields(methods, result, choices));
  if (!entry) parts.replies.release("map");
  const map = entry ? entry.value : method.map(result, view);
  if (map || scene?.result !== result) stage.scene = { result, method, view, map };
  return { entry, trace };
}

function updateButtons(stage, choices, entry) {
  const { find, parts } = stage;
  setProgress(find(".view .progress"), Boolean(entry?.isSlow && entry.isLoading), entry?.progress);
  find(".drop").setAttribute("aria-pressed", String(choices.dropping));
  find(".smooth").setAttribute("aria-pressed", String(choices.smooth));
  find(".follow").setAttribute("aria-pressed", String(choices.follows && !choices.dropping));
  stage.host.classList.toggle("following", isFollowing(stage));
  find(".follow").disabled = !usesPatch(stage) || choices.dropping;
  find(".restore").disabled = !parts.dropping.dropped().size;
  stage.host.classList.toggle("dropping", choices.dropping);
}

const usesPatch = (stage) => stage.methods[choicesOf(stage).method].uses.includes("patch");
const isFollowing = (stage) => stage.pointing.follows && usesPatch(stage) && !stage.pointing.dropping;

export function pickHead(stage, block, head) {
  change(stage, { method: "attention", direction: "from", pinned: null, block, head });
}

/** Shows the evidence for a class; choosing the shown class again goes back to the predicted one. */
export function pickClass(stage, index) {
  const { methods, result } = stage;
  const choices = choicesOf(stage);
  retry(stage);
  const { classSpecific } = methods[choices.method];
  const shown = targetOf(result, choices.label).index;
  const isShown = choices.section === FIRST_SECTION && classSpecific && shown === index;
  const label = isShown ? null : index;
  // A class cannot be compared with itself: the two change places.
  const against = targetOf(result, label).index === choices.against ? shown : choices.against;
  const method = classSpecific ? choices.method : classMethod(methods);
  change(stage, { section: FIRST_SECTION, method, label, against });
  // On a phone the list of classes slides over the picture.
  const [shownPicture, below] = [".seen", ".look .controls"].map((part) => stage.find(part).getBoundingClientRect());
  if (innerWidth <= 600 && below.top < shownPicture.height) scrollBy({ top: below.top - shownPicture.height - 8 });
}

/** A visitor's choice sends failed requests again, even a choice that changes no control. */
export function retry(stage) {
  stage.parts.replies.retry();
  for (const each of stage.parts.views) each.retry?.();
  redraw(stage);
}

export function clickPatch(stage, patch) {
  if (!stage.result) return;
  if (stage.pointing.dropping) toggleDropped(stage, patch);
  else if (usesPatch(stage)) pin(stage, patch === choicesOf(stage).pinned ? null : patch);
  else change(stage, { hovered: patch });
}

/** The class that the map is about, which stays that while patches are removed, even if it is no longer predicted. */
export function keptClass(stage) {
  const { method, label } = choicesOf(stage);
  return stage.methods[method].classSpecific ? { label: targetOf(stage.result, label).index } : {};
}

/** Opens the features at the patch and the block that are shown. */
export function showSimilar(stage) {
  const { pinned, block } = choicesOf(stage);
  const features = { ...pageState.get().view.features, mode: "similarity", block };
  change(stage, {
    section: "features",
    features: pinned === null ? features : { ...features, pinned: { picture: 0, patch: pinned } },
  });
  scrollTo({ top: 0 }); // where the button was is another card now
}

export function pin(stage, patch) {
  change(stage, { pinned: patch });
  if (patch !== null) return;
  const { hasClassToken } = stage.result;
  setText(stage.find(".news"), hasClassToken ? english("Back to class token") : english("Back to all tokens"));
}

function toggleDropped({ find, result, parts: { dropping } }, patch) {
  dropping.brush(patch);
  dropping.lift();
  const place = placeOf(result, patch);
  const news = dropping.dropped().has(patch)
    ? translate("Patch removed: {place}.", { place })
    : translate("Patch restored: {place}.", { place });
  setText(find(".news"), news);
}

/** What pointer and keys on the picture do, as `listenToPatches` takes it. */
export function patchActions(stage) {
  return {
    hover: (patch) => patch !== stage.pointing.hovered && change(stage, { hovered: patch }),
    click: (patch) => clickPatch(stage, patch),
    isFollowed: () => isFollowing(stage),
    move(step) {
      const { result, parts } = stage;
      const { pinned, hovered, dropping } = choicesOf(stage);
      const from = pinned ?? hovered;
      const patch = from === null ? middlePatch(result) : neighbour(from, step, result);
      parts.caption.announceNext();
      if (usesPatch(stage) && !dropping) pin(stage, patch);
      else change(stage, { hovered: patch });
    },
    brush: {
      isOn: () => stage.pointing.dropping,
      over: (patch) => stage.parts.dropping.brush(patch),
      lift: () => stage.parts.dropping.lift(),
    },
    press() {
      const { dropping, hovered } = choicesOf(stage);
      if (dropping && hovered !== null) toggleDropped(stage, hovered);
    },
    leave() {
      change(stage, { hovered: null });
      pin(stage, null);
    },
  };
}
