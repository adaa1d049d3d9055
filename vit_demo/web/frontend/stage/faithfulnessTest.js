// Deletion and insertion of a heatmap beside random orders, one order after the other, so that each can be drawn at once.

import { english } from "../shared/language.js";

/** What replaces a removed patch: [name, words]. */
export const BASELINES = [
  ["mean", english("mean colour")],
  ["blur", english("blur")],
  ["black", english("black")],
];

export const NUM_ORDERS = 5;

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
      const orders = Array.from({ length: NUM_ORDERS }, (_, order) => order);
      const randoms = orders.map((order) => known({ kind: "random_order", label: fields.label, baseline, order }));
      return own && randoms.every(Boolean) ? [{ baseline, ...compare(own, randoms) }] : [];
    });
  }

  const ofMap = (result, fields, options) => get(result, { kind: "faithfulness", ...fields }, options);

  async function ofRandomOrders(result, { label, baseline }, options) {
    const randoms = [];
    for (let order = 0; order < NUM_ORDERS; order++) {
      const reply = await get(result, { kind: "random_order", label, baseline, order }, options);
      if (!reply?.result) return reply;
      randoms.push(reply.result);
      options.onOrder?.(randoms);
    }
    return { randoms };
  }

  return { ofMap, ofRandomOrders, measured };
}
