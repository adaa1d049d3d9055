// @ts-check
// The picture under its heatmap, with its grid and the marked patches, at the screen's own density.

import { fitInside, middlePatch, neighbour, patchAt, patchBox } from "../shared/geometry.js";
import { heatLayer, PHOTO_WHITE } from "./heatmapColours.js";

const FINEST_GRID = 8; // CSS pixels; lines between smaller patches would hide the picture
const SMALLEST_OUTLINE = 9; // CSS pixels
const SMALLEST_LABELLED = 20; // CSS pixels
const HATCH = 7; // CSS pixels between two lines
const NONE = new Set();

const boxes = new WeakMap(); // element -> its size, so that a frame need not wait for the page's layout; null if it has changed

let resizes = /** @type {ResizeObserver | null} */ (null);

/** The size of an element in CSS pixels, which is read again once it has changed. */
function sizeOf(element) {
  resizes ??= new ResizeObserver((entries) => {
    for (const { target } of entries) boxes.set(target, null);
  });
  if (!boxes.has(element)) resizes.observe(element);
  const { clientWidth, clientHeight } = boxes.get(element) ?? element;
  boxes.set(element, clientWidth ? { clientWidth, clientHeight } : null); // what is hidden may be shown within the same frame
  return [clientWidth, clientHeight];
}

/** Fits the canvas into the box that it is in, whose size does not depend on it, and returns its size in CSS pixels. */
export function fitCanvas(canvas, pictureSize) {
  const size = fitInside(pictureSize, sizeOf(canvas.parentElement));
  const pixels = size.map((side) => Math.round(side * devicePixelRatio));
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels;
    [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  }
  return size;
}

/**
 * @typedef {object} Painting
 * @property {any} image
 * @property {boolean} pixelated
 * @property {HTMLCanvasElement | null} [ink] of a digit, over its layer
 * @property {HTMLCanvasElement | null} [layer] one pixel for each patch
 * @property {boolean} [smooth] whether its neighbours blend
 * @property {Set<number>} [dropped]
 * @property {number[][]} [outlined] [patch, line width]
 * @property {number[][]} [borders] [column, row, column, row] of lines between patches
 * @property {[number, string][]} [labels] [patch, short text]
 * @property {boolean} [disc] whether labels are on dark discs, so that they can be read on any picture
 * @property {boolean} [hasGrid]
 */

/**
 * Paints a picture, the colours of its patches, its grid, {rows, columns}, and what is marked.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} size in CSS pixels
 * @param {any} grid
 * @param {Painting} painting
 */
export function paintPatches(
  canvas,
  [width, height],
  grid,
  {
    image,
    pixelated,
    ink = null,
    layer = null,
    smooth = false,
    dropped = NONE,
    outlined = [],
    borders = [],
    labels = [],
    disc = false,
    hasGrid = true,
  },
) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !pixelated;
  context.drawImage(image, 0, 0, width, height);
  if (layer && !pixelated) removeColours(context, width, height);
  context.imageSmoothingEnabled = Boolean(smooth);
  if (layer) context.drawImage(layer, 0, 0, width, height);
  context.imageSmoothingEnabled = false;
  if (layer && ink) context.drawImage(ink, 0, 0, width, height);
  const box = { left: 0, top: 0, width, height };
  if (dropped.size) hatchPatches(context, box, grid, dropped);
  if (hasGrid) paintGrid(context, box, { ...grid, pixelated });
  if (borders.length) paintBorders(context, [width / grid.columns, height / grid.rows], borders);
  paintLabels(context, box, grid, labels, disc);
  for (const [patch, weight] of outlined) outlinePatch(context, patchBox(patch, box, grid), weight);
}

/**
 * How a map is painted, one record for the stage, the views and what is saved: the `map` with a value for each patch, or null,
 * its `style` (see heatmapColours.js), `opacity`, whether it is `smooth`, and the patches that are `dropped`, a Set.
 */
export const lookOf = ({ opacity, smooth }, map, style, dropped) => ({ map, style, opacity, smooth, dropped });

/**
 * Paints a result with a look, or parts of one.
 *
 * @param {any} look may have the parts of a `Painting`, too
 */
export function paintResult(canvas, size, result, look) {
  const { map, style, opacity, queried = null, hovered = null, ...others } = look;
  const layer = map && heatLayer(look, result);
  const outlined = [
    ...(hovered !== null && hovered !== queried ? [[hovered, 1]] : []),
    ...(queried === null ? [] : [[queried, 2.5]]),
  ];
  paintPatches(canvas, size, result, {
    image: result.picture,
    pixelated: result.pixelated,
    ink: result.ink,
    layer,
    outlined,
    ...others,
  });
}

/** Makes a photo a pale grey: its own colours are easily taken for those of the map. */
function removeColours(context, width, height) {
  context.globalCompositeOperation = "saturation";
  context.fillStyle = "grey";
  context.fillRect(0, 0, width, height);
  context.globalCompositeOperation = "source-over";
  context.fillStyle = `rgb(255 255 255 / ${100 * PHOTO_WHITE}%)`;
  context.fillRect(0, 0, width, height);
}

export function paintGrid(context, { left = 0, top = 0, width, height }, { rows, columns, pixelated }) {
  if (Math.min(width / columns, height / rows) < FINEST_GRID) return;
  context.beginPath();
  for (let column = 1; column < columns; column++) {
    const x = left + (column * width) / columns;
    context.moveTo(x, top);
    context.lineTo(x, top + height);
  }
  for (let row = 1; row < rows; row++) {
    const y = top + (row * height) / rows;
    context.moveTo(left, y);
    context.lineTo(left + width, y);
  }
  context.strokeStyle = pixelated ? "rgb(0 0 0 / 12%)" : "rgb(255 255 255 / 16%)";
  context.lineWidth = 1;
  context.stroke();
}

/** Dropped patches: grey, hatched, nothing of the picture left. */
export function hatchPatches(context, box, result, dropped) {
  context.save();
  context.beginPath();
  for (const patch of dropped) {
    const { left, top, width, height } = patchBox(patch, box, result);
    context.rect(left, top, width, height);
  }
  context.fillStyle = "#6f727a";
  context.fill();
  context.clip();
  context.beginPath();
  for (let x = -box.height; x < box.width; x += HATCH) {
    context.moveTo(box.left + x, box.top);
    context.lineTo(box.left + x + box.height, box.top + box.height);
  }
  context.strokeStyle = "#8d9099";
  context.lineWidth = HATCH / 4;
  context.stroke();
  context.restore();
}

function paintBorders(context, [width, height], borders) {
  context.beginPath();
  for (const [fromColumn, fromRow, toColumn, toRow] of borders) {
    context.moveTo(fromColumn * width, fromRow * height);
    context.lineTo(toColumn * width, toRow * height);
  }
  context.lineCap = "square";
  paintHalo(context, 1.5, () => context.stroke());
}

function paintLabels(context, box, grid, labels, disc) {
  if (!labels.length) return; // a font has the styles of the page computed
  const side = disc ? 28 : Math.min(box.width / grid.columns, box.height / grid.rows);
  if (side < SMALLEST_LABELLED) return;
  context.font = `600 ${Math.round(side * 0.42)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = disc ? 1.5 : 3;
  context.lineJoin = "round";
  for (const [patch, text] of labels) {
    const { left, top, width, height } = patchBox(patch, box, grid);
    const [x, y] = [left + width / 2, top + height / 2];
    if (disc) {
      context.beginPath();
      context.arc(x, y, 10, 0, 2 * Math.PI);
      context.fillStyle = "rgb(23 24 28 / 85%)";
      context.fill();
      context.strokeStyle = "#fff";
      context.stroke();
    } else {
      context.strokeStyle = "rgb(0 0 0 / 55%)";
      context.strokeText(text, x, y);
    }
    context.fillStyle = "#fff";
    context.fillText(text, x, y + 0.5);
  }
}

/** A line of white in a dark halo stands out from any picture and heatmap. */
function paintHalo(context, width, stroke) {
  for (const [colour, wider] of /** @type {[string, number][]} */ ([
    ["rgb(0 0 0 / 55%)", 2.5],
    ["#fff", 0],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = width + wider;
    stroke();
  }
}

/** Never too small to find. */
export function outlinePatch(context, patch, weight) {
  const width = Math.max(patch.width, SMALLEST_OUTLINE);
  const height = Math.max(patch.height, SMALLEST_OUTLINE);
  const x = patch.left + (patch.width - width) / 2;
  const y = patch.top + (patch.height - height) / 2;
  context.lineJoin = "round";
  paintHalo(context, weight, () => context.strokeRect(x, y, width, height));
}

// From mouse, finger and keyboard on the picture to patches.

/** [down, right] of each arrow key. */
const ARROW_STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const NO_BRUSH = { isOn: () => false, over: (/** @type {number} */ _patch) => {}, lift: () => {} };

/**
 * Calls `hover(patch | null)`, `click(patch)`, `press()` and `leave()` for what the visitor does on the canvas, and `move(patch)`
 * for an arrow key, which leads from the patch `at()` past those that are `skipped(patch)`; `getGrid()` returns {rows, columns},
 * or null while there is nothing to point at. `brush` is {isOn(), over(patch), lift()}: while it is on, a pressed pointer
 * brushes over patches and clicks none. `shortcut(key)` returns whether another
 * key does something.
 */
export function listenToPatches(canvas, getGrid, actions) {
  const {
    hover,
    click,
    leave,
    at,
    move = hover,
    press = () => {},
    skipped = () => false,
    brush = NO_BRUSH,
    shortcut = () => false,
  } = actions;
  let first = /** @type {number | null} */ (null); // the patch that a finger touched
  let brushed = /** @type {number | null} */ (null); // the last patch under a pressed brush
  const patchUnder = ({ clientX, clientY }) => patchAt(clientX, clientY, canvas.getBoundingClientRect(), getGrid());

  function brushOver(patch) {
    if (patch !== null && patch !== brushed) brush.over(patch);
    brushed = patch ?? brushed;
  }

  function end() {
    if (brushed !== null) brush.lift();
    first = brushed = null;
  }

  function step(direction) {
    const start = at();
    if (start === null) return move(middlePatch(getGrid()));
    let [patch, next] = [start, neighbour(start, direction, getGrid())];
    while (next !== patch && skipped(next)) [patch, next] = [next, neighbour(next, direction, getGrid())];
    if (!skipped(next)) move(next);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (!getGrid() || !brush.isOn() || event.button) return;
    const patch = patchUnder(event);
    if (patch === null) return;
    if (event.pointerType === "touch") first = patch;
    else brushOver(patch);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!getGrid()) return;
    const patch = patchUnder(event);
    if (event.pointerType !== "touch") hover(patch);
    if (brushed === null && first !== null && patch !== first) brushOver(first);
    if (brushed !== null) brushOver(patch);
  });
  canvas.addEventListener("pointercancel", end); // a second finger
  canvas.addEventListener("pointerup", () => {
    if (first !== null) brushOver(first);
    end();
  });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("click", (event) => {
    const patch = getGrid() && patchUnder(event);
    if (patch !== null && !brush.isOn()) click(patch);
  });
  canvas.addEventListener("keydown", (event) => {
    if (!getGrid() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROW_STEPS) step(ARROW_STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") press();
    else if (event.key === "Escape" || event.key === "Home") leave();
    else if (!shortcut(event.key.toLowerCase())) return;
    event.preventDefault();
  });
}
