// A result: the payload of one forward pass, decoded, with everything that can be drawn without another request.

import { decodeFloat32, decodeMaps, decodeTrace, decodeUint16 } from "./decode.js";
import { inkOnPaper } from "./ink.js";

/**
 * Decodes a payload and its picture.
 * `image` is the address of what the model saw; `picture` is what is shown below the heatmap, with its address.
 */
export async function openResult(payload) {
  const seen = new Image();
  seen.src = payload.image;
  await seen.decode();
  const picture = payload.pixelated ? inkOnPaper(seen) : seen;
  const pictureUrl = payload.pixelated ? picture.toDataURL() : payload.image;
  return { ...decodeResult(payload), picture, pictureUrl };
}

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
    dropped,
    tokenOf: tokensOfPatches(numPatches, numPrefixTokens, dropped),
    predictions: decodePredictions(payload.predictions), // of every class, most likely first
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

function decodePredictions({ indices, probabilities, labels }) {
  const [index, probability] = [decodeUint16(indices), decodeFloat32(probabilities)];
  return labels.map((label, i) => ({ index: index[i], label, probability: probability[i] }));
}

/** The index of each patch's token; -1 for a dropped patch. */
function tokensOfPatches(numPatches, numPrefixTokens, dropped) {
  const isDropped = new Set(dropped);
  let next = numPrefixTokens;
  return Int32Array.from({ length: numPatches }, (_, patch) => (isDropped.has(patch) ? -1 : next++));
}
