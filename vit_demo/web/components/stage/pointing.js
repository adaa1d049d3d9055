// From mouse, finger and keyboard on the picture to patches.

import { patchAt } from "../shared/geometry.js";

/** [down, right] of each arrow key. */
export const ARROW_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Calls `hover(patch | null)`, `click(patch)`, `move([down, right])`, `press()` and `leave()` for what the visitor does
 * on the canvas; `getGrid()` returns {rows, columns}, or null while there is nothing to point at.
 */
export function followPatches(canvas, getGrid, { hover, click, move, press, leave }) {
  const patchUnder = ({ clientX, clientY }) => patchAt(clientX, clientY, canvas.getBoundingClientRect(), getGrid());
  canvas.addEventListener("pointermove", (event) => {
    // A finger that scrolls past is not pointing at anything; a tap arrives as a click.
    if (event.pointerType !== "touch" && getGrid()) hover(patchUnder(event));
  });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => {
    const patch = getGrid() && patchUnder(event);
    if (patch !== null) click(patch);
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
