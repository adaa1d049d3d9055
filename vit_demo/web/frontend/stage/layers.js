// @ts-check
// What lies over a picture: its patches in the colours of their tokens, and the lines where segments meet.

import { pixelCanvas } from "../shared/dom.js";

/** The colours of one picture's tokens, [red, green, blue, alpha] for each, as a canvas with one pixel for each patch. */
export const layerOf = (grid, colours) => pixelCanvas(patchPixels(grid, colours), grid.columns, grid.rows);

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

/**
 * The sides between patches of different segments, each [column, row, column, row] of its ends, in patches: lines that can be
 * seen whatever colours somebody can tell apart. `segments` holds the segment of each token; a dropped patch has none.
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
