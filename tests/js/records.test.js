// The fewest squares of a visitor, by picture, in what a browser stores, whatever stands there.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { bestOf, keepBest } from "../../vit_demo/web/frontend/stage/records.js";

const stored = new Map();
globalThis.localStorage = {
  getItem: (key) => stored.get(key) ?? null,
  setItem: (key, value) => stored.set(key, value),
};
const picture = (drawing, more = {}) => ({
  source: { drawing, preset: "digits-tiny", patch_size: 7, dropped: [], ...more },
});

test("the fewest of each picture, network and patch size are kept", () => {
  const [seven, eight] = [picture("7"), picture("8")];
  assert.equal(bestOf(seven), null);
  for (const count of [4, 2, 3]) keepBest(seven, count);
  keepBest(eight, 5);
  assert.deepEqual([bestOf(seven), bestOf(eight)], [2, 5]);
  assert.equal(bestOf(picture("7", { dropped: [1, 2] })), 2, "the same picture without some squares");
  assert.deepEqual([bestOf(picture("7", { preset: "x" })), bestOf(picture("7", { patch_size: 4 }))], [null, null]);
  for (let n = 0; n < 60; n++) keepBest(picture(`other ${n}`), 1);
  assert.equal(bestOf(seven), null, "the last 50 pictures");
  assert.ok([...stored.values()][0].length < 1500);
});

for (const text of [
  "",
  "{",
  "null",
  "7",
  '"x"',
  "[7]",
  "[[]]",
  '[["x"]]',
  '[["x", -1]]',
  '[["x", 1.5], null]',
  '{"a": 1}',
]) {
  test(`what is no such list is none: ${text}`, () => {
    for (const key of stored.keys()) stored.set(key, text);
    assert.equal(bestOf(picture("7")), null);
    keepBest(picture("7"), 3);
    assert.equal(bestOf(picture("7")), 3);
  });
}

test("without storage there is no best", () => {
  globalThis.localStorage = { getItem: () => assert.fail("closed"), setItem: () => assert.fail("closed") };
  keepBest(picture("7"), 3);
  assert.equal(bestOf(picture("7")), null);
});
