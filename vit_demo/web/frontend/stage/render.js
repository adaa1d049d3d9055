// @ts-check
// The frame of a stage: what follows from its state and the view of the page's state, written and painted.

import { sketch } from "../pad/sketch.js";
import { inkLength } from "../pad/strokes.js";
import { camera, showWays } from "../shared/camera.js";
import { isNew, put, setProgress, setText, variablesOf } from "../shared/dom.js";
import { english, translate } from "../shared/language.js";
import { menuModels, modelInput, pageState, photoNews } from "../shared/pageState.js";
import { viewOf } from "./choices.js";
import { targetOf } from "./format.js";
import { frameOf } from "./frame.js";
import { guessOf } from "./guess.js";
import { classMethod } from "./methods.js";
import { isStill } from "./motion.js";
import { loadTrace, mapFields, servedMap } from "./onDemand.js";
import { paintLifted, paintPaper, paintThreads } from "./paper.js";
import { fitCanvas, lookOf, paintResult } from "./picture.js";
import { bestOf, keepBest } from "./records.js";
import { attentionEnd } from "./scales.js";
import { choicesOf, isPaper, move, redraw, seenOf, verbOf } from "./stage.js";

/** Shows the pad which digit the model saw, and the small photo which part of which photo, where that is new. */
function publishInput(stage, { pinned }) {
  const { run, pixelated, image, photo, rows, columns } = stage.live ?? stage.result ?? {};
  if (!isNew(stage.picture, [pixelated && run, photo, rows, columns, pinned])) return;
  modelInput.publish({ digit: pixelated ? image : null, photo: photo ? { ...photo, rows, columns, pinned } : null });
}

/** Shows what is chosen; while the server still computes its map, the scene stays as it was. */
export function render(stage) {
  const { latest, parts } = stage;
  const result = seenOf(stage);
  const choices = choicesOf(stage);
  if (stage.isFilmed && !stage.film && choices.section !== "steps") scrollTo(0, 0); // where the picture is
  stage.isFilmed = stage.film !== null;
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
    stage.paint = () => paintEmpty(stage);
    stage.paint();
    return;
  }
  const drawing = result === stage.result ? ordinaryDrawing(stage, choices) : liveDrawing(stage, result);
  const { turns } = stage;
  if (result === stage.result && turns.of !== result) stage.turns = { of: result, was: turns.is, is: turns.is };
  const frame = frameOf(givenOf(stage, result, drawing.choices, drawing));
  if (result === stage.result) stage.turns.is = frame.isTurned;
  if (frame.isFlip) keepBest(drawing.whole, result.dropped.length);
  drawing.frame = stage.film ? stage.film.frame(frame, drawing) : frame;
  writeFrame(stage, drawing.frame, drawing);
  stage.paint = () => paint(stage, drawing);
  const shown = stage.paint();
  const isOrdinary = result === stage.result;
  for (const each of parts.views) {
    if (each.isLive || (isOrdinary && each.sections.includes(choices.section))) each.draw?.(drawing);
  }
  if (shown) stage.film?.paint(shown); // whose line ends at an answer
}

/** What the frame is made from. */
function givenOf(stage, result, choices, drawing = /** @type {any} */ (null)) {
  const { moments, methods, parts } = stage;
  const { scene = null, whole = null } = drawing ?? {};
  const isMap = Boolean(scene) && !choices.plain && choices.section !== "features";
  const isLooking = isMap && scene.method.uses.includes("patch");
  return {
    verb: stage.film ? "draw" : verbOf(stage, choices),
    task: pageState.get()?.task ?? (result?.pixelated ? "digits" : "photos"),
    result,
    whole: whole ?? result,
    live: result !== null && result === stage.live,
    moments: stage.film ? [] : moments.list(),
    at: moments.at(),
    isLed: moments.isLed(),
    choices,
    map: isLooking && scene.view.isComplete && scene.view.query !== null ? scene.map : null,
    isLooking,
    isCompared: isMap && methods[choices.method].comparesClasses,
    isLoading: stage.host.dataset.ready === "loading",
    isOnPaper: isPaper(stage),
    isOwn: sketch.isOwn(),
    taught: taughtOf(result),
    invites: stage.isInvited,
    guess: guessOf(stage, result),
    isFilm: Boolean(stage.film),
    found: result && parts.smallestSets.found(),
    wasTurned: result === stage.result ? stage.turns.was : stage.turns.is,
    isTried: Boolean(result) && parts.dropping.isByHand(result),
    beat: pageState.get()?.view.beat ?? null,
    best: whole && verbOf(stage, choices) === "rub" ? bestOf(whole) : null,
    drawing: drawing && { ...drawing, ...scene, methods, error: parts.dropping.error() },
  };
}

/** The first class of a network that was taught, or null. */
function taughtOf(result) {
  const state = pageState.get();
  const preset = result?.source.preset ?? state?.[state.task]?.preset;
  return menuModels.latest().get(preset)?.first ?? null;
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
  const look = lookOf(choices, map, style, hidden);
  return { ...scene, scene, whole, style, look, trace, entry, choices, chosenMethod, pinnedView, tokens, hidden };
}

/** The scene of a moment: where its network looks, which came with it. While squares are rubbed out, a map of another kind stays. */
function liveDrawing(stage, result) {
  const { methods, parts } = stage;
  const isOfDrops = verbOf(stage) === "rub" && stage.result;
  const choices = { ...choicesOf(stage, isOfDrops ? stage.result : result), pinned: null, hovered: null };
  const whole = isOfDrops ? parts.dropping.whole() : result;
  const hidden = isOfDrops ? parts.dropping.dropped() : new Set(result.dropped);
  const moment = { whole, trace: null, entry: null, choices, hidden };
  if (isOfDrops && (choices.method !== "attention" || choices.section === "features")) {
    return { ...ordinaryDrawing(stage, choices), ...moment, result, isBefore: !choices.plain };
  }
  const method = methods.attention;
  const view = viewOf(result, method, choices);
  const scene = { result, method, view, map: method.map(result, view) };
  const style = { ...method.style(result), end: Math.max(attentionEnd(result, view.head), method.style(result).floor) };
  const look = lookOf(choices, scene.map, style, hidden);
  return { ...scene, ...moment, scene, style, look, chosenMethod: method, pinnedView: view, tokens: null };
}

/** Writes the words of the first screen. */
function writeFrame(stage, frame, drawing) {
  const { find, host, parts } = stage;
  const { was, text, next } = frame.headline;
  setText(find(".headline .was"), was);
  setText(find(".headline .now"), text);
  setText(find(".headline .next-act"), next);
  setText(find(".mechanism"), frame.mechanism);
  host.classList.toggle("flipped", frame.isTurned);
  host.classList.toggle("map-before", Boolean(drawing?.isBefore));
  host.classList.toggle("guessing", frame.guess === "asked");
  host.classList.toggle("told", ["told", "several"].includes(frame.guess));
  put(find(".guess"), { hidden: frame.guess !== "offer" });
  const send = find(".send");
  if (isNew(send, [drawing?.result.run, frame.isFlip])) setText(send, english("Send it"));
  put(send, { hidden: !frame.isFlip || !host.querySelector(".chapter.download") });
  const teach = find(".teach-it");
  put(teach, { hidden: !frame.why || !host.querySelector(".chapter.teach") });
  put(teach.dataset, { named: frame.why ?? "" });
  host.classList.toggle("doubtful", !frame.isTurned && ["leans", "unsure"].includes(frame.doubt));
  parts.line.update(frame.line);
  updateActs(stage);
  if (!drawing || drawing.result === stage.result) parts.smallestSets.update(drawing, verbOf(stage));
  if (drawing) parts.caption.update(drawing);
  const label = frame.label ?? frame.caption?.label;
  if (label) put(stage.canvas, { ariaLabel: translate(label) });
}

/** What can be taken back of the present verb, each with a place of its own. */
function updateActs(stage) {
  const { find, parts } = stage;
  const verb = verbOf(stage);
  const drops = stage.result ? parts.dropping.dropped().size : 0;
  const [undo, again, back] = [".undo", ".again", ".back"].map(find);
  put(undo, {
    disabled: verb === "rub" ? !parts.dropping.canUndo() : !sketch.canUndo(),
    hidden: verb === "look" || (!isPaper(stage) && verb !== "rub"),
  });
  put(again, { hidden: verb !== "draw" || !isPaper(stage), disabled: sketch.isEmpty() });
  updatePhotoWays(stage);
  put(back, { hidden: verb !== "rub" && !drops, disabled: !drops });
}

/** The ways to a photo; where they are in each verb is up to the styles. */
function updatePhotoWays(stage) {
  const { find, host } = stage;
  const { task, photos } = pageState.get();
  const isOfPhoto = task === "photos" && sketch.isOpen();
  const hasPicture = Boolean(photos?.picture) && !camera.isOn();
  host.classList.toggle("invites", isOfPhoto && !stage.result && !stage.live && host.dataset.ready !== "loading");
  put(find(".photo-ways"), { hidden: !isOfPhoto });
  put(find("[data-way=remove]"), { hidden: !hasPicture });
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
  if (!isPaper(stage)) return null;
  const size = fitCanvas(stage.canvas, [1, 1]);
  if (size[0]) paintPaper(stage.canvas, size, { ...inkOf(stage), seen: 0, lines: 0, box: null, result: null });
  return null;
}

function paint(stage, drawing) {
  const { canvas } = stage;
  const { result, map, choices, tokens, view } = drawing;
  const { hovered, plain } = choices;
  const verb = verbOf(stage, choices);
  const ink = inkOf(stage);
  const hasPaper = isPaper(stage) && result.pixelated && result.box && ink.strokes.length > 0;
  const tried = verb === "rub" && !isStill() ? stage.parts.smallestSets.tried() : [];
  const hidden = tried.length ? new Set([...drawing.hidden, ...tried]) : drawing.hidden;
  const wanted = {
    seen: hasPaper && verb === "draw" && !stage.film ? 0 : 1,
    box: stage.isNewDrawing ? null : result.box,
    dropped: hidden,
    live: result === stage.live && verb === "draw",
    isLate: inkLength(ink.strokes) > (stage.moments.list().at(-1)?.length ?? 0),
  };
  const shown = stage.motion.step(wanted, performance.now());
  const size = fitCanvas(canvas, result.size);
  if (!size[0]) return null; // it is not in sight
  const { guess } = drawing.frame;
  const look = { ...drawing.look, ...((plain || guess === "asked") && { map: null }), hovered, dropped: hidden };
  if (shown.seen < 1) {
    const onPaper = stage.isNewDrawing ? { result: null, box: null } : { result, box: shown.box };
    paintPaper(canvas, size, { ...ink, ...onPaper, ...look, seen: shown.seen, lines: shown.lines });
  } else {
    const isLooking = verb === "look" && drawing.scene.method.uses.includes("patch") && !plain && !tokens;
    const marked = ["told", "several"].includes(guess) ? stage.guess.patch : null;
    const queried = isLooking || choices.pinned !== null ? view.query : marked;
    paintResult(canvas, size, result, tokens ? { ...tokens, dropped: hidden } : { ...look, queried });
    if (isLooking && view.query !== null && map) {
      paintThreads(canvas, size, result, view.query, map, variablesOf(canvas, ["thread"]).thread);
    }
    if (shown.lifted.size && drawing.whole) paintLifted(canvas, size, drawing.whole, shown.lifted);
  }
  if (shown.moves) (stage.film ? redraw : move)(stage); // a film says something else in each frame
  return shown;
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
  for (const button of find(".words").querySelectorAll("button")) {
    put(button, {
      ariaPressed: String(button.dataset.show === shown),
      disabled: button.dataset.show === "class" && !latest.predictions.length,
    });
  }
  setText(find(".words .other"), shown === "" ? stage.methods[choices.method].label : "");
  const seen = seenOf(stage) ?? result; // of a moment the answer of that moment
  const { label = "" } = (seen && targetOf(seen, seen === result ? choices.label : null)) ?? {};
  const word = label ? translate("Speaks for {name}", { name: label }) : english("Speaks for it");
  setText(find("[data-show=class]"), word);
  put(find("[data-show=class]"), { title: word });
  const verb = verbOf(stage, choices);
  const isOfPhoto = pageState.get()?.task === "photos";
  for (const button of find(".verbs").children) {
    put(button, { ariaPressed: String(button.dataset.mode === verb && !stage.film) });
    if (button.dataset.mode === "draw")
      setText(button.firstElementChild, isOfPhoto ? english("Photo") : english("Draw"));
  }
  put(host.dataset, { verb });
  host.classList.toggle("live", stage.live !== null);
  host.classList.toggle("on-paper", isPaper(stage));
  host.classList.toggle("of-digit", seenOf(stage)?.pixelated ?? isPaper(stage));
  sketch.hold(verb === "draw");
  put(find(".tour").dataset, {
    short: translate(stage.film ? english("Back") : english("See how")),
  });
}

/** The word below the picture that names what it shows; "" for a method of the drawer, null for what tokens hold. */
function shownWord({ methods, live, pointing }, { section, plain, method }) {
  const isOfStroke = live !== null && pointing.verb === "draw"; // of which the server computes no other map
  if (section === "features") return null;
  if (plain) return "plain";
  if (method === "attention" || isOfStroke) return "attention";
  return method === classMethod(methods) ? "class" : "";
}
