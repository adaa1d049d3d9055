// The paper: shows a drawing at the screen's density and turns pointer events into strokes.

import { drawStrokes } from "./strokes.js";

const ANIMATION = 220; // milliseconds in which an example is written
const NEAREST = 0.002; // closer points are left out

/** Keeps a canvas showing strokes: `show(strokes)` at once, `write(strokes)` with an animation. */
export function createPaper(canvas) {
  const context = canvas.getContext("2d");
  let shown = [];
  let animationId = 0; // an animation runs only while this still has the value it started with

  function paint(progress = 1) {
    const side = canvas.width;
    context.clearRect(0, 0, side, side);
    drawStrokes(context, shown, side, { progress });
  }

  function show(strokes) {
    animationId++;
    shown = strokes;
    paint();
  }

  function write(strokes) {
    show(strokes);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const ownId = animationId;
    const start = performance.now();
    const step = (now) => {
      if (animationId !== ownId) return; // another drawing is shown meanwhile
      const progress = Math.min(1, Math.max(0, now - start) / ANIMATION);
      paint(progress);
      if (progress < 1) requestAnimationFrame(step);
    };
    paint(0);
    requestAnimationFrame(step);
  }

  new ResizeObserver(() => {
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (!side || side === canvas.width) return;
    canvas.width = canvas.height = side;
    paint();
  }).observe(canvas);

  return { show, write };
}

/** Calls `begin(point)`, `extend(points)` and `end()` for one stroke at a time; a second finger is ignored. */
export function followPointer(canvas, { begin, extend, end }) {
  let active = null;
  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (active !== null || event.button !== 0) return;
    active = event.pointerId;
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

/** Adds points to a stroke, leaving out those that hardly moved. */
export function extendStroke(stroke, points) {
  for (const [x, y] of points) {
    const [lastX, lastY] = stroke.points.at(-1);
    if (Math.hypot(x - lastX, y - lastY) >= NEAREST) stroke.points.push([x, y]);
  }
}
