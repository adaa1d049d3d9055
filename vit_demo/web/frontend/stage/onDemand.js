// @ts-check
// What the server computes on demand: maps and traces when they are to be shown, and the curves of deletion and insertion.

import { constants } from "../shared/constants.js";
import { english } from "../shared/language.js";
import { SETTLE } from "../shared/requests.js";
import { againstOf, targetOf } from "./format.js";
import { decodeFloat32, decodeTrace } from "./result.js";

/** The entry of a map that the server computes, in a cache of replies; `slot` if another map stays on the stage. */
export const servedMap = (replies, result, fields, slot = "map") =>
  replies.get(result, { kind: "map", ...fields }, ({ map }) => decodeFloat32(map), {
    delay: fields.block === undefined ? 0 : SETTLE,
    slot,
  });

const LIGHT = 1 << 17; // bytes; a larger trace, such as DINOv2's of 2 MB, waits until a visitor points at the picture

/**
 * Loads the trace of a block, for patches under the pointer and the like, if it is missing: most results are replaced
 * before it is needed. Returns its entry, or null where nothing is to be loaded. A block that was just chosen may be one
 * that a slider passes.
 */
export function loadTrace(replies, result, block, { isNeeded, isNewBlock }) {
  if (result.traces.has(block)) return null;
  if (!isNeeded && !(isNewBlock && result.traceBytes <= LIGHT)) return null;
  const keep = (trace) => result.traces.set(block, decodeTrace(trace));
  return replies.get(result, { kind: "block", block }, keep, { delay: isNewBlock ? SETTLE : 0 });
}

// Deletion and insertion of a heatmap beside random orders, one order after the other, so that each can be drawn at once.

/** What a masked square becomes: [name, words, heading of what is found with it, what it is]. */
export const BASELINES = [
  [
    "mean",
    english("mean colour"),
    english("Masked by the mean colour"),
    english(
      "A masked square is filled with one colour: almost blank paper for digits, grey for most models of photos.",
    ),
  ],
  [
    "blur",
    english("blur"),
    english("Masked by a blur"),
    english("A masked square gets the same square of a blurred picture."),
  ],
  [
    "black",
    english("empty squares"),
    english("Masked by empty squares"),
    english("A masked square gets pixels of value 0: black in a photo, blank paper for digits."),
  ],
];

const MARGIN = 0.005; // areas are shown with two decimals, and what looks equal is no better

/** What the curves of a class measure: its probability, its logit if that is tiny, or by how much its logit exceeds another. */
export function measureOf(result, { label, against = undefined }) {
  if (against !== undefined) return english("difference of logits");
  const { probability, scores } = targetOf(result, label);
  if (scores === "none") return english("score");
  return probability < constants.improbable ? english("logit") : PROBABILITY;
}

export const PROBABILITY = english("probability");

/** Two curves and what they are compared with: {fractions, deletion, insertion}, each with the area of its curve. */
export function compare(own, randoms) {
  const side = (name, isBetter) => {
    const { curve, area } = own[name];
    const areas = randoms.map((random) => random[name].area);
    return {
      curve,
      area,
      random: randoms.map((random) => random[name].curve),
      random_area: areas.reduce((sum, each) => sum + each, 0) / areas.length,
      orders_beaten: areas.filter((each) => isBetter(area, each)).length,
    };
  };
  return {
    fractions: own.fractions,
    deletion: side("deletion", (area, random) => area < random - MARGIN),
    insertion: side("insertion", (area, random) => area > random + MARGIN),
  };
}

/**
 * Requests curves, each once for a result. `request(fields, options)` is that of the stage.
 * `ofMap(result, fields, options)` resolves to the reply for a heatmap; `ofRandomOrders(result, about, options)` to
 * {randoms} or {error}, or to null once `options.isCurrent()` is false; `options.onOrder(randoms)` gets those so far.
 * `measured(result, fields)` lists what has been measured of a heatmap, as `compare` returns it, with its `baseline`.
 */
export function createCurves(request) {
  const cache = new WeakMap(); // result -> Map from the request's fields to its reply

  async function get(result, fields, options) {
    const replies = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = JSON.stringify(fields);
    const known = replies.get(key);
    if (known) return known;
    const reply = await request({ ...fields, source: result.source }, options);
    if (reply?.result) replies.set(key, reply);
    return reply;
  }

  function measured(result, fields) {
    const known = (wanted) => cache.get(result)?.get(JSON.stringify(wanted))?.result;
    return BASELINES.flatMap(([baseline]) => {
      const own = known({ kind: "faithfulness", ...fields, baseline });
      const { label, against } = fields;
      const orders = Array.from({ length: constants.numOrders }, (_, order) => order);
      const randoms = orders.map((order) => known({ kind: "random_order", label, against, baseline, order }));
      return own && randoms.every(Boolean) ? [{ baseline, ...compare(own, randoms) }] : [];
    });
  }

  const ofMap = (result, fields, options) => get(result, { kind: "faithfulness", ...fields }, options);

  async function ofRandomOrders(result, { label, against, baseline }, options) {
    const randoms = [];
    for (let order = 0; order < constants.numOrders; order++) {
      const reply = await get(result, { kind: "random_order", label, against, baseline, order }, options);
      if (!reply?.result) return reply;
      randoms.push(reply.result);
      options.onOrder?.(randoms);
    }
    return { randoms };
  }

  return { ofMap, ofRandomOrders, measured };
}

/**
 * The fields of a request for the map that is chosen: only those that matter to its method.
 *
 * @param {any} choices
 * @returns {any}
 */
export function mapFields(methods, result, choices) {
  const { method, block, head, direction, pinned = null, label, against } = choices;
  const { uses, classSpecific, comparesClasses } = methods[method];
  const fields = { method };
  if (uses.includes("block")) fields.block = block;
  if (uses.includes("head")) fields.head = head;
  if (uses.includes("direction")) fields.direction = direction;
  if (uses.includes("patch")) fields.query = pinned;
  if (classSpecific) fields.label = targetOf(result, label).index;
  const other = comparesClasses && againstOf(result, { label, against });
  if (other) fields.against = other.index;
  return fields;
}

/** The class on which a heatmap is tested: the one it is about, and the predicted one for a map that is about none. */
export const testedClass = (result, method, label) => targetOf(result, method.classSpecific ? label : null);

/** The choices that give the default map of a method. */
export const defaultChoices = ({ numBlocks }) => ({ block: numBlocks - 1, head: -1, direction: "from", query: null });

/** Whether these fields describe the map that a method gives by default: the one that randomization is measured on. */
export const isDefaultMap = (result, { block = result.numBlocks - 1, head = -1, query = null, direction = "from" }) =>
  block === result.numBlocks - 1 && head < 0 && query === null && direction === "from";
