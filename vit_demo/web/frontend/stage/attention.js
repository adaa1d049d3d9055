// Attention maps of a result, computed in the browser from what came with it.

import { FULL_LEVEL } from "./decode.js";

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

/** Attention from the class token to each patch (from the mean of all tokens, where there is no class token). */
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

export function rolloutMap({ rollout }) {
  return Float32Array.from(rollout.levels, (level) => (level / FULL_LEVEL) * rollout.peaks[0]);
}

/** Attention from `token` to every token, exp(q_token . k_j - logsumexp_token). Sums to 1. */
export function attentionRow({ q, k, logsumexp }, numTokens, head, token) {
  const width = q.length / logsumexp.length;
  const first = head * numTokens;
  const row = new Float32Array(numTokens);
  const query = q.subarray((first + token) * width, (first + token + 1) * width);
  for (let j = 0, at = first * width; j < numTokens; j++) {
    let sum = -logsumexp[first + token];
    for (let d = 0; d < width; d++) sum += query[d] * k[at++];
    row[j] = Math.exp(sum);
  }
  return row;
}

/** Attention from every token to `token`, exp(q_i . k_token - logsumexp_i). */
export function attentionColumn({ q, k, logsumexp }, numTokens, head, token) {
  const width = q.length / logsumexp.length;
  const first = head * numTokens;
  const column = new Float32Array(numTokens);
  const key = k.subarray((first + token) * width, (first + token + 1) * width);
  for (let i = 0, at = first * width; i < numTokens; i++) {
    let sum = -logsumexp[first + i];
    for (let d = 0; d < width; d++) sum += q[at++] * key[d];
    column[i] = Math.exp(sum);
  }
  return column;
}

/** One row ("from") or column ("to") of a block whose trace is here, for all tokens, computed once. */
function tokenAttention(result, { block, head, direction }, token) {
  const { attentionCache: cache, numTokens } = result;
  const key = `${block} ${head} ${direction} ${token}`;
  if (!cache.has(key)) {
    if (cache.size >= CACHE_SIZE) cache.clear();
    const compute = direction === "from" ? attentionRow : attentionColumn;
    const trace = result.traces.get(block);
    cache.set(
      key,
      overHeads(result, head, numTokens, (h) => compute(trace, numTokens, h, token)),
    );
  }
  return cache.get(key);
}

/** The values of one head, or for head -1 the mean over all heads. */
function overHeads({ numHeads }, head, length, valuesOf) {
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
