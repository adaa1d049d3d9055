// @ts-check
// The paper: shows a drawing at the screen's density and turns pointer events into strokes.

import { documentEvents } from "../shared/dom.js";
import { drawStrokes } from "./strokes.js";

/** Keeps a canvas showing strokes: `show(strokes)`. */
export function createPadCanvas(canvas) {
  const context = canvas.getContext("2d");
  let shown = [];

  function paint() {
    context.clearRect(0, 0, canvas.width, canvas.width);
    drawStrokes(context, shown, canvas.width);
  }

  function show(strokes) {
    shown = strokes;
    paint();
  }

  new ResizeObserver(() => {
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (!side || side === canvas.width) return;
    canvas.width = canvas.height = side;
    paint();
  }).observe(canvas);

  return { show };
}

/**
 * Calls `begin(point)`, `extend(points)` and `end()` for one stroke at a time, while `isOn()`. A second finger makes it a pinch,
 * so that the stroke is taken back by `cancel()`; the hand that lies on the paper beside a pen is ignored.
 */
export function listenToPointer(canvas, { begin, extend, end, cancel }, isOn = () => true) {
  let active = /** @type {any} */ (null);
  let isPen = false; // whether the active pointer is one
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const byPen = event.pointerType === "pen";
    if (active !== null) {
      if (isPen && !byPen) return;
      active = null;
      cancel();
      if (!byPen) return;
    }
    if (event.button !== 0 || !event.isPrimary || !isOn()) return;
    active = event.pointerId;
    isPen = byPen;
    canvas.setPointerCapture(active);
    begin(position(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerId !== active) return;
    // The browser sends one event for each frame; the points in between keep a fast curve round.
    const events = event.getCoalescedEvents();
    extend((events.length ? events : [event]).map(position));
  });
  // The capture is lost in every way that a stroke can end: pointer up, cancel, or the browser taking over.
  canvas.addEventListener("lostpointercapture", (event) => {
    if (event.pointerId !== active) return;
    active = null;
    end();
  });
}

// A pen for the keyboard: arrow keys move it, Space puts it on the paper and lifts it, Escape lifts it. And Ctrl+Z.

const STEP = 1 / 20; // of the paper's side
const FINE = 1 / 80; // with Shift
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

const isUndo = ({ ctrlKey, metaKey, shiftKey, key }) => (ctrlKey || metaKey) && !shiftKey && key.toLowerCase() === "z";

/**
 * Calls `begin(point)`, `extend(points)` and `end()` as a pointer would, and `undo()` and `clear()`, while `isOn()`; `nib` shows
 * the pen, which the returned function puts away.
 */
export function listenToKeys(canvas, nib, { begin, extend, end, undo, clear }, isOn = () => true) {
  let at = [0.5, 0.5];
  let isDown = false;

  function place() {
    [nib.style.left, nib.style.top] = at.map((value) => `${100 * value}%`);
    nib.classList.toggle("down", isDown);
    nib.hidden = false;
  }

  function lift() {
    if (!isDown) return;
    isDown = false;
    end();
  }

  function move([x, y], step) {
    at = [at[0] + x * step, at[1] + y * step].map((value) => Math.min(0.95, Math.max(0.05, value)));
    if (isDown) extend([at]);
  }

  function press() {
    if (isDown) return lift();
    isDown = true;
    begin(at);
  }

  canvas.addEventListener("keydown", (event) => {
    const { key, shiftKey } = event;
    if (!isOn()) return;
    if (isUndo(event) || key === "Delete" || key === "Backspace") {
      lift();
      if (isUndo(event)) undo();
      else clear();
    } else if (key in ARROWS) move(ARROWS[key], shiftKey ? FINE : STEP);
    else if (key === " ") press();
    else if (key === "Escape") lift();
    else return;
    event.preventDefault();
    if (key in ARROWS || key === " ") place();
  });
  function putAway() {
    lift();
    nib.hidden = true;
  }

  for (const name of ["blur", "pointerdown"]) canvas.addEventListener(name, putAway);
  return putAway;
}

/** Calls `undo()` for Ctrl+Z on the page, as long as the pad is what was used last. */
export function listenToUndo(pad, undo, isOn = () => true) {
  const listen = documentEvents(pad);
  let isLast = false;

  for (const name of ["pointerdown", "focusin"]) {
    listen(name, ({ target }) => {
      isLast = pad.contains(target);
    });
  }
  listen("keydown", (event) => {
    if (!isLast || !isOn() || !isUndo(event) || event.defaultPrevented) return;
    event.preventDefault();
    undo();
  });
}
