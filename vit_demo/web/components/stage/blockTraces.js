// Loads the traces of blocks that did not come with the result, in the background.

import { decodeTrace } from "./decode.js";

const SETTLE = 120; // milliseconds; a slider that only passes a block should not cost a request

/** `load(result, block)` loads a trace if it is missing; `onLoad(result)` is called when it is there, or has failed. */
export function createBlockTraces(request, onLoad) {
  const states = new WeakMap(); // result -> Map from block to "pending" or "failed"
  let timer = 0;

  const statesOf = (result) => states.get(result) ?? states.set(result, new Map()).get(result);

  async function fetchTrace(result, block) {
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
    if (result.traces.has(block) || statesOf(result).get(block) === "pending") return;
    statesOf(result).delete(block); // a failed request is sent again
    timer = setTimeout(() => fetchTrace(result, block), SETTLE);
  }

  return { load, hasFailed: (result, block) => statesOf(result).get(block) === "failed" };
}
