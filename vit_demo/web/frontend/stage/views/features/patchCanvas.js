// @ts-check
// One picture of the features: under the colours of its patches, with its grid, its outlines and short labels.

import { pixelCanvas } from "../../../shared/dom.js";
import { patchBox } from "../../../shared/geometry.js";
import { hatchPatches } from "../../dropping.js";
import { outlinePatch, paintGrid, paintPicture, removeColours } from "../../pictureCanvas.js";

const LONGEST_LABEL = 2; // characters
const SMALLEST_LABELLED = 26; // CSS pixels

/**
 * Paints a picture, {rows, columns, dropped, tokenOf}, from its `image`, and what its tokens show.
 * `colours` has an entry for each token; `outlined` lists [patch, line width];
 * `labels` holds the text and `segments` the segment of each token. All of these may be missing.
 */
export function paintTokens(
  canvas,
  [width, height],
  picture,
  { image, pixelated, colours, outlined = [], labels, segments },
) {
  const context = paintPicture(canvas, [width, height], image, pixelated);
  const box = { left: 0, top: 0, width, height };
  if (colours && !pixelated) removeColours(context, width, height);
  if (colours) {
    context.imageSmoothingEnabled = false;
    const pixels = patchPixels(picture, colours);
    context.drawImage(pixelCanvas(pixels, picture.columns, picture.rows), 0, 0, width, height);
  }
  if (picture.dropped.size) hatchPatches(context, box, picture, picture.dropped);
  const side = Math.min(width / picture.columns, height / picture.rows);
  paintGrid(context, box, picture);
  if (segments) paintBorders(context, [width / picture.columns, height / picture.rows], bordersOf(picture, segments));
  if (labels && side >= SMALLEST_LABELLED) paintLabels(context, box, picture, labels, side);
  for (const [patch, weight] of outlined) outlinePatch(context, patchBox(patch, box, picture), weight);
}

/** White with a dark edge, so that the lines stand out from any two colours. */
function paintBorders(context, [width, height], borders) {
  context.beginPath();
  for (const [fromColumn, fromRow, toColumn, toRow] of borders) {
    context.moveTo(fromColumn * width, fromRow * height);
    context.lineTo(toColumn * width, toRow * height);
  }
  context.lineCap = "square";
  for (const [colour, weight] of [
    ["rgb(0 0 0 / 45%)", 3],
    ["#fff", 1.5],
  ]) {
    context.strokeStyle = colour;
    context.lineWidth = weight;
    context.stroke();
  }
}

function paintLabels(context, box, picture, labels, side) {
  context.font = `600 ${Math.round(side * 0.42)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = "#fff";
  context.strokeStyle = "rgb(0 0 0 / 55%)";
  context.lineWidth = 3;
  context.lineJoin = "round";
  picture.tokenOf.forEach((token, patch) => {
    if (token < 0 || labels[token].length > LONGEST_LABEL) return;
    const { left, top, width, height } = patchBox(patch, box, picture);
    const place = [labels[token], left + width / 2, top + height * 0.53];
    context.strokeText(...place);
    context.fillText(...place);
  });
}

// Where the segments of a picture meet: lines that can be seen whatever colours somebody can tell apart.

/**
 * The sides between patches of different segments, each [column, row, column, row] of its ends, in patches.
 * `segments` holds the segment of each token; a dropped patch has none and no border.
 */
export function bordersOf({ rows, columns, tokenOf }, segments) {
  const segmentOf = (row, column) => {
    const token = tokenOf[row * columns + column];
    return token < 0 ? null : segments[token];
  };
  const borders = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const here = segmentOf(row, column);
      if (here === null) continue;
      const right = column + 1 < columns ? segmentOf(row, column + 1) : null;
      const below = row + 1 < rows ? segmentOf(row + 1, column) : null;
      if (right !== null && right !== here) borders.push([column + 1, row, column + 1, row + 1]);
      if (below !== null && below !== here) borders.push([column, row + 1, column + 1, row + 1]);
    }
  }
  return borders;
}

/** The colours of one picture as pixels, RGBA, one a patch; a dropped patch stays clear. */
export function patchPixels({ tokenOf }, colours) {
  const pixels = new Uint8ClampedArray(4 * tokenOf.length);
  tokenOf.forEach((token, patch) => {
    if (token < 0) return;
    const [red, green, blue, alpha] = colours[token];
    pixels.set([red, green, blue, 255 * alpha], 4 * patch);
  });
  return pixels;
}
