// Attention, against the definition: a softmax over plain loops, and against the package's own maps.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  attentionMap,
  attentionOf,
  classTokenMap,
  decodeResult,
  hasMap,
  rolloutMap,
} from "../../vit_demo/web/frontend/stage/result.js";
import { assertClose, fixture, randomNumbers } from "./helpers.js";

const [HEADS, TOKENS, WIDTH] = [3, 7, 5];
const q = randomNumbers(HEADS * TOKENS * WIDTH, 1);
const k = randomNumbers(HEADS * TOKENS * WIDTH, 2);

/** attention[head][i][j], from the definition. */
function softmaxByLoops() {
  const attention = [];
  for (let h = 0; h < HEADS; h++) {
    attention.push([]);
    for (let i = 0; i < TOKENS; i++) {
      const scores = [];
      for (let j = 0; j < TOKENS; j++) {
        let score = 0;
        for (let d = 0; d < WIDTH; d++) score += q[(h * TOKENS + i) * WIDTH + d] * k[(h * TOKENS + j) * WIDTH + d];
        scores.push(Math.exp(score));
      }
      const total = scores.reduce((sum, value) => sum + value, 0);
      attention[h].push(scores.map((value) => value / total));
    }
  }
  return attention;
}

function traceOf() {
  const logsumexp = new Float32Array(HEADS * TOKENS);
  for (let row = 0; row < HEADS * TOKENS; row++) {
    const first = Math.floor(row / TOKENS) * TOKENS;
    let total = 0;
    for (let j = 0; j < TOKENS; j++) {
      let score = 0;
      for (let d = 0; d < WIDTH; d++) score += q[row * WIDTH + d] * k[(first + j) * WIDTH + d];
      total += Math.exp(score);
    }
    logsumexp[row] = Math.log(total);
  }
  return { q, k, logsumexp };
}

test("rows and columns of every head and token are the softmax", () => {
  const expected = softmaxByLoops();
  const trace = traceOf();
  for (let h = 0; h < HEADS; h++) {
    for (let token = 0; token < TOKENS; token++) {
      const row = attentionOf(trace, TOKENS, h, token, "from");
      assertClose(row, expected[h][token], 1e-6);
      assertClose(
        row.reduce((sum, value) => sum + value, 0),
        1,
        1e-6,
      );
      const column = expected[h].map((values) => values[token]);
      assertClose(attentionOf(trace, TOKENS, h, token, "to"), column, 1e-6);
    }
  }
});

test("maps of a result are the package's, with 0 at dropped patches", () => {
  const result = decodeResult(fixture.payload);
  const view = { block: 1, head: 2, direction: "from", query: null };
  assertClose(attentionMap(result, view), fixture.expected.classToken, 1e-2 * Math.max(...fixture.expected.classToken));
  for (const direction of ["from", "to"]) {
    for (const head of [-1, 2]) {
      const map = attentionMap(result, { ...view, head, direction, query: fixture.query });
      assertClose(map, fixture.expected[`${direction} ${head}`], 1e-4);
      for (const patch of fixture.dropped) assert.equal(map[patch], 0);
    }
  }
  assertClose(rolloutMap(result), fixture.expected.rollout, Math.max(...fixture.expected.rollout) / 500);
});

test("the mean of the heads is the mean of their true values", () => {
  const result = decodeResult(fixture.payload);
  const heads = Array.from({ length: result.numHeads }, (_, h) => classTokenMap(result, 0, h));
  const mean = heads[0].map((_, i) => heads.reduce((sum, map) => sum + map[i], 0) / heads.length);
  assertClose(classTokenMap(result, 0, -1), mean, 1e-7);
});

test("only maps of the class token come without a trace", () => {
  const [withToken, without] = [{ hasClassToken: true }, { hasClassToken: false }];
  assert.ok(hasMap(withToken, { query: null, direction: "from" }));
  assert.ok(!hasMap(withToken, { query: null, direction: "to" }));
  assert.ok(hasMap(without, { query: null, direction: "to" })); // the mean of all tokens has one direction only
  assert.ok(!hasMap(withToken, { query: 0, direction: "from" }));
});

test("a row is computed once", () => {
  const result = decodeResult(fixture.payload);
  const view = { block: 1, head: 0, direction: "from", query: fixture.query };
  attentionMap(result, view);
  assert.equal(result.attentionCache.size, 1);
  result.traces.clear(); // so that computing again would fail
  assert.equal(attentionMap(result, view).length, result.numPatches);
});
