// When the queries and keys of a block are downloaded: a light trace with its block, a heavy one when a visitor points.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createReplyCache } from "../../vit_demo/web/frontend/shared/requests.js";
import { loadTrace } from "../../vit_demo/web/frontend/stage/onDemand.js";

const WHILE = 10_000; // milliseconds, longer than any wait

/** A result with a trace of so many bytes, the blocks requested, and how the stage asks for one. */
function tracesOf(traceBytes) {
  const requested = [];
  const result = { source: "a picture", traceBytes, traces: new Map() };
  const request = async ({ block }) => {
    requested.push(block);
    return { error: "no server" };
  };
  const replies = createReplyCache(request, () => {});
  const load = (block, how) => loadTrace(replies, result, block, { isNeeded: false, isNewBlock: false, ...how });
  return { load, requested };
}

test("a slider that passes many blocks requests one", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { load, requested } = tracesOf(100_000);
  for (const block of [1, 2, 3]) {
    load(block, { isNewBlock: true });
    load(block, { isNeeded: true }); // the visitor points meanwhile
  }
  context.mock.timers.tick(WHILE);
  await new Promise(setImmediate);
  assert.deepEqual(requested, [3]);
});

test("a heavy trace is requested once it is needed, and after a failure not again", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { load, requested } = tracesOf(2_000_000);
  assert.equal(load(2, { isNewBlock: true }), null);
  context.mock.timers.tick(WHILE);
  await new Promise(setImmediate);
  assert.deepEqual(requested, []);
  const entry = load(2, { isNeeded: true });
  await new Promise(setImmediate);
  assert.deepEqual([requested, entry.error], [[2], "no server"]);
  assert.equal(load(2, { isNeeded: true }), entry);
  assert.equal(requested.length, 1);
});
