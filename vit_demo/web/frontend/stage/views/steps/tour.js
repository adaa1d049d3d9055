// @ts-check
// What the tour is about: the network's shape, and the choices that fit it.

import { cellOf } from "../../../shared/geometry.js";
import { decodeBytes, decodeFloat16, decodeFloat32 } from "../../result.js";
import { NUM_STEPS } from "./texts.js";

/** The shape of the network behind a result; `shared` is the reply of kind "steps". */
export function factsOf(result, { network, filters, pooled, alike }) {
  const { rows, columns, numPatches, numTokens, numBlocks, numHeads, hasClassToken, predictions } = result;
  const { channels, classes, head_width, mixes_heads, input_size } = network;
  return {
    ...network,
    rows,
    columns,
    patches: numPatches,
    tokens: numTokens,
    blocks: numBlocks,
    heads: numHeads,
    patchSize: result.source.patch_size,
    patchValues: channels * result.source.patch_size ** 2,
    headWidth: head_width,
    concatenated: numHeads * head_width,
    hasClassToken,
    hasClasses: classes > 0,
    readsClassToken: network.pool.startsWith("cls"),
    addsPositions: network.positions !== "none",
    hasFilters: Boolean(filters),
    features: pooled?.length,
    isOfTokens: Boolean(alike),
    mixesHeads: mixes_heads,
    inputSize: input_size,
    prediction: predictions[0]?.name ?? "", // in English, as the server has it
  };
}

/** The choices of a tour that exist in this result; `shared` is the reply of kind "steps". */
export function settleTour(tour, result, shared) {
  const { numBlocks, numHeads, numPatches, hasClassToken, tokenOf } = result;
  const hasToken = (patch) => Number.isInteger(patch) && patch >= 0 && patch < numPatches && tokenOf[patch] >= 0;
  const inRange = (value, count) => Number.isInteger(value) && value >= 0 && value < count;
  return {
    step: inRange(tour.step, NUM_STEPS) ? tour.step : 0,
    patch: hasToken(tour.patch) ? tour.patch : startPatch(result, shared.contrast),
    block: inRange(tour.block, numBlocks) ? tour.block : Math.floor(numBlocks / 2),
    head: inRange(tour.head, numHeads) ? tour.head : 0,
    filter: inRange(tour.filter, shared.filters?.length ?? 0) ? tour.filter : null,
    fromClassToken: Boolean(tour.fromClassToken) && hasClassToken,
  };
}

/** The patch with the most contrast, those near the middle before others. */
function startPatch(result, contrast) {
  const { rows, columns, tokenOf } = result;
  const far = (patch) => {
    const [row, column] = cellOf(patch, result);
    return Math.hypot((row + 0.5) / rows - 0.5, (column + 0.5) / columns - 0.5);
  };
  const scores = contrast.map((value, patch) => (tokenOf[patch] < 0 ? -1 : value * (1 - far(patch))));
  return scores.indexOf(Math.max(...scores));
}

/** The patch of a token, or -1 for the class token and registers. */
export const patchOfToken = ({ tokenOf }, token) => tokenOf.indexOf(token);

export const lengthOf = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

/** The block after which the final class leads and keeps leading; 0 stands for before the first block. */
export function settledAfter(depthClass) {
  const final = depthClass[depthClass.length - 1];
  let depth = depthClass.length - 1;
  while (depth > 0 && depthClass[depth - 1] === final) depth--;
  return depth;
}

// The tour's numbers.

const decodeInt32 = (text) => new Int32Array(decodeBytes(text).buffer);
const WHOLE_NUMBERS = ["filters", "keyed", "classes", "depth_class"];

/** A reply of the kinds "steps", "steps_patch" and "steps_block": every array by its name, the rest as it is. */
export function decodeNumbers(reply) {
  const decoded = Object.entries(reply).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    if (name === "positions") return [name, decodeFloat16(value)];
    return [name, (WHOLE_NUMBERS.includes(name) ? decodeInt32 : decodeFloat32)(value)];
  });
  return Object.fromEntries(decoded);
}
