// @ts-check
// What a stage keeps, and what a visitor does to it.

import { sketch } from "../pad/sketch.js";
import { camera } from "../shared/camera.js";
import { setText } from "../shared/dom.js";
import { patchAt } from "../shared/geometry.js";
import { english, translate } from "../shared/language.js";
import { PUSH, pageState, photoAct, REPLACE } from "../shared/pageState.js";
import { FIRST_GUESS, firstPointing, isStep, validFor } from "./choices.js";
import { placeOf, targetOf } from "./format.js";
import { isGuessing, markGuess } from "./guess.js";
import { classMethod } from "./methods.js";
import { createMoments } from "./moments.js";
import { createMotion, isStill } from "./motion.js";
import { createScales } from "./scales.js";
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
    result: /** @type {any} */ (null),
    latestPayload: null,
    openedPayload: null, // that of the result with all its patches
    latest: FIRST_GUESS, // the last result, even where there is none now
    scene: /** @type {any} */ (null), // what the picture shows: {result, method, view, map}
    scales: createScales(),
    moments: createMoments(),
    motion: createMotion(),
    live: /** @type {any} */ (null), // what the network says while one draws, rubs out or films; no other part hears of it
    film: /** @type {any} */ (null), // while it is in the picture's place
    guess: /** @type {any} */ (null), // the square that the answer may need most: {result, patch}
    turns: { of: /** @type {any} */ (null), was: false, is: false }, // whether another answer led before the last act, and whether one leads now
    isNewDrawing: false, // whether nothing on the stage is about the drawing yet
    isInvited: false, // whether the page has drawn the picture by itself
    isFilmed: false, // whether the last frame was one of the film
    frame: 0, // the next one, if it is scheduled
    isOld: true, // whether more than what moves on the picture is another by then
    render: () => {}, // shows it; see render.js
    paint: () => /** @type {any} */ (null), // paints what moves on the picture of the last one; returns what is shown, if it is in sight
    parts: /** @type {any} */ (null), // {replies, dropping, drawer, caption, smallestSets, views, sections}
  };
}

/** What is drawn of a result: the page's view and what no link holds, as far as the result has it. */
export const choicesOf = ({ latest, methods, pointing, parts }, result = latest) =>
  validFor(result, { ...pageState.get().view, ...pointing }, methods, parts.sections);

/** Draws with the next frame, however many changes come before it. */
export function redraw(stage) {
  stage.isOld = true;
  move(stage);
}

/** Paints the picture again with the next frame: what is said of it stays. */
export function move(stage) {
  stage.frame ||= requestAnimationFrame(() => {
    const { isOld } = stage;
    Object.assign(stage, { frame: 0, isOld: false });
    if (isOld) stage.render();
    else if (!stage.paint()?.moves) redraw(stage); // once it rests, all is written
  });
}

/** Changes some choices: the page's view, and what no link holds. */
export function change(stage, part) {
  const { hovered, verb = stage.pointing.verb, ...view } = { ...stage.pointing, ...part };
  stage.pointing = { hovered, verb };
  pageState.changeView(view, isStep(view, pageState.get().view) ? PUSH : REPLACE);
  redraw(stage);
}

/** Opens Teach, where the picture is drawn on beside the classes: it glides there, and the rest of the page fades. */
export function glideToTeach(stage) {
  const go = () => {
    change(stage, { section: "teach" });
    stage.render();
    scrollTo(0, 0);
  };
  if (document.startViewTransition && !isStill()) document.startViewTransition(go);
  else go();
}

/** What one does with the picture: a square that is kept to look from is looked from. */
export const verbOf = (stage, choices = choicesOf(stage)) => (choices.pinned === null ? stage.pointing.verb : "look");

/** The patch of the paper that lies at a place of the page; null beside them all. */
export function patchOnPaper(stage, { clientX, clientY }) {
  const result = seenOf(stage);
  if (!result?.box || stage.isNewDrawing) return null;
  const { left, top, width, height } = stage.canvas.getBoundingClientRect();
  const { box } = result;
  const place = { left: left + box.left * width, top: top + box.top * height };
  return patchAt(clientX, clientY, { ...place, width: box.side * width, height: box.side * height }, result);
}

/** Whether the picture is the paper, on which one draws. */
export const isPaper = (stage) =>
  sketch.isOpen() && pageState.get().task === "digits" && stage.host.dataset.ready !== "loading";

/** The result that is seen: while one draws its newest answer, or an earlier one that a visitor leads back to. */
export function seenOf(stage) {
  if (sketch.isWritten() && !stage.live) return null; // the page has just begun to draw
  return stage.moments.scrubbed()?.result ?? stage.live ?? stage.result;
}

/** Shows what a word below the picture names: "plain", "attention" or "class". */
export function showWord(stage, word) {
  retry(stage);
  const { methods } = stage;
  if (word === "plain") return change(stage, { section: FIRST_SECTION, plain: true });
  const isOfClass = word === "class";
  const method = isOfClass ? classMethod(methods) : "attention";
  const keepsPlace = isOfClass && methods[choicesOf(stage).method].classSpecific;
  const place = keepsPlace ? {} : { block: null, head: -1, direction: "from" };
  change(stage, { section: FIRST_SECTION, plain: false, method, pinned: null, ...place });
}

/** Chooses what one does with the picture: "draw" on it, "rub" squares out, "look" from one. */
export function chooseMode(stage, mode) {
  if (mode !== "draw" && camera.isOn()) photoAct.publish("hold");
  const choices = choicesOf(stage);
  stage.film?.close();
  stage.parts.drawing?.putAway();
  stage.guess = null;
  stage.moments.scrub(null);
  if (mode !== "look") return change(stage, { verb: mode, pinned: null, hovered: null });
  const follows =
    choices.section === "features" || (!choices.plain && stage.methods[choices.method].uses.includes("patch"));
  change(stage, { verb: "look", ...(!follows && { plain: false, method: "attention", block: null, head: -1 }) });
}

export function pickBlock(stage, block, head = -1) {
  if (stage.film) return stage.film.toBlock(block);
  const { section } = choicesOf(stage);
  const isTokens = section === "features";
  if (isTokens && head < 0) return change(stage, { features: { ...pageState.get().view.features, block } });
  change(stage, {
    section: isTokens ? FIRST_SECTION : section,
    plain: false,
    method: "attention",
    direction: "from",
    block,
    head,
  });
}

/** Shows the evidence for a class; choosing the shown class again goes back to the predicted one. */
export function pickClass(stage, index) {
  const { methods, result } = stage;
  const choices = choicesOf(stage);
  retry(stage);
  const { classSpecific } = methods[choices.method];
  const shown = targetOf(result, choices.label).index;
  const isShown = choices.section !== "features" && !choices.plain && classSpecific && shown === index;
  const label = isShown ? null : index;
  // A class cannot be compared with itself: the two change places.
  const against = targetOf(result, label).index === choices.against ? shown : choices.against;
  const method = classSpecific ? choices.method : classMethod(methods);
  change(stage, { section: FIRST_SECTION, plain: false, method, label, against });
}

/** A visitor's choice sends failed requests again, even a choice that changes no control. */
export function retry(stage) {
  stage.parts.replies.retry();
  for (const each of stage.parts.views) each.retry?.();
  redraw(stage);
}

function clickPatch(stage, patch) {
  if (!stage.result) return;
  if (isGuessing(stage)) return change(stage, { section: FIRST_SECTION, ...markGuess(stage, patch) });
  const choices = choicesOf(stage);
  const verb = verbOf(stage, choices);
  if (verb === "rub") toggleDropped(stage, patch);
  else if (verb === "draw") change(stage, { hovered: patch });
  else if (choices.section === "features") change(stage, { hovered: patch, ...keptPlace(patch) });
  else if (stage.methods[choices.method].uses.includes("patch")) pin(stage, patch === choices.pinned ? null : patch);
  else change(stage, { hovered: patch });
}

/** The patch of a picture, of which 1 is the second, that the features keep comparing with; the same again leaves it. */
export function keptPlace(patch, picture = 0) {
  const { features } = pageState.get().view;
  const isKept = features.pinned?.picture === picture && features.pinned.patch === patch;
  return { features: { ...features, pinned: isKept ? null : { picture, patch } } };
}

/** The class that the map is about, which stays that while patches are removed, even if it is no longer predicted. */
export function keptClass(stage) {
  const { method, label } = choicesOf(stage);
  return stage.methods[method].classSpecific ? { label: targetOf(stage.result, label).index } : {};
}

function pin(stage, patch) {
  change(stage, { pinned: patch });
  if (patch !== null) return;
  const { hasClassToken } = stage.result;
  setText(stage.find(".spoken"), hasClassToken ? english("Back to class token") : english("Back to all tokens"));
}

function toggleDropped({ find, result, parts: { dropping } }, patch) {
  dropping.brush(patch);
  dropping.lift();
  const place = placeOf(result, patch);
  const news = dropping.dropped().has(patch)
    ? translate("Rubbed out: {place}.", { place })
    : translate("Back again: {place}.", { place });
  setText(find(".spoken"), news);
}

const WORDS = { 1: "plain", 2: "attention", 3: "class" };

/** Presses the button of a key, while the picture has the focus; returns whether there is one. */
function pressShortcut(stage, key) {
  const { section, block, features } = choicesOf(stage);
  const shown = section === "features" ? (features.block ?? stage.latest.numBlocks - 1) : block;
  const buttons = {
    "[": `[data-block="${shown - 1}"]`,
    "]": `[data-block="${shown + 1}"]`,
  };
  const button = stage.find(buttons[key] ?? `[data-show=${WORDS[key]}]`);
  button?.click();
  return Boolean(button);
}

/** What pointer and keys on the picture do, as `listenToPatches` takes it. */
export function patchActions(stage) {
  return {
    hover: (patch) => patch !== stage.pointing.hovered && change(stage, { hovered: patch }),
    click: (patch) => clickPatch(stage, patch),
    at() {
      const { pinned, hovered } = choicesOf(stage);
      return pinned ?? hovered;
    },
    move(patch) {
      const { method, plain, section } = choicesOf(stage);
      stage.parts.caption.announceNext();
      const isLooking = verbOf(stage) === "look";
      const keeps = stage.methods[method].uses.includes("patch") && isLooking && !plain && section !== "features";
      if (keeps) pin(stage, patch);
      else change(stage, { hovered: patch });
    },
    brush: {
      isOn: () => verbOf(stage) === "rub" && !isGuessing(stage),
      over(patch) {
        stage.parts.dropping.brush(patch);
        stage.parts.drawing.rubbed();
      },
      lift: () => stage.parts.dropping.lift(),
    },
    shortcut: (key) => pressShortcut(stage, key),
    press() {
      const { hovered } = choicesOf(stage);
      if (hovered !== null) clickPatch(stage, hovered);
    },
    leave() {
      change(stage, { hovered: null });
      pin(stage, null);
    },
  };
}
