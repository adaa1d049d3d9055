// The paper: shows a drawing at the screen's own density and turns pointers into strokes.

const ANIMATION = 220; // milliseconds in which an example writes itself
const NEAREST = 0.002; // points closer than this add nothing but work

/** Keeps `canvas` showing a drawing. `show(drawing)` is immediate, `write(drawing)` animates and resolves when done. */
function createPaper(canvas) {
  const context = canvas.getContext("2d");
  let shown = { base: null, strokes: [] };
  let turn = 0; // an animation runs only while this still has the value it started with

  function paint(progress = 1) {
    const side = canvas.width;
    context.clearRect(0, 0, side, side);
    if (shown.base) context.drawImage(shown.base, 0, 0, side, side);
    drawStrokes(context, shown.strokes, side, { progress });
  }

  function show(drawing) {
    turn++;
    shown = drawing;
    paint();
  }

  /** Resolves to false when something else was shown before the last stroke was written. */
  function write(drawing) {
    show(drawing);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return Promise.resolve(true);
    const mine = turn;
    const start = performance.now();
    return new Promise((resolve) => {
      const step = (now) => {
        if (turn !== mine) return resolve(false);
        const progress = Math.min(1, Math.max(0, now - start) / ANIMATION);
        paint(progress);
        if (progress < 1) requestAnimationFrame(step);
        else resolve(true);
      };
      paint(0);
      requestAnimationFrame(step);
    });
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
function followPointer(canvas, { begin, extend, end }) {
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
    // The browser hands over one event a frame; the points between are what keeps a fast curve round.
    const events = event.getCoalescedEvents();
    extend((events.length ? events : [event]).map(position));
  });
  // Capture is lost on up, on cancel and when the browser takes the pointer away: every way a stroke can end.
  canvas.addEventListener("lostpointercapture", (event) => {
    if (event.pointerId !== active) return;
    active = null;
    end();
  });
}

/** Adds points to a stroke, leaving out those that hardly moved. */
function extendStroke(stroke, points) {
  for (const [x, y] of points) {
    const [lastX, lastY] = stroke.points.at(-1);
    if (Math.hypot(x - lastX, y - lastY) >= NEAREST) stroke.points.push([x, y]);
  }
}
