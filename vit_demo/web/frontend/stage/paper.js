// @ts-check
// The paper of the picture: the ink where it was drawn, the network's squares over it, and how both become what the network
// gets. Then what a square looks at, and squares that are rubbed out.

import { drawStrokes, inkLength } from "../pad/strokes.js";
import { isNew, make } from "../shared/dom.js";
import { patchBox } from "../shared/geometry.js";
import { heatLayer, paperColour } from "./heatmapColours.js";
import { hatchPatches, outlinePatch, paintGrid } from "./picture.js";

const INK_GOES = [0.3, 0.85]; // between these shares of the glide the strokes fade
const BLUR_COMES = [0.05, 0.55]; // what the network gets, at first without edges
const BLUR_GOES = [0.75, 1];
const PIXELS_COME = [0.45, 0.95];
const THREAD = 1.1; // of an even share; what is below has no thread
const THREAD_WIDTH = 44; // CSS pixels of all attention
const RISE = 18; // CSS pixels by which a square that is rubbed out goes up
const GROWTH = 0.16;

const within = (value, /** @type {number[]} */ [from, to]) => Math.min(1, Math.max(0, (value - from) / (to - from)));
const between = (from, to, share) => from + (to - from) * share;

/** Where the network's square lies on a canvas of a width, while the paper becomes it. */
export function placeOfBox(box, seen, width) {
  const view = {
    left: between(0, box.left, seen),
    top: between(0, box.top, seen),
    side: between(1, box.side, seen),
  };
  const scale = width / view.side;
  return {
    view: { left: -view.left * scale, top: -view.top * scale, side: scale },
    place: {
      left: (box.left - view.left) * scale,
      top: (box.top - view.top) * scale,
      width: box.side * scale,
      height: box.side * scale,
    },
  };
}

const sheets = new WeakMap(); // canvas -> a canvas of the same size for ink alone, of which the eraser takes away
let glow = /** @type {any} */ (null); // the same each time

/** The ink as it was drawn, on a canvas of its own. */
function inkSheet(canvas, strokes, view, progress) {
  const sheet = sheets.get(canvas) ?? sheets.set(canvas, make("canvas")).get(canvas);
  if (!isNew(sheet, [canvas.width, canvas.height, strokes, inkLength(strokes), view, progress])) return sheet;
  [sheet.width, sheet.height] = [canvas.width, canvas.height];
  const context = sheet.getContext("2d");
  context.translate(view.left, view.top);
  drawStrokes(context, strokes, view.side, { progress });
  return sheet;
}

/** Colours that have no edges, beyond their squares neither: they fade into one more patch on each side. */
function glowOf(heat) {
  glow ??= make("canvas");
  Object.assign(glow, { width: heat.width + 2, height: heat.height + 2 }); // it is empty then
  glow.getContext("2d").drawImage(heat, 1, 1);
  return glow;
}

/**
 * Paints the paper. `look` is that of a result with {strokes, progress, seen, box, lines, result, hovered}: `progress` of the ink is shown, `seen` is 0 for the paper and 1 for the network's picture, and without a result there is paper and ink alone. While the squares move, so that `lines` is below 1, their colours are a glow.
 */
export function paintPaper(canvas, /** @type {number[]} */ [width, height], look) {
  const { strokes, progress = 1, seen, box, lines, result, map, smooth, hovered = null, dropped } = look;
  const context = canvas.getContext("2d");
  const density = canvas.width / width;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.fillStyle = paperColour();
  context.fillRect(0, 0, width, height);
  const { view, place } = placeOfBox(box ?? { left: 0, top: 0, side: 1 }, seen, width);
  const draw = (/** @type {HTMLCanvasElement} */ layer) =>
    context.drawImage(layer, place.left, place.top, place.width, place.height);
  if (result && map) {
    const heat = heatLayer(look, result);
    const [wide, high] = [place.width / heat.width, place.height / heat.height];
    if (lines < 1) {
      const [left, top, width, height] = [
        place.left - wide,
        place.top - high,
        place.width + 2 * wide,
        place.height + 2 * high,
      ];
      Object.assign(context, { globalAlpha: 1 - lines, imageSmoothingEnabled: true });
      context.drawImage(glowOf(heat), left, top, width, height);
    }
    Object.assign(context, { globalAlpha: lines, imageSmoothingEnabled: Boolean(smooth) });
    draw(heat);
  }
  if (seen < 1) {
    context.globalAlpha = 1 - within(seen, INK_GOES);
    const inPixels = Object.fromEntries(Object.entries(view).map(([name, value]) => [name, value * density]));
    context.drawImage(inkSheet(canvas, strokes, inPixels, progress), 0, 0, width, height);
  }
  const levels = [
    [within(seen, BLUR_COMES) * (1 - within(seen, BLUR_GOES)), true],
    [within(seen, PIXELS_COME), false],
  ];
  for (const [level, isBlurred] of levels) {
    Object.assign(context, { globalAlpha: level, imageSmoothingEnabled: isBlurred });
    if (result?.ink && level) draw(result.ink);
  }
  context.globalAlpha = 1;
  if (!result) return;
  if (dropped.size) hatchPatches(context, place, result, dropped);
  context.globalAlpha = lines;
  paintGrid(context, place, result);
  context.strokeStyle = "rgb(0 0 0 / 12%)";
  context.strokeRect(place.left, place.top, place.width, place.height);
  context.globalAlpha = 1;
  if (hovered !== null && seen === 0) outlinePatch(context, patchBox(hovered, place, result), 1);
}

/** Threads from a square to those it looks at most, itself among them, as thick as its attention, over a painted picture. */
export function paintThreads(canvas, /** @type {number[]} */ [width, height], result, from, map, colour) {
  const context = canvas.getContext("2d");
  const middle = (patch) => {
    const place = patchBox(patch, { left: 0, top: 0, width, height }, result);
    return [place.left + place.width / 2, place.top + place.height / 2];
  };
  const [startX, startY] = middle(from);
  const loop = Math.min(16, (0.2 * height) / result.rows); // the radius of a thread to itself
  context.lineCap = "round";
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = 0.8;
  for (const [patch, share] of map.entries()) {
    if (share < THREAD / map.length) continue;
    const [x, y] = middle(patch);
    const bend = [(startX + x) / 2 + 0.16 * (y - startY), (startY + y) / 2 - 0.16 * (x - startX)];
    context.lineWidth = Math.max(1, THREAD_WIDTH * share);
    context.beginPath();
    context.moveTo(startX, startY);
    if (patch === from) context.arc(startX, startY - loop, loop, 0.5 * Math.PI, 2.5 * Math.PI);
    else context.quadraticCurveTo(bend[0], bend[1], x, y);
    context.stroke();
  }
  context.globalAlpha = 1;
  context.beginPath();
  context.arc(startX, startY, 5, 0, 2 * Math.PI);
  context.fill();
}

/** Squares that are being rubbed out, over a painted picture: they rise and fade. `lifted` is a Map from patch to 0 to 1. */
export function paintLifted(canvas, /** @type {number[]} */ [width, height], result, lifted) {
  const context = canvas.getContext("2d");
  const { picture, columns, rows } = result;
  const [pictureWidth, pictureHeight] = result.size;
  context.imageSmoothingEnabled = !result.pixelated;
  for (const [patch, away] of lifted) {
    const from = patchBox(patch, { left: 0, top: 0, width: pictureWidth, height: pictureHeight }, { rows, columns });
    const to = patchBox(patch, { left: 0, top: 0, width, height }, { rows, columns });
    const size = 1 + GROWTH * away;
    context.save();
    context.globalAlpha = 1 - away;
    context.shadowColor = "rgb(0 0 0 / 25%)";
    context.shadowBlur = RISE;
    context.translate(to.left + to.width / 2, to.top + to.height / 2 - RISE * away);
    context.scale(size, size);
    context.drawImage(
      picture,
      ...[from.left, from.top, from.width, from.height],
      ...[-to.width / 2, -to.height / 2, to.width, to.height],
    );
    context.restore();
  }
}
