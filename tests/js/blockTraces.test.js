// When the queries and keys of a block are downloaded: a light trace with its block, a heavy one when a visitor points.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createBlockTraces } from "../../vit_demo/web/frontend/stage/onDemand.js";

const WHILE = 10_000; // milliseconds, longer than any wait

/** A result with a trace of so many bytes, the traces of results, the blocks requested, and the changes told. */
function tracesOf(traceBytes) {
  const requested = [];
  const changed = [];
  const result = { source: "a picture", traceBytes, traces: new Map() };
  const request = async ({ block }) => {
    requested.push(block);
    return { error: "no server" };
  };
  const traces = createBlockTraces(request, (owner) => changed.push(owner));
  return { result, traces, requested, changed };
}

test("a slider that passes many blocks requests one", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { result, traces, requested } = tracesOf(100_000);
  for (const block of [1, 2, 3]) {
    traces.load(result, block);
    traces.need(result, block); // the visitor points meanwhile
  }
  context.mock.timers.tick(WHILE);
  assert.deepEqual(requested, [3]);
});

test("once a slider rests on a block with a heavy trace, the stage asks whether it is needed", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { result, traces, requested, changed } = tracesOf(2_000_000);
  traces.load(result, 2);
  context.mock.timers.tick(WHILE);
  assert.deepEqual([requested, changed], [[], [result]]);
  traces.need(result, 2);
  await new Promise(setImmediate);
  assert.ok(requested.length === 1 && changed.length === 2 && traces.hasFailed(result, 2));
  traces.need(result, 2);
  assert.equal(requested.length, 1);
});
