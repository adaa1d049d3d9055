// The fewest squares of a visitor, by picture, in what a browser stores, whatever stands there.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { setConstants } from "../../vit_demo/web/frontend/shared/constants.js";
import { bestOf, keepBest } from "../../vit_demo/web/frontend/stage/records.js";
import { linkOf } from "../../vit_demo/web/frontend/stage/views/download/view.js";

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

test("a link to an example or a short drawing has an address of which a preview shows it, others and photos have none", () => {
  setConstants({ maxPreviewCharacters: 8 });
  const linkTo = (hash, whole) => {
    globalThis.location = { hash, href: `http://host/page${hash}` };
    const isFlip = hash.includes("removed");
    return linkOf({ result: { dropped: [1, 2] }, whole: { source: {}, ...whole }, frame: { isFlip } });
  };
  const seen = (link) => /\/see\/([^#]*)#/.exec(link)?.[1];
  assert.equal(seen(linkTo("#digit=8", { exampleDigit: 8 })), "digit-8");
  assert.equal(seen(linkTo("#tab=photos", { source: { example: "lion" } })), "lion");
  const drawn = linkTo("#strokes=IAEAA-_A&removed=2");
  assert.equal(seen(drawn), "strokes-IAEAA-_A");
  assert.ok(drawn.endsWith("#strokes=IAEAA-_A&beat=2"), drawn);
  assert.equal(linkTo("#strokes=IAEAAAAAB"), "http://host/page#strokes=IAEAAAAAB");
  assert.equal(linkTo("#picture=own"), null);
});
