// From mouse, finger and keyboard on the picture to patches.

import { patchAt } from "../shared/geometry.js";

/** [down, right] of each arrow key. */
export const ARROW_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const NO_BRUSH = { isOn: () => false };

/**
 * Calls `hover(patch | null)`, `click(patch)`, `move([down, right])`, `press()` and `leave()` for what the visitor does
 * on the canvas; `getGrid()` returns {rows, columns}, or null while there is nothing to point at. `brush` is
 * {isOn(), start(patch), over(patch), end()}: while it is on, a pressed pointer brushes over patches and clicks none.
 */
export function followPatches(canvas, getGrid, { hover, click, move, press, leave, brush = NO_BRUSH }) {
  let brushed = null; // the last patch under a pressed brush
  const patchUnder = ({ clientX, clientY }) => patchAt(clientX, clientY, canvas.getBoundingClientRect(), getGrid());
  canvas.addEventListener("pointermove", (event) => {
    // A finger that scrolls past is not pointing at anything; a tap arrives as a click.
    if (event.pointerType !== "touch" && getGrid()) hover(patchUnder(event));
    const patch = brushed === null ? null : patchUnder(event);
    if (patch !== null && patch !== brushed) brush.over(patch);
    if (patch !== null) brushed = patch;
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (!getGrid() || !brush.isOn() || event.button) return;
    brushed = patchUnder(event);
    if (brushed === null) return;
    canvas.setPointerCapture(event.pointerId);
    brush.start(brushed);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      if (brushed !== null) brush.end();
      brushed = null;
    });
  }
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => {
    const patch = getGrid() && patchUnder(event);
    if (patch !== null && !brush.isOn()) click(patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!getGrid() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROW_STEPS) move(ARROW_STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") press();
    else if (event.key === "Escape" || event.key === "Home") leave();
    else return;
    event.preventDefault();
  });
}
