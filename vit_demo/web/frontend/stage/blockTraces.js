// Loads the trace of a block, for patches under the pointer and the like: most results are replaced before it is needed.

import { decodeTrace } from "./decode.js";

const SETTLE = 120; // milliseconds; a slider that only passes a block should not cost a request
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
