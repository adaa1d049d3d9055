// From mouse, finger and keyboard on the picture to patches.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The patch one step away from another, held at the edges. */
function neighbour({ rows, columns }, patch, [down, right]) {
  const row = Math.min(rows - 1, Math.max(0, Math.floor(patch / columns) + down));
  const column = Math.min(columns - 1, Math.max(0, (patch % columns) + right));
  return row * columns + column;
}

/** Tells `on.hover(patch | null)`, `on.pick(patch)`, `on.move(step)`, `on.press()` and `on.leave()` what the visitor does. */
function followPatches(canvas, getResult, on) {
  const patchAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const { rows, columns } = getResult();
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    return row < 0 || column < 0 || row >= rows || column >= columns ? null : row * columns + column;
  };
  canvas.addEventListener("pointermove", (event) => {
    // A finger that scrolls past is not pointing at anything; a tap arrives as a click.
    if (event.pointerType !== "touch" && getResult()) on.hover(patchAt(event));
  });
  canvas.addEventListener("pointerleave", () => on.hover(null));
  canvas.addEventListener("click", (event) => {
    const patch = getResult() && patchAt(event);
    if (patch !== null) on.pick(patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!getResult() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in STEPS) on.move(STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") on.press();
    else if (event.key === "Escape" || event.key === "Home") on.leave();
    else return;
    event.preventDefault();
  });
}
