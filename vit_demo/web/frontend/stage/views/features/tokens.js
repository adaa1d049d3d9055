// @ts-check
// The tokens of a block as Python sends them (web/requests/tokens.py), and what lies over a picture in their colours.

import { pixelCanvas, pixelsOf } from "../../../shared/dom.js";
import { decodeBytes, decodeFloat32, decodeInt16, decodeUint32, tokensOfPatches } from "../../result.js";

const FULL_LEVEL = 32767;

/**
 * Decodes a reply, of one picture or of two together. Tokens are counted through both pictures; in each, row by row and
 * without its dropped patches.
 *
 * `unit` holds the tokens at length 1, so that products are cosines; `components` and `foreground` three principal
 * components a token, `scores`, in which 1 stands for `scale`, and their `shares` of the variance; `segments` those of
 * k-means for one segment, then two, and so on.
 */
export function decodeTokens(reply) {
  const levels = decodeInt16(reply.levels);
  const [peaks, mean, offsets, lengths, norms] = ["peaks", "mean", "offsets", "lengths", "norms"].map((name) =>
    decodeFloat32(reply[name]),
  );
  const steps = peaks.map((peak) => peak / FULL_LEVEL);
  const count = lengths.length;
  const depth = mean.length;
  const unit = new Float32Array(count * (depth + 1));
  const scores = new Float32Array(3 * count);
  for (let token = 0, from = 0, to = 0; token < count; token++) {
    const scale = lengths[token] > 0 ? 1 / lengths[token] : 0;
    for (let i = 0; i < depth; i++, from++) {
      const component = levels[from] * steps[i];
      unit[to++] = (component + mean[i]) * scale;
      if (i < 3) scores[3 * token + i] = component;
    }
    unit[to++] = offsets[token] * scale;
  }
  const segments = decodeBytes(reply.segments);
  return {
    count,
    width: reply.width,
    scale: reply.scale,
    unit,
    components: { scores, shares: [0, 1, 2].map((i) => reply.shares[i] ?? 0) },
    foreground: { scores: decodeFloat32(reply.foreground.scores), shares: reply.foreground.shares },
    segments,
    mostSegments: segments.length / count,
    lowest: reply.lowest,
    norms,
    outliers: new Set(reply.outliers),
    classes: decodeUint32(reply.classes),
    probabilities: decodeFloat32(reply.probabilities),
    names: reply.names,
    pictures: placePictures(reply.pictures),
  };
}

/** Each picture's grid, and the token of each of its patches; -1 for a dropped one. */
function placePictures(pictures) {
  let first = 0;
  return pictures.map(({ grid: [rows, columns], dropped, size, image }) => {
    const numPatches = rows * columns;
    const tokenOf = tokensOfPatches(numPatches, first, dropped);
    first += numPatches - dropped.length;
    return { rows, columns, numPatches, dropped: new Set(dropped), size, image, tokenOf };
  });
}

/** The colours of one picture's tokens, [red, green, blue, alpha] for each, as a canvas with one pixel for each patch. */
export const layerOf = (grid, colours) => pixelCanvas(patchPixels(grid, colours), grid.columns, grid.rows);

/** The colours of one picture as pixels, RGBA, one a patch; a dropped patch stays clear. */
export const patchPixels = ({ tokenOf }, colours) =>
  pixelsOf(tokenOf.length, (patch) => colours[tokenOf[patch]] ?? [0, 0, 0, 0]);

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
