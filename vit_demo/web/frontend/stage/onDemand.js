// @ts-check
// Maps that the server computes: requested when they are to be shown, and kept as long as their result.

import { constants } from "../shared/constants.js";
import { english } from "../shared/language.js";
import { pause, SETTLE } from "../shared/requests.js";
import { againstOf, targetOf } from "./format.js";
import { decodeFloat32, decodeTrace } from "./result.js";

/**
 * `get(result, fields)` returns the entry of a map, {map, error, slow, progress}, and requests the map if need be. While
 * it is being computed, `map` is null; `slow` is true and `progress` 0 to 1 (or null) when that takes long.
 * `onUpdate()` is called whenever an entry changes. An error stays until another map is wanted or `retry()` is called, so
 * that drawing alone repeats no request.
 */
export function createMapRequests(request, onUpdate) {
  const cache = new WeakMap(); // result -> Map from the request's fields to its entry
  let current = /** @type {any} */ (null); // only a map that is to be shown keeps the server busy
  let prefetched = null; // or one of the next result

  function get(result, fields, { isPrefetch = false } = {}) {
    const entries = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = JSON.stringify(fields);
    const known = entries.get(key);
    const entry = known ?? createEntry(() => entries.delete(key));
    entries.set(key, entry);
    if (isPrefetch) prefetched = entry;
    else show(entry);
    if (known) return entry;
    const isCurrent = () => entry === current || entry === prefetched;
    const onProgress = (progress) => entry.update({ slow: true, progress });
    const send = () => request({ kind: "map", source: result.source, ...fields }, { isCurrent, onProgress });
    const reply = fields.block === undefined ? send() : pause(SETTLE).then(send);
    reply.then((received) => {
      if (!received) entry.forget();
      else if (received.error) entry.update({ error: received.error });
      else entry.update({ map: decodeFloat32(received.result.map) });
    });
    return entry;
  }

  function createEntry(remove) {
    /** @type {any} */
    const entry = { map: null, error: "", slow: false, progress: null };
    entry.firstReply = new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
      entry.update = (part) => {
        Object.assign(entry, part);
        resolve();
        onUpdate();
      };
      entry.forget = () => {
        remove();
        resolve();
      };
    });
    return entry;
  }

  function show(entry) {
    if (entry !== current) retry();
    current = entry;
    if (prefetched === entry) prefetched = null;
  }

  /** Lets a map that failed be requested again, the next time it is wanted. */
  function retry() {
    if (!current?.error) return;
    current.forget();
    current = null;
  }

  /** No map of the server is shown: what is being computed is no longer needed. */
  function release() {
    retry();
    current = null;
  }

  /** Requests the map of a result that is not shown yet; resolves with the first reply about it. */
  const prefetch = (result, fields) => get(result, fields, { isPrefetch: true }).firstReply;

  return { get, release, retry, prefetch };
}

// Loads the trace of a block, for patches under the pointer and the like: most results are replaced before it is needed.

const LIGHT = 1 << 17; // bytes; a larger trace, such as DINOv2's of 2 MB, waits until a visitor points at the picture

/**
 * `load(result, block)` loads a light trace if it is missing, `need(result, block)` any at once, unless that has failed
 * before.
 * `onChange(result)` is called when a trace is there, when it has failed, and when a heavy one may be needed.
 */
export function createBlockTraces(request, onChange) {
  const states = new WeakMap(); // result -> Map from block to "pending" or "failed"
  let timer = 0;

  const statesOf = (result) => states.get(result) ?? states.set(result, new Map()).get(result);
  const isLight = (result) => result.traceBytes <= LIGHT;
  const isHere = (result, block) => result.traces.has(block) || statesOf(result).get(block) === "pending";

  async function fetchTrace(result, block) {
    if (isHere(result, block)) return;
    statesOf(result).set(block, "pending");
    const reply = await request({ kind: "block", source: result.source, block });
    if (reply.result) {
      result.traces.set(block, decodeTrace(reply.result));
      statesOf(result).delete(block);
    } else {
      statesOf(result).set(block, "failed");
    }
    onChange(result);
  }

  function load(result, block) {
    clearTimeout(timer);
    timer = 0;
    if (isHere(result, block)) return;
    statesOf(result).delete(block); // a failed request is sent again
    timer = setTimeout(() => {
      timer = 0;
      if (isLight(result)) fetchTrace(result, block);
      else onChange(result);
    }, SETTLE);
  }

  function need(result, block) {
    if (!timer && !hasFailed(result, block)) fetchTrace(result, block);
  }

  const hasFailed = (result, block) => statesOf(result).get(block) === "failed";

  return { load, need, hasFailed };
}

// Deletion and insertion of a heatmap beside random orders, one order after the other, so that each can be drawn at once.

/** What replaces a removed patch: [name, words]. */
export const BASELINES = [
  ["mean", english("mean colour")],
  ["blur", english("blur")],
  ["black", english("black")],
];

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
    deletion: side("deletion", (area, random) => area < random),
    insertion: side("insertion", (area, random) => area > random),
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

/** The fields of a request for the map that is chosen: only those that matter to its method. */
export function mapFields(methods, result, { method, block, head, direction, pinned, label, against }) {
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

/** Whether these fields describe the map that a method gives by default: the one that randomization is measured on. */
export const isDefaultMap = (result, { block = result.numBlocks - 1, head = -1, query = null, direction = "from" }) =>
  block === result.numBlocks - 1 && head < 0 && query === null && direction === "from";
