// @ts-check
// A drawing is a list of strokes; a stroke is {width, points}, all lengths as fractions of the pad's side.
// The screen at any density, undo and the picture for the model all use the same list. A stroke as wide as the eraser takes
// away the ink of those before it.

import { greyPng } from "../shared/greyPng.js";

export const PENS = { thin: 0.055, medium: 1 / 12, thick: 0.115, eraser: 0.14 };
const INK = "#16171b";
const NEAREST = 0.002; // closer points are left out

/** Traces a smooth curve along the points: quadratic pieces that meet halfway between neighbours. */
function tracePath(context, points, side) {
  const at = ([x, y]) => [x * side, y * side];
  context.beginPath();
  context.moveTo(...at(points[0]));
  for (let i = 1; i < points.length - 1; i++) {
    const [x, y] = points[i];
    const [nextX, nextY] = points[i + 1];
    context.quadraticCurveTo(...at([x, y]), ...at([(x + nextX) / 2, (y + nextY) / 2]));
  }
  const [x, y] = at(points.at(-1));
  // A dot needs some length, because a canvas draws no cap on a line of length 0.
  context.lineTo(x + (points.length === 1 ? 0.01 : 0), y);
}

function pathLength(points) {
  return points.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - points[i][0], y - points[i][1]), 0.001);
}

/** How long all strokes are together, as a share of the pad's side. */
export const inkLength = (strokes) => strokes.reduce((sum, { points }) => sum + pathLength(points), 0);

/** Whether two drawings begin with the same stroke. */
export function sameStart(/** @type {any[]} */ strokes, /** @type {any[]} */ others) {
  const [one, other] = [strokes, others].map((each) => each[0]?.points[0]);
  return Boolean(one && other) && Math.hypot(one[0] - other[0], one[1] - other[1]) < 0.01;
}

/** The beginning of strokes, up to a length of ink. */
export function cutStrokes(strokes, length) {
  const cut = [];
  let left = length;
  for (const { width, points } of strokes) {
    if (left <= 0) break;
    const kept = [points[0]];
    for (let i = 1; i < points.length && left > 0; i++) {
      const [[x, y], [nextX, nextY]] = [points[i - 1], points[i]];
      const piece = Math.hypot(nextX - x, nextY - y);
      const share = Math.min(1, left / Math.max(piece, 1e-9));
      kept.push([x + share * (nextX - x), y + share * (nextY - y)]);
      left -= piece;
    }
    cut.push({ width, points: kept });
  }
  return cut;
}

/** Draws strokes into a square of `side` device pixels, up to `progress` (0 to 1) of their whole length. */
export function drawStrokes(context, strokes, side, { ink = INK, progress = 1 } = {}) {
  let left = progress * inkLength(strokes);
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = ink;
  for (const { width, points } of strokes) {
    if (left <= 0) break;
    context.globalCompositeOperation = width === PENS.eraser ? "destination-out" : "source-over";
    context.lineWidth = width * side;
    context.setLineDash(progress < 1 ? [left * side, 2 * side * points.length] : []);
    tracePath(context, points, side);
    context.stroke();
    left -= pathLength(points);
  }
  context.setLineDash([]);
  context.globalCompositeOperation = "source-over";
}

/** The strokes of an example digit, drawn with the medium pen. */
export function exampleStrokes(digits, digit) {
  return digits[digit].map((points) => ({ width: PENS.medium, points }));
}

const PICTURE_SIDE = 280;

/** Black ink on white paper, as the model gets it, on a canvas; null where the browser hides drawings from pages. */
function drawn(strokes) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = PICTURE_SIDE;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  context.fillStyle = "#000";
  context.fillRect(0, 0, 1, 1);
  if (context.getImageData(0, 0, 1, 1).data[0] > 32) return null; // what protects from fingerprinting reads white
  context.clearRect(0, 0, 1, 1);
  drawStrokes(context, strokes, PICTURE_SIDE, { ink: "#000" });
  context.globalCompositeOperation = "destination-over"; // the paper is below what the eraser left
  context.fillStyle = "#fff";
  context.fillRect(0, 0, PICTURE_SIDE, PICTURE_SIDE);
  return canvas;
}

/** What the model gets, as a PNG data URL; null where the browser hides drawings from pages. */
export const toDataUrl = (strokes) => drawn(strokes)?.toDataURL("image/png") ?? null;

/** The same pixels in a sixth of the bytes, for drawings that change; resolves to null where there are none. */
export async function toSmallUrl(strokes) {
  const canvas = drawn(strokes);
  const context = /** @type {CanvasRenderingContext2D | undefined} */ (canvas?.getContext("2d"));
  return context ? greyPng(context.getImageData(0, 0, PICTURE_SIDE, PICTURE_SIDE)) : null;
}

/** Adds points to those of a stroke, leaving out those that hardly moved. */
export function addPoints(kept, points, spacing = NEAREST) {
  for (const [x, y] of points) {
    const [lastX, lastY] = kept.at(-1);
    if (Math.hypot(x - lastX, y - lastY) >= spacing) kept.push([x, y]);
  }
}
