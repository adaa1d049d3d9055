// Loads the trace of a block, which most visitors of a result never need: for patches under the pointer and the like.

import { decodeTrace } from "./decode.js";

const SETTLE = 120; // milliseconds; a slider that only passes a block should not cost a request

/**
 * `load(result, block)` loads a trace if it is missing, and `need(result, block)` at once, unless that has failed before.
 * `onLoad(result)` is called when it is there, or has failed.
 */
export function createBlockTraces(request, onLoad) {
  const states = new WeakMap(); // result -> Map from block to "pending" or "failed"
  let timer = 0;

  const statesOf = (result) => states.get(result) ?? states.set(result, new Map()).get(result);
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
    onLoad(result);
  }

  function load(result, block) {
    clearTimeout(timer);
    timer = 0;
    if (isHere(result, block)) return;
    statesOf(result).delete(block); // a failed request is sent again
    timer = setTimeout(() => {
      timer = 0;
      fetchTrace(result, block);
    }, SETTLE);
  }

  function need(result, block) {
    if (!timer && !hasFailed(result, block)) fetchTrace(result, block);
  }

  const hasFailed = (result, block) => statesOf(result).get(block) === "failed";

  return { load, need, hasFailed };
}
