// @ts-check
// What a stage keeps, what a visitor does to it, and the frame that follows from that and the view of the page's state.

import { sketch } from "../pad/sketch.js";
import { inkLength } from "../pad/strokes.js";
import { camera, showWays } from "../shared/camera.js";
import { isNew, setProgress, setText } from "../shared/dom.js";
import { patchAt } from "../shared/geometry.js";
import { english, translate } from "../shared/language.js";
import { modelInput, PUSH, pageState, photoAct, photoNews, REPLACE } from "../shared/pageState.js";
import { FIRST_GUESS, firstPointing, isStep, validFor, viewOf } from "./choices.js";
import { placeOf, targetOf } from "./format.js";
import { frameOf } from "./frame.js";
import { classMethod } from "./methods.js";
import { createMoments } from "./moments.js";
import { createMotion } from "./motion.js";
import { loadTrace, mapFields, servedMap } from "./onDemand.js";
import { paintLifted, paintPaper, paintThreads } from "./paper.js";
import { fitCanvas, paintResult } from "./picture.js";
import { attentionEnd, createScales } from "./scales.js";
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
    isNewDrawing: false, // whether nothing on the stage is about the drawing yet
    isInvited: false, // whether the page has drawn the picture by itself
    frame: 0, // the next one, if it is scheduled
    parts: /** @type {any} */ (null), // {replies, dropping, drawer, caption, challenge, views, sections}
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
  const { hovered, verb = stage.pointing.verb, ...view } = { ...stage.pointing, ...part };
  stage.pointing = { hovered, verb };
  pageState.changeView(view, isStep(view, pageState.get().view) ? PUSH : REPLACE);
  redraw(stage);
}

/** Shows the pad which digit the model saw, and the small photo which part of which photo, where that is new. */
function publishInput(stage, { pinned }) {
  const { run, pixelated, image, photo, rows, columns } = stage.live ?? stage.result ?? {};
  if (!isNew(stage.picture, [pixelated && run, photo, rows, columns, pinned])) return;
  modelInput.publish({ digit: pixelated ? image : null, photo: photo ? { ...photo, rows, columns, pinned } : null });
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
function seenOf(stage) {
  if (sketch.isWritten() && !stage.live) return null; // the page has just begun to draw
  return stage.moments.scrubbed()?.result ?? stage.live ?? stage.result;
}

/** Shows what is chosen; while the server still computes its map, the scene stays as it was. */
export function render(stage) {
  const { latest, parts } = stage;
  const result = seenOf(stage);
  const choices = choicesOf(stage);
  stage.frame = 0;
  stage.host.classList.toggle("live", stage.live !== null);
  parts.sections.open(choices.section);
  parts.drawer.update(choices, latest, stage.result);
  publishInput(stage, choices);
  updateButtons(stage, choices);
  if (stage.result) parts.dropping.follow();
  stage.host.classList.toggle("unasked", !result && stage.result !== null);
  if (!result) {
    for (const each of parts.views) if (each.isLive || !stage.result) each.drawEmpty?.({ choices });
    writeFrame(stage, frameOf(givenOf(stage, null, choices)), null);
    paintEmpty(stage);
    return;
  }
  const drawing = result === stage.result ? ordinaryDrawing(stage, choices) : liveDrawing(stage, result);
  drawing.frame = frameOf(givenOf(stage, result, drawing.choices, drawing));
  writeFrame(stage, drawing.frame, drawing);
  paint(stage, drawing);
  const isOrdinary = result === stage.result;
  for (const each of parts.views) {
    if (each.sections.includes(choices.section) && (isOrdinary || each.isLive)) each.draw?.(drawing);
  }
}

/** What the frame is made from. */
function givenOf(stage, result, choices, drawing = /** @type {any} */ (null)) {
  const { moments, methods, parts } = stage;
  const { scene = null, whole = null } = drawing ?? {};
  const isLooking = Boolean(scene) && !choices.plain && scene.method.uses.includes("patch");
  return {
    verb: verbOf(stage, choices),
    task: pageState.get()?.task ?? (result?.pixelated ? "digits" : "photos"),
    result,
    whole: whole ?? result,
    live: result !== null && result === stage.live,
    moments: moments.list(),
    at: moments.at(),
    choices,
    map: isLooking && scene.view.isComplete && scene.view.query !== null ? scene.map : null,
    isLooking: isLooking && choices.section !== "features",
    isOnPaper: isPaper(stage),
    isOwn: sketch.isOwn(),
    invites: stage.isInvited,
    found: result && parts.challenge.found(),
    drawing: drawing && { ...drawing, methods, error: parts.dropping.error() },
  };
}

/** The scene of the result on the stage, with all that its views draw. */
function ordinaryDrawing(stage, choices) {
  const { methods, parts, result } = stage;
  const chosenMethod = methods[choices.method];
  const { entry, trace } = updateScene(stage, choices);
  setProgress(stage.find(".view .progress"), Boolean(entry?.isSlow && entry.isLoading), entry?.progress);
  const { method, view, map } = stage.scene;
  const whole = parts.dropping.whole();
  const style = stage.scales.styleOf(whole, result, method, view, map, choices);
  const tokens = parts.views.find((each) => each.picture)?.picture(result, choices) ?? null;
  const pinnedView = viewOf(result, chosenMethod, { ...choices, hovered: null });
  const hidden = parts.dropping.dropped();
  const { scene } = stage;
  return { ...scene, scene, whole, style, trace, entry, choices, chosenMethod, pinnedView, tokens, hidden };
}

/** The scene of a moment: where its network looks, which came with it. */
function liveDrawing(stage, result) {
  const { methods, parts } = stage;
  const choices = { ...choicesOf(stage, result), pinned: null, hovered: null };
  const method = methods.attention;
  const view = viewOf(result, method, choices);
  const map = method.map(result, view);
  const style = { ...method.style(result), end: Math.max(attentionEnd(result, view.head), method.style(result).floor) };
  const isOfDrops = verbOf(stage) === "rub" && stage.result;
  const whole = isOfDrops ? parts.dropping.whole() : result;
  const hidden = isOfDrops ? parts.dropping.dropped() : new Set(result.dropped);
  const scene = { result, method, view, map };
  return {
    ...{ ...scene, scene, whole, style, trace: null, entry: null, choices, chosenMethod: method, pinnedView: view },
    ...{ tokens: null, hidden },
  };
}

/** Writes the words of the first screen. */
function writeFrame(stage, frame, drawing) {
  const { find, host, parts } = stage;
  const { was, text, next } = frame.headline;
  setText(find(".headline .was"), was);
  setText(find(".headline .now"), text);
  setText(find(".headline .next-act"), next);
  setText(find(".mechanism"), frame.mechanism);
  host.classList.toggle("doubtful", frame.doubt !== undefined && frame.doubt !== "sure" && frame.doubt !== "none");
  parts.line.update(frame.line);
  updateActs(stage);
  if (!drawing || drawing.result === stage.result) parts.challenge.update(drawing, verbOf(stage));
  if (drawing) parts.caption.update(drawing);
  const label = frame.label ?? frame.caption?.label;
  if (label) stage.canvas.setAttribute("aria-label", translate(label));
}

/** What can be taken back of the present verb, each with a place of its own. */
function updateActs(stage) {
  const { find, parts } = stage;
  const verb = verbOf(stage);
  const drops = stage.result ? parts.dropping.dropped().size : 0;
  const [undo, again, back] = [".undo", ".again", ".back"].map(find);
  undo.disabled = verb === "rub" ? !parts.dropping.canUndo() : !sketch.canUndo();
  undo.hidden = verb === "look" || (!isPaper(stage) && verb !== "rub");
  again.hidden = verb !== "draw" || !isPaper(stage);
  again.disabled = sketch.isEmpty();
  updatePhotoWays(stage, verb);
  back.hidden = verb !== "rub";
  back.disabled = !drops;
}

/** The ways to a photo, below the picture. */
function updatePhotoWays(stage, verb) {
  const { find, host } = stage;
  const { task, photos } = pageState.get();
  const isOfPhoto = task === "photos" && sketch.isOpen();
  const hasPicture = Boolean(photos?.picture) && !camera.isOn();
  host.classList.toggle("invites", isOfPhoto && !stage.result && !stage.live && host.dataset.ready !== "loading");
  find(".photo-ways").hidden = !isOfPhoto || (verb !== "draw" && stage.result !== null);
  find("[data-way=remove]").hidden = !hasPicture;
  setText(find(".photo-ways .problem"), photoNews.latest());
  showWays(find(".photo-ways"));
}

/** The ink that is seen: all of it, or as much as there was at the moment that is looked at. */
function inkOf(stage) {
  const strokes = sketch.strokes();
  const moment = stage.moments.scrubbed();
  return { strokes, progress: moment ? Math.min(1, moment.length / Math.max(1e-6, inkLength(strokes))) : 1 };
}

function paintEmpty(stage) {
  if (!isPaper(stage)) return;
  const size = fitCanvas(stage.canvas, [1, 1]);
  if (!size[0]) return; // it is not in sight
  paintPaper(stage.canvas, size, { ...inkOf(stage), seen: 0, box: null, result: null });
}

function paint(stage, drawing) {
  const { canvas } = stage;
  const { result, map, style, choices, tokens, hidden, view } = drawing;
  const { opacity, smooth, hovered, plain } = choices;
  const verb = verbOf(stage, choices);
  const ink = inkOf(stage);
  const hasPaper = isPaper(stage) && result.pixelated && result.box && ink.strokes.length > 0;
  const isLive = sketch.isDrawing() || sketch.isWritten();
  const wanted = { seen: hasPaper && verb === "draw" ? 0 : 1, box: result.box, follows: isLive, dropped: hidden };
  const shown = stage.motion.step(wanted, performance.now());
  const size = fitCanvas(canvas, result.size);
  if (!size[0]) return; // it is not in sight
  const shownMap = plain ? null : map;
  if (shown.seen < 1) {
    const onPaper = stage.isNewDrawing ? { result: null, box: null } : { result, box: shown.box };
    const colours = { map: shownMap, style, opacity, smooth, hovered, dropped: hidden };
    paintPaper(canvas, size, { ...ink, ...onPaper, ...colours, seen: shown.seen });
  } else {
    const isLooking = verb === "look" && drawing.scene.method.uses.includes("patch") && !plain && !tokens;
    const queried = isLooking || choices.pinned !== null ? view.query : null;
    const look = tokens ?? { map: shownMap, style, opacity, smooth, queried, hovered };
    paintResult(canvas, size, result, { ...look, dropped: hidden });
    if (isLooking && view.query !== null && map) {
      paintThreads(canvas, size, result, view.query, map, getComputedStyle(canvas).getPropertyValue("--thread"));
    }
    if (shown.lifted.size && drawing.whole) paintLifted(canvas, size, drawing.whole, shown.lifted);
  }
  if (shown.moves) redraw(stage);
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

/** What the picture shows and what a click on it does: the words below it, and the switch. */
function updateButtons(stage, choices) {
  const { find, host, result, latest } = stage;
  const shown = shownWord(stage, choices);
  for (const button of find(".words").children) {
    button.setAttribute("aria-pressed", String(button.dataset.show === shown));
    button.disabled = button.dataset.show === "class" && !latest.predictions.length;
  }
  const { label = "" } = (result && targetOf(result, choices.label)) ?? {};
  const isShort = label && label.length <= LONGEST_NAME;
  const word = translate(isShort ? english("What speaks for {name}") : english("What speaks for it"), { name: label });
  setText(find("[data-show=class]"), word);
  find("[data-show=class]").dataset.label = word;
  const verb = verbOf(stage, choices);
  const isOfPhoto = pageState.get()?.task === "photos";
  for (const button of find(".verbs").children) {
    button.setAttribute("aria-pressed", String(button.dataset.mode === verb));
    if (button.dataset.mode === "draw")
      setText(button.firstElementChild, isOfPhoto ? english("Photo") : english("Draw"));
  }
  host.dataset.verb = verb;
  host.classList.toggle("live", stage.live !== null);
  host.classList.toggle("on-paper", isPaper(stage));
  host.classList.toggle("of-digit", seenOf(stage)?.pixelated ?? isPaper(stage));
  sketch.hold(verb === "draw");
}

const LONGEST_NAME = 2; // characters; a longer name of a class would push the switch away

/** The word below the picture that names what it shows; none for a method of the drawer. */
function shownWord({ methods }, { section, plain, method }) {
  if (section === "features") return null;
  if (plain) return "plain";
  if (method === "attention") return "attention";
  return method === classMethod(methods) ? "class" : null;
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
  stage.moments.scrub(null);
  if (mode !== "look") return change(stage, { verb: mode, pinned: null, hovered: null });
  const follows =
    choices.section === "features" || (!choices.plain && stage.methods[choices.method].uses.includes("patch"));
  change(stage, { verb: "look", ...(!follows && { plain: false, method: "attention", block: null, head: -1 }) });
}

export function pickBlock(stage, block, head = -1) {
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
      isOn: () => verbOf(stage) === "rub",
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
