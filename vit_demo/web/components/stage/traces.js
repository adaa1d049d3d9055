// Fetches the trace of a block that did not travel with the result, in the background.

const SETTLE = 120; // milliseconds; a slider on its way past a block should not cost a request

/** `want(result, block)` asks for what is missing and calls `arrived(result)`; `failed` tells its fate. */
function createFetcher(arrived) {
  const states = new WeakMap(); // result -> Map from block to "pending", "here" or "failed"
  let timer = 0;

  const statesOf = (result) => states.get(result) ?? states.set(result, new Map()).get(result);

  async function fetchBlock(result, block) {
    statesOf(result).set(block, "pending");
    const said = await askServer({ about: "block", source: result.source, block }, () => true);
    if (said.answer) result.traces.set(block, decodeTrace(said.answer));
    statesOf(result).set(block, said.answer ? "here" : "failed");
    arrived(result);
  }

  function want(result, block) {
    clearTimeout(timer);
    if (result.traces.has(block) || statesOf(result).get(block) === "pending") return;
    statesOf(result).delete(block); // a failure is worth another try
    timer = setTimeout(() => fetchBlock(result, block), SETTLE);
  }

  return { want, failed: (result, block) => statesOf(result).get(block) === "failed" };
}
