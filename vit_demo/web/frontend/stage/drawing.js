// @ts-check
// What changes on the picture, and what the network says meanwhile: strokes of pointer and keys, squares that are rubbed out, a
// camera. Neither the history nor the address nor a screen reader hears of it; the ordinary result stands at the end.

import { listenToKeys, listenToPointer } from "../pad/canvas.js";
import { sketch } from "../pad/sketch.js";
import { inkLength, toSmallUrl } from "../pad/strokes.js";
import { camera } from "../shared/camera.js";
import { createLive } from "../shared/live.js";
import { pageState, withWords } from "../shared/pageState.js";
import { playOpening } from "./opening.js";
import { openResult, partOfPhoto } from "./result.js";
import { change, chooseMode, isPaper, move, patchOnPaper, redraw, verbOf } from "./stage.js";

const DOT = 0.2; // of the paper's side: less ink is a dot, which the network would get as large as a digit

/** Starts drawing on the canvas of a stage; `server` is that of the requests. */
export function createDrawing(stage, server) {
  const { find, host, canvas, moments } = stage;
  const live = createLive((fields) => server.request(fields), { onAnswer });
  const isOn = () => isPaper(stage) && verbOf(stage) === "draw";

  /** `made` is {fields}, with the `length` of the ink, the `frame` of a camera, and what the model saw of a photo. */
  async function onAnswer(payload, /** @type {any} */ { length, frame, seenOf }) {
    if (payload.empty) return;
    const result = await openResult(payload, seenOf);
    if (!isAsking()) return; // the ordinary result is there, or another picture
    stage.live = result;
    if (frame) camera.show(frame);
    if (length !== undefined) {
      stage.isNewDrawing = false;
      moments.add(result, length);
    }
    name(result);
    redraw(stage);
  }

  /** For those who wait for an answer. */
  const name = (result) =>
    Object.assign(host.dataset, { run: result?.run ?? "", top1: result?.predictions[0]?.name ?? "" });

  const isAsking = () => sketch.isDrawing() || sketch.isWritten() || stage.parts.dropping.isBrushing() || camera.isOn();

  /** The drawing so far. */
  async function drawingSoFar() {
    const strokes = sketch.strokes();
    const { preset, patchSize } = pageState.get().digits;
    const length = inkLength(strokes);
    const drawing = length > DOT ? await toSmallUrl(strokes) : null;
    const source = { drawing, preset, patch_size: patchSize, fit: "crop", dropped: [] };
    return drawing ? { fields: { kind: "result", live: true, source }, length } : null;
  }

  /** The picture without the squares that are rubbed out so far. */
  function picturesSoFar() {
    const { dropping } = stage.parts;
    if (!stage.result) return null;
    const { source: whole, picture } = dropping.whole();
    const dropped = [...dropping.dropped()].sort((a, b) => a - b);
    const source = { ...whole, dropped, silent: dropping.silent() };
    return { fields: { kind: "result", live: true, source }, seenOf: () => picture };
  }

  /** What the camera sees. */
  function frameSoFar() {
    const frame = camera.frame();
    const { preset, patchSize, fit, words } = pageState.get().photos;
    const source = { frame: frame?.url, preset, patch_size: patchSize, fit: fit ?? "crop", dropped: [] };
    const fields = { kind: "result", live: true, source: withWords(source, words) };
    return frame && { fields, frame: frame.url, seenOf: (payload) => partOfPhoto(frame.canvas, payload) };
  }

  /** Asks about the camera's newest frame whenever the last answer is there. */
  function film() {
    if (!camera.isOn()) return;
    if (!find(".explore").classList.contains("elsewhere")) live.ask(frameSoFar);
    requestAnimationFrame(film);
  }

  camera.subscribe(host, () => {
    if (camera.isOn()) {
      chooseMode(stage, "draw");
      film();
    } else {
      live.stop();
      if (!camera.isHeld()) stage.live = null; // else it stays until the frame's own result is there
    }
    redraw(stage);
  });

  let under = /** @type {any} */ (undefined); // the picture on which a stroke is being drawn

  sketch.subscribe(host, () => {
    const before = moments.list().length;
    moments.follow(sketch.strokes());
    const isTakenBack = under !== undefined && !sketch.isDrawing() && sketch.picture() === under;
    const isLonger = under !== undefined && sketch.isDrawing() && sketch.picture() === under && moments.at() === null;
    under = sketch.isDrawing() ? sketch.picture() : undefined;
    if (isTakenBack) goBack();
    if (sketch.isDrawing() || sketch.isWritten()) {
      if (before && !moments.list().length) stage.isNewDrawing = true;
      moments.scrub(null);
      live.ask(drawingSoFar);
    }
    if (sketch.isDrawing()) {
      stage.isInvited = false;
      stage.pointing.hovered = null;
    }
    if (isLonger) move(stage);
    else redraw(stage);
  });

  const putAway = listenToKeys(canvas, find(".nib"), sketch, isOn); // first: a pointer ends the keyboard's stroke
  listenToPointer(canvas, sketch, isOn);

  /** The live answers are over: what is shown is the result on the stage. */
  function end(result) {
    if (camera.isOn()) return;
    live.stop();
    stage.live = null;
    stage.isNewDrawing = false;
    const strokes = sketch.strokes();
    const isOfDrawing = result?.pixelated && strokes.length && !result.dropped.length;
    if (isOfDrawing) moments.add(result, inkLength(strokes), { isLast: true });
  }

  /** The result on the stage is what is said again. */
  function goBack() {
    end(stage.result);
    name(stage.result);
    redraw(stage);
  }

  canvas.addEventListener("pointermove", (event) => {
    if (!isOn() || sketch.isDrawing() || event.pointerType !== "mouse") return;
    const hovered = patchOnPaper(stage, event);
    if (hovered !== stage.pointing.hovered) change(stage, { hovered });
  });
  canvas.addEventListener("pointerleave", () => isOn() && change(stage, { hovered: null }));

  return {
    /** Squares are being rubbed out. */
    rubbed: () => live.ask(picturesSoFar),
    end,
    /** The pen of the keyboard is put away. */
    putAway,
    /** A pencil writes the first digit, whose result is on the stage. */
    open() {
      playOpening(host, {
        onBegin() {
          stage.isNewDrawing = true;
        },
        onEnd(isWhole) {
          if (sketch.isDrawing()) return; // a stroke of the visitor's has ended it
          stage.isInvited = isWhole;
          goBack();
        },
      });
    },
  };
}
