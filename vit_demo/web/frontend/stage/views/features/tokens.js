// @ts-check
// The tokens of a block as Python sends them (web/requests/tokens.py), and how alike two of them are.

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
