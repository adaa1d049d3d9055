// Tokens as Python sends them, and what is computed from them, against Python's numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { similarities } from "../../vit_demo/web/frontend/stage/result.js";
import { MODES } from "../../vit_demo/web/frontend/stage/views/features/modes.js";
import { decodeTokens } from "../../vit_demo/web/frontend/stage/views/features/tokens.js";
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
});

test("cosine similarities are Python's within a thousandth, in both pictures", () => {
  const token = two.pictures[0].tokenOf[expected.query];
  assertClose(similarities(two.unit, two.count, token), expected.similarity, 1e-3);
  const few = decodeTokens(expected.few);
  assertClose(similarities(few.unit, few.count, 6), expected.fewSimilarity, 1e-3);
});

test("components of two pictures are fitted together, with the signs of Python", () => {
  const { scores, shares } = MODES.pca.show(two, { background: false });
  const found = scores.map((score) => score * two.scale);
  assertClose(found, expected.components, 2e-4 * largest(expected.components));
  assert.ok(shares[0] > shares[1] && shares[1] > shares[2] && shares[2] > 0);
});

test("the same background is removed as in Python, and the rest fitted again", () => {
  const { scores, shares } = MODES.pca.show(two, { background: true });
  const found = Array.from(
    scores.filter((value) => !Number.isNaN(value)),
    (score) => score * two.scale,
  );
  const isKept = Array.from({ length: two.count }, (_, token) => expected.foreground[3 * token] !== null);
  assert.deepEqual(
    Array.from({ length: two.count }, (_, token) => !Number.isNaN(scores[3 * token])),
    isKept,
  );
  assert.ok(shares[0] > shares[1] && shares[1] > shares[2] && shares[2] > 0 && shares[0] + shares[1] + shares[2] <= 1);
  const wanted = expected.foreground.filter((value) => value !== null);
  assertClose(found, wanted, 2e-4 * largest(wanted));
});

for (const k of [2, 5, 12]) {
  test(`${k} segments are those of Python`, () => {
    const { segments, counts } = MODES.segments.show(one, { k });
    assert.deepEqual([...segments], expected.segments[k]);
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
