// The picture under its heatmap, with its grid and the marked patches, at the screen's own density.

import { fitInside, patchAt, patchBox } from "../shared/geometry.js";
import { hatchPatches } from "./dropping.js";
import { heatCanvas } from "./heatmapColours.js";

const FINEST_GRID = 8; // CSS pixels; lines between smaller patches would hide the picture
const SMALLEST_OUTLINE = 9; // CSS pixels

/** Fits the canvas into its box, whose size never changes, and returns its size in CSS pixels. */
export function fitCanvas(canvas, host, pictureSize) {
  const size = fitInside(pictureSize, [host.clientWidth, host.clientHeight]);
  const pixels = size.map((side) => Math.round(side * devicePixelRatio));
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels;
    [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  }
  return size;
}

/** Paints a picture alone, and returns the canvas' context, in CSS pixels. */
export function paintPicture(canvas, [width, height], image, pixelated) {
  const context = canvas.getContext("2d");
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !pixelated;
  context.drawImage(image, 0, 0, width, height);
  return context;
}

/**
 * Paints a result. `map` is one value for each patch, or null, and `style` how it is coloured (see heatmapColours.js); with
 * `smooth` neighbours blend; `queried` and `hovered` are patches, or null; `dropped` is a set of them.
 */
export function paintResult(
  canvas,
  [width, height],
  result,
  { map, style, opacity, smooth, queried, hovered, dropped },
) {
  const context = paintPicture(canvas, [width, height], result.picture, result.pixelated);
  if (map && !result.pixelated) removeColours(context, width, height);
  context.imageSmoothingEnabled = Boolean(smooth);
  // Until the map of a new picture is computed, the picture is shown without one.
  if (map) context.drawImage(heatCanvas(map, result, opacity, style), 0, 0, width, height);

  const box = { left: 0, top: 0, width, height };
  if (dropped.size) hatchPatches(context, box, result, dropped);
  paintGrid(context, box, result);
  if (hovered !== null && hovered !== queried) outlinePatch(context, patchBox(hovered, box, result), 1);
  if (queried !== null) outlinePatch(context, patchBox(queried, box, result), 2.5);
}

/** Leaves a photo its brightness alone: its colours are easily taken for those of the map. */
export function removeColours(context, width, height) {
  context.globalCompositeOperation = "saturation";
  context.fillStyle = "grey";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "source-over";
}

export function paintGrid(context, { width, height }, { rows, columns, pixelated }) {
  if (Math.min(width / columns, height / rows) < FINEST_GRID) return;
  context.beginPath();
  for (let column = 1; column < columns; column++) {
    const x = (column * width) / columns;
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  for (let row = 1; row < rows; row++) {
    const y = (row * height) / rows;
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.strokeStyle = pixelated ? "rgb(0 0 0 / 12%)" : "rgb(255 255 255 / 16%)";
  context.lineWidth = 1;
  context.stroke();
}

/** White with a dark halo, so that it stands out from any picture and heatmap; never too small to find. */
export function outlinePatch(context, patch, weight) {
  const width = Math.max(patch.width, SMALLEST_OUTLINE);
  const height = Math.max(patch.height, SMALLEST_OUTLINE);
  const x = patch.left + (patch.width - width) / 2;
  const y = patch.top + (patch.height - height) / 2;
  const strokes = [
    ["rgb(0 0 0 / 55%)", 2.5],
    ["#fff", 0],
  ];
  context.lineJoin = "round";
  for (const [style, extra] of strokes) {
    context.strokeStyle = style;
    context.lineWidth = weight + extra;
    context.strokeRect(x, y, width, height);
  }
}

// From mouse, finger and keyboard on the picture to patches.

/** [down, right] of each arrow key. */
export const ARROW_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const NO_BRUSH = { isOn: () => false };

/**
 * Calls `hover(patch | null)`, `click(patch)`, `move([down, right])`, `press()` and `leave()` for what the visitor does
 * on the canvas; `getGrid()` returns {rows, columns}, or null while there is nothing to point at. `brush` is
 * {isOn(), over(patch), lift()}: while it is on, a pressed pointer brushes over patches and clicks none.
 * `isFollowed()` tells whether a finger points, too.
 */
export function listenToPatches(canvas, getGrid, actions) {
  const { hover, click, move, leave, press = () => {}, brush = NO_BRUSH, isFollowed = () => false } = actions;
  let brushed = null; // the last patch under a pressed brush
  const patchUnder = ({ clientX, clientY }) => patchAt(clientX, clientY, canvas.getBoundingClientRect(), getGrid());
  canvas.addEventListener("pointermove", (event) => {
    // A finger that scrolls past is not pointing at anything; a tap arrives as a click.
    if ((event.pointerType !== "touch" || isFollowed()) && getGrid()) hover(patchUnder(event));
    const patch = brushed === null ? null : patchUnder(event);
    if (patch !== null && patch !== brushed) brush.over(patch);
    if (patch !== null) brushed = patch;
  });
  canvas.addEventListener("pointerdown", (event) => {
    if (!getGrid() || !brush.isOn() || event.button) return;
    brushed = patchUnder(event);
    if (brushed === null) return;
    canvas.setPointerCapture(event.pointerId);
    brush.over(brushed);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      if (brushed !== null) brush.lift();
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
