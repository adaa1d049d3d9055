// @ts-check
// A result: the payload of one forward pass, decoded, with everything that can be drawn without another request.

import { loadImage, make } from "../shared/dom.js";
import { translateName } from "../shared/language.js";
import { inkOf, onPaper } from "./heatmapColours.js";

/**
 * Decodes a payload and its picture.
 * `image` is the address of what the model saw; `picture` is what is shown of it, with its address; a digit's `ink` lies over
 * the colours of its map. Of a photo that changes the server sends none: `seenOf(payload)` is what the model saw.
 *
 * @param {import("../types").ResultPayload} payload
 * @param {(payload: import("../types").ResultPayload) => any} [seenOf]
 */
export async function openResult(payload, seenOf) {
  const seen = payload.image || !seenOf ? await loadImage(payload.image) : seenOf(payload);
  const ink = payload.pixelated ? inkOf(seen) : null;
  const picture = ink ? onPaper(ink) : seen;
  const pictureUrl = ink ? picture.toDataURL() : payload.image;
  return { ...decodeResult(payload), picture, ink, pictureUrl };
}

/** The part of a photo that the model saw, as a canvas; bars beside it are grey. */
export function partOfPhoto(photo, { size: [width, height], photo: { box } }) {
  const canvas = make("canvas", { width, height });
  const context = canvas.getContext("2d");
  const [left, top, right, bottom] = box.map((share, i) => share * (i % 2 ? photo.height : photo.width));
  context.fillStyle = "grey";
  context.fillRect(0, 0, width, height);
  context.drawImage(photo, left, top, right - left, bottom - top, 0, 0, width, height);
  return canvas;
}

/** @param {import("../types").ResultPayload} payload */
export function decodeResult(payload) {
  const [rows, columns] = payload.grid;
  const numPatches = rows * columns;
  const { num_prefix_tokens: numPrefixTokens, dropped } = payload;
  return {
    run: payload.run,
    source: payload.source, // what a request about this result repeats
    image: payload.image,
    size: payload.size,
    pixelated: payload.pixelated,
    photo: payload.photo,
    rows,
    columns,
    numPatches,
    numTokens: numPrefixTokens + numPatches - dropped.length,
    numBlocks: payload.num_blocks,
    numHeads: payload.num_heads,
    traceBytes: payload.trace_bytes,
    hasClassToken: payload.class_token,
    pool: payload.pool, // what the head reads
    dropped,
    silent: payload.silent, // (block, head) of each
    box: payload.box && boxOf(payload.box), // of a digit: where the network's square lies on its paper
    early: payload.early && decodeFloat32(payload.early), // [blocks + 1, classes]: the answers before and after each block
    tokenOf: tokensOfPatches(numPatches, numPrefixTokens, dropped),
    predictions: decodePredictions(payload.predictions), // of every class, most likely first
    confident: payload.confident,
    note: payload.note,
    operations: payload.operations, // multiplications with an addition, of one pass
    milliseconds: payload.milliseconds,
    device: payload.device,
    attentionMaps: decodeMaps(payload.attention_maps),
    rollout: decodeMaps(payload.rollout),
    traces: new Map(Object.entries(payload.trace ?? {}).map(([block, trace]) => [Number(block), decodeTrace(trace)])),
    attentionCache: new Map(),
  };
}

/** A square, as shares of the paper's side. */
const boxOf = (/** @type {number[]} */ [top, left, side]) => ({ top, left, side });

/** @param {import("../types").PredictionsPayload} predictions */
function decodePredictions({ indices, probabilities, scores, labels }) {
  const [index, probability] = [decodeUint16(indices), decodeFloat32(probabilities)];
  return labels.map((name, i) => ({
    ...{ index: index[i], name, probability: probability[i], scores },
    get label() {
      return translateName(name);
    },
  }));
}

/** The index of each patch's token, counted from `first`; -1 for a dropped patch. */
export function tokensOfPatches(numPatches, first, dropped) {
  const isDropped = new Set(dropped);
  let next = first;
  return Int32Array.from({ length: numPatches }, (_, patch) => (isDropped.has(patch) ? -1 : next++));
}

// Base64 from Python to typed arrays. Python and every browser's platform are little-endian.

export function decodeBytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export const decodeFloat32 = (text) => new Float32Array(decodeBytes(text).buffer);

export const decodeUint32 = (text) => new Uint32Array(decodeBytes(text).buffer);

export const decodeInt16 = (text) => new Int16Array(decodeBytes(text).buffer);

const decodeUint16 = (text) => new Uint16Array(decodeBytes(text).buffer);

export function decodeFloat16(text) {
  float16Table ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => float16ToNumber(bits));
  const table = float16Table;
  return Float32Array.from(decodeUint16(text), (bits) => table[bits]);
}

/**
 * All 65,536 half-precision numbers, so that decoding half a million of them is a look-up each.
 * @type {Float32Array | undefined}
 */
let float16Table;

function float16ToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 0x1f) return fraction ? Number.NaN : sign * Infinity;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/** Maps [..., N] in levels, each a share of its own peak, and their peaks [...]: value = level / FULL_LEVEL * peak. */
export const decodeMaps = ({ levels, peaks }) => ({ levels: decodeUint16(levels), peaks: decodeFloat32(peaks) });

const FULL_LEVEL = 65535;

/** The attention of one block: q (already scaled) and k of every head and token, and each row's log-sum-exp. */
export const decodeTrace = ({ q, k, logsumexp }) => ({
  q: decodeFloat16(q),
  k: decodeFloat16(k),
  logsumexp: decodeFloat32(logsumexp),
});

/** The cosine similarities, -1 to 1, of one of `count` vectors of length 1, which stand one after the other, to all of them. */
export function similarities(vectors, count, index) {
  const width = vectors.length / count;
  const own = vectors.subarray(index * width, (index + 1) * width);
  return Float32Array.from({ length: count }, (_, other) => {
    const product = own.reduce((sum, value, i) => sum + value * vectors[other * width + i], 0);
    return Math.max(-1, Math.min(1, product));
  });
}

// Attention maps of a result, computed in the browser from what came with it.

const CACHE_SIZE = 2000; // rows and columns, 3 KB each at 785 tokens

/** Whether a view needs only the maps that are sent for every block; anything else needs the block's trace. */
export const hasMap = (result, { query, direction }) =>
  query === null && (direction === "from" || !result.hasClassToken);

/** The attention of a view as one value for each patch; head -1 is the mean of all heads. */
export function attentionMap(result, view) {
  if (hasMap(result, view)) return classTokenMap(result, view.block, view.head);
  const token = view.query === null ? 0 : result.tokenOf[view.query];
  return toPatches(result, tokenAttention(result, view, token));
}

/** Attention to each patch from the class token, or where there is none, the pooling query or the mean of all tokens. */
export function classTokenMap(result, block, head) {
  return overHeads(result, head, result.numPatches, (h) =>
    mapOfLevels(result.attentionMaps, block * result.numHeads + h, result.numPatches),
  );
}

/** The maps that came as levels: those of every head of the first block, then of the next. */
export const mapsOfLevels = (maps, numPatches) =>
  Array.from(maps.peaks, (_, index) => mapOfLevels(maps, index, numPatches));

function mapOfLevels({ levels, peaks }, index, numPatches) {
  const values = levels.subarray(index * numPatches, (index + 1) * numPatches);
  return Float32Array.from(values, (level) => (level / FULL_LEVEL) * peaks[index]);
}

export const rolloutMap = ({ rollout, numPatches }) => mapOfLevels(rollout, 0, numPatches);

/**
 * Attention "from" `token` to every token, exp(q_token . k_j - logsumexp_token), which sums to 1; or from every token "to" it,
 * exp(q_i . k_token - logsumexp_i).
 */
export function attentionOf({ q, k, logsumexp }, numTokens, head, token, direction) {
  const isFrom = direction === "from";
  const [own, others] = isFrom ? [q, k] : [k, q];
  const width = q.length / logsumexp.length;
  const first = head * numTokens;
  const vector = own.subarray((first + token) * width, (first + token + 1) * width);
  const attention = new Float32Array(numTokens);
  for (let other = 0, at = first * width; other < numTokens; other++) {
    let sum = -logsumexp[first + (isFrom ? token : other)];
    for (let d = 0; d < width; d++) sum += vector[d] * others[at++];
    attention[other] = Math.exp(sum);
  }
  return attention;
}

/** The attention of a block whose trace is here, computed once. */
function tokenAttention(result, { block, head, direction }, token) {
  const { attentionCache: cache, numTokens } = result;
  const key = `${block} ${head} ${direction} ${token}`;
  if (!cache.has(key)) {
    if (cache.size >= CACHE_SIZE) cache.clear();
    const trace = result.traces.get(block);
    const ofHead = (h) => attentionOf(trace, numTokens, h, token, direction);
    cache.set(key, overHeads(result, head, numTokens, ofHead));
  }
  return cache.get(key);
}

/** The values of one head, or for head -1 the mean over all heads. */
export function overHeads({ numHeads }, head, length, valuesOf) {
  if (head >= 0) return valuesOf(head);
  const mean = new Float32Array(length);
  for (let h = 0; h < numHeads; h++) {
    const values = valuesOf(h);
    for (let i = 0; i < length; i++) mean[i] += values[i] / numHeads;
  }
  return mean;
}

/** Values of tokens as values of patches; a dropped patch has no token, so its attention is 0. */
function toPatches({ tokenOf }, values) {
  return Float32Array.from(tokenOf, (token) => (token < 0 ? 0 : values[token]));
}

/** What would be said after each block of a result, [{label, probability}]; null where that must be asked for. */
export function earlyOf(result) {
  if (!result.early) return null;
  const { early, numBlocks, predictions } = result;
  const ordered = [...predictions].sort((a, b) => a.index - b.index);
  return Array.from({ length: numBlocks }, (_, block) => {
    const shares = early.subarray((block + 1) * ordered.length, (block + 2) * ordered.length);
    const best = shares.reduce((at, share, i) => (share > shares[at] ? i : at), 0);
    return { label: ordered[best].name, probability: shares[best] };
  });
}
