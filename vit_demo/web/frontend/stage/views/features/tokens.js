// The tokens of a block as Python sends them (web/requests/tokens.py), and how alike two of them are.

import { pause, SETTLE } from "../../../shared/requests.js";
import { inkOnPaper } from "../../heatmapColours.js";
import { decodeFloat32, decodeInt16, decodeUint32 } from "../../result.js";

const FULL_LEVEL = 32767;

/**
 * Decodes a reply, of one picture or of two together. Tokens are counted through both pictures; in each, row by row and
 * without its dropped patches.
 *
 * `unit` holds the tokens at length 1, so that products are cosines; `main` the principal components that k-means uses,
 * in which 1 stands for `scale`.
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
  const main = new Float32Array(count * reply.main);
  for (let token = 0, from = 0, to = 0; token < count; token++) {
    const scale = lengths[token] > 0 ? 1 / lengths[token] : 0;
    for (let i = 0; i < depth; i++, from++) {
      const component = levels[from] * steps[i];
      unit[to++] = (component + mean[i]) * scale;
      if (i < reply.main) main[token * reply.main + i] = component;
    }
    unit[to++] = offsets[token] * scale;
  }
  const pictures = placePictures(reply.pictures);
  return {
    count,
    width: reply.width,
    scale: reply.scale,
    unit,
    main,
    mainWidth: reply.main,
    shares: reply.shares,
    seeds: reply.seeds,
    lowest: reply.lowest,
    norms,
    outliers: new Set(reply.outliers),
    classes: decodeUint32(reply.classes),
    probabilities: decodeFloat32(reply.probabilities),
    names: reply.names,
    pictures,
    edges: edgesOf(pictures, count),
  };
}

/** Each picture's grid, and the token of each of its patches; -1 for a dropped one. */
function placePictures(pictures) {
  let next = 0;
  return pictures.map(({ grid: [rows, columns], dropped, size, image }) => {
    const isDropped = new Set(dropped);
    const tokenOf = Int32Array.from({ length: rows * columns }, (_, patch) => (isDropped.has(patch) ? -1 : next++));
    return { rows, columns, numPatches: rows * columns, dropped: isDropped, size, image, tokenOf };
  });
}

/** Whether each token's patch lies on the edge of its picture. */
function edgesOf(pictures, count) {
  const edges = new Uint8Array(count);
  for (const { rows, columns, tokenOf } of pictures) {
    tokenOf.forEach((token, patch) => {
      const [row, column] = [Math.floor(patch / columns), patch % columns];
      if (token >= 0) edges[token] = Number(row === 0 || row === rows - 1 || column === 0 || column === columns - 1);
    });
  }
  return edges;
}

/** The cosine similarity of one token with every token, -1 to 1. */
export function similarities({ unit, count }, token) {
  const depth = unit.length / count;
  const query = unit.subarray(token * depth, (token + 1) * depth);
  const found = new Float32Array(count);
  for (let other = 0, at = 0; other < count; other++) {
    let sum = 0;
    for (let i = 0; i < depth; i++) sum += query[i] * unit[at++];
    found[other] = Math.max(-1, Math.min(1, sum));
  }
  return found;
}

// Loads the tokens that are to be shown: of a result and a block, alone or together with a second picture.

/**
 * `get(result, block, kept)` returns an entry, {tokens, image, error, isLoading, isSlow, progress}: `tokens` is null
 * and `isLoading` true until they are there; `isSlow` if that takes several replies; `image` is that of the second
 * picture. `kept`, {id, source}, is the second picture, or null. `onUpdate()` is called whenever an entry changes.
 */
export function createTokenLoader(request, onUpdate, openImage = decodeImage) {
  const cache = new WeakMap(); // result -> Map from block and second picture to its entry
  let current = null; // only what is to be shown keeps the server busy
  let forget = () => {};

  function get(result, block, kept) {
    const entries = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = `${block} ${kept ? kept.id : ""}`;
    const known = entries.get(key);
    if (known) {
      current = known;
      forget = () => entries.delete(key);
      return known;
    }
    const isFirst = entries.size === 0;
    const entry = { tokens: null, image: null, error: "", isLoading: true, isSlow: false, progress: null };
    entries.set(key, entry);
    current = entry;
    forget = () => entries.delete(key);
    load(entry, result, block, kept, isFirst ? 0 : SETTLE).then((isDone) => {
      if (!isDone) entries.delete(key);
      onUpdate();
    });
    return entry;
  }

  /** Resolves to false if the tokens were no longer wanted. */
  async function load(entry, result, block, kept, delay) {
    const isCurrent = () => entry === current;
    await pause(delay);
    if (!isCurrent()) return false;
    const onProgress = (progress) => {
      Object.assign(entry, { isSlow: true, progress });
      onUpdate();
    };
    const fields = { kind: "tokens", source: result.source, block, other: kept?.source };
    const reply = await request(fields, { isCurrent, onProgress });
    if (!reply) return false;
    entry.isLoading = false;
    if (reply.error) {
      entry.error = reply.error;
      return true;
    }
    const second = reply.result.pictures[1];
    entry.image = second ? await openImage(second.image, result.pixelated) : null;
    entry.tokens = decodeTokens(reply.result);
    return true;
  }

  /** Lets tokens that could not be loaded be requested again. */
  function retry() {
    if (current?.error) forget();
  }

  return { get, retry };
}

/** The picture at an address; a drawing as ink on paper. */
async function decodeImage(url, isDrawing) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return isDrawing ? inkOnPaper(image) : image;
}
