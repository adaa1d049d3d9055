// Tokens as Python sends them, and what is computed from them, against Python's numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compute } from "../../vit_demo/web/frontend/stage/views/features/modes.js";
import { segmentsOf } from "../../vit_demo/web/frontend/stage/views/features/reduction.js";
import { decodeTokens, similarities } from "../../vit_demo/web/frontend/stage/views/features/tokens.js";
import { assertClose, fixture } from "./helpers.js";

const { tokens: expected } = fixture;
const [one, two] = [decodeTokens(expected.one), decodeTokens(expected.two)];
const largest = (values) => Math.max(...values.map(Math.abs));

test("tokens are counted through both pictures, without the dropped patches", () => {
  const [first, second] = two.pictures;
  assert.equal(two.count, 194 + 196);
  assert.equal(first.tokenOf[0], -1);
  assert.equal(first.tokenOf[31], -1);
  assert.equal(first.tokenOf[195], 193);
  assert.equal(second.tokenOf[0], 194);
  assert.equal(first.image, undefined);
  assert.match(second.image, /^data:image\/png;base64,/);
  const corners = [0, 13, 14, 15].map((patch) => second.tokenOf[patch]);
  assert.deepEqual(
    corners.map((token) => two.edges[token]),
    [1, 1, 1, 0],
  );
});

test("cosine similarities are Python's within a thousandth, in both pictures", () => {
  const token = two.pictures[0].tokenOf[expected.query];
  assertClose(similarities(two, token), expected.similarity, 1e-3);
  assertClose(similarities(decodeTokens(expected.few), 6), expected.fewSimilarity, 1e-3);
});

test("components of two pictures are fitted together, with the signs of Python", () => {
  const { scores, shares } = compute(two, "pca", 0, false, 0);
  const found = scores.map((score) => score * two.scale);
  assertClose(found, expected.components, 2e-4 * largest(expected.components));
  assert.ok(shares[0] > shares[1] && shares[1] > shares[2] && shares[2] > 0);
});

test("the same background is removed as in Python, and the rest fitted again", () => {
  const { scores, kept } = compute(two, "pca", 0, true, 0);
  const isKept = Array.from({ length: two.count }, (_, token) => expected.foreground[3 * token] !== null);
  assert.deepEqual(
    Array.from(kept, (flag) => flag === 1),
    isKept,
  );
  const found = Array.from(scores, (score) => score * two.scale).filter((_, i) => isKept[Math.floor(i / 3)]);
  const wanted = expected.foreground.filter((value) => value !== null);
  assertClose(found, wanted, 2e-4 * largest(wanted));
});

for (const k of [2, 5, 12]) {
  test(`${k} segments are those of Python`, () => {
    const found = segmentsOf(one.main, one.mainWidth, one.seeds.slice(0, k));
    assert.deepEqual([...found], expected.segments[k]);
    const { counts } = compute(one, "segments", k, false, 0);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      one.count,
    );
  });
}

test("norms and classes are Python's", () => {
  assertClose(two.norms, expected.norms, 1e-3);
  const names = Array.from({ length: one.count }, (_, token) => one.names[one.classes[3 * token]]);
  assert.deepEqual(names, expected.classes);
});
