// The features' mathematics on small numbers, their colours, words and requests.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  componentColours,
  formatCosine,
  MODES,
  PALETTE,
  readingOf,
} from "../../vit_demo/web/frontend/stage/views/features/modes.js";
import { bordersOf, patchPixels } from "../../vit_demo/web/frontend/stage/views/features/tokens.js";
import "./helpers.js";

test("a dropped patch stays clear, the others get their token's colour", () => {
  const pixels = patchPixels({ tokenOf: Int32Array.from([1, -1, 0]) }, [
    [1, 2, 3, 1],
    [4, 5, 6, 0.2],
  ]);
  assert.deepEqual([...pixels], [4, 5, 6, 51, 0, 0, 0, 0, 1, 2, 3, 255]);
});

test("each component fills its channel; a removed background is veiled", () => {
  const scores = Float32Array.from([-1, 0, 5, 1, 0, 7, Number.NaN, Number.NaN, Number.NaN]);
  const [low, high, veiled] = componentColours(scores, 0.5);
  assert.deepEqual(low, [0, 127.5, 0, 0.5]);
  assert.deepEqual(high, [255, 127.5, 255, 0.5]);
  assert.equal(veiled.length, 4);
  assert.ok(veiled[3] > 0.5 && veiled[0] < 40);
});

test("the range of norms leaves outliers out, which get the brightest colour", () => {
  const norms = Float32Array.from([2, 3, 50]);
  const shown = MODES.norms.show({ norms, outliers: new Set([2]) });
  assert.deepEqual(MODES.norms.legend(shown), { scale: ["2.00", "3.00"] });
  const colours = shown.colours(1);
  assert.deepEqual(colours[1], colours[2]);
  assert.notDeepEqual(colours[0], colours[1]);
});

test("frequent classes have colours of their own, the rest share grey; doubt is paler", () => {
  const counts = [9, 8, 7, 6, 5, 4, 3, 2, 1];
  const classes = Uint32Array.from(counts.flatMap((count, index) => new Array(count).fill(10 + index)));
  const names = Object.fromEntries(counts.map((_, index) => [10 + index, `class ${index}`]));
  const probabilities = Float32Array.from(classes, (_, i) => (i === 0 ? 0.1 : 0.9));
  const tokens = { classes, probabilities, count: classes.length, names };
  const shown = MODES.classes.show(tokens);
  const { chips } = MODES.classes.legend(shown);
  assert.deepEqual(
    chips.map(({ name, number }) => `${name} ${number}`),
    [...counts.slice(0, 7).map((count, i) => `class ${i} ${count}`), "other 3"],
  );
  const colours = shown.colours(1);
  assert.deepEqual(colours[0].slice(0, 3), PALETTE[0]);
  assert.ok(colours[0][3] < colours[1][3]);
  assert.deepEqual(colours.at(-1).slice(0, 3), chips.at(-1).colour);
});

test("every mode has two sentences and a reading", () => {
  const result = { numBlocks: 6, hasClassToken: true, pool: "cls" };
  const tokens = { ...baseTokens(), outliers: new Set([1]) };
  for (const [mode, { show, sentence }] of Object.entries(MODES)) {
    const text = sentence(tokens, { block: 2, k: 2 }, result);
    assert.equal(text.replaceAll("*", "").match(/[.](\s|$)/g).length, 2, text);
    const shown = show(tokens, { k: 2, background: false, token: 0 });
    assert.ok(readingOf(mode, tokens, 1, shown).includes("*"), mode);
    assert.equal(shown.colours(0.5).length, tokens.count);
  }
  assert.match(readingOf("norms", tokens, 1, null), /outlier/);
  assert.equal(readingOf("norms", tokens, -1, null), "rubbed out");
  assert.equal(formatCosine(-0.001), "0.00");
  assert.equal(formatCosine(-0.251), "−0.25");
});

function baseTokens() {
  return {
    count: 3,
    width: 2,
    scale: 2,
    unit: Float32Array.from([1, 0, 0, 1, -1, 0]),
    components: { scores: Float32Array.from([1, 0, 0, 0, 1, 0, -1, 0, 0]), shares: [0.7, 0.3, 0] },
    segments: Uint8Array.from([0, 0, 0, 0, 1, 0, 0, 1, 2]),
    lowest: 0,
    norms: Float32Array.from([1, 9, 2]),
    classes: Uint32Array.from([0, 1, 1, 0, 0, 1]),
    probabilities: Float32Array.from([0.9, 0.1, 0.6, 0.4, 0.8, 0.2]),
    names: { 0: "cat", 1: "dog" },
  };
}

test("borders stand between patches of different segments, and none at a dropped patch", () => {
  // 0 0 1
  // 0 . 1   the dot is dropped
  const picture = { rows: 2, columns: 3, tokenOf: [0, 1, 2, 3, -1, 4] };
  assert.deepEqual(bordersOf(picture, [0, 0, 1, 0, 1]), [[2, 0, 2, 1]]);
  assert.deepEqual(bordersOf(picture, [0, 1, 1, 2, 0]), [
    [1, 0, 1, 1],
    [0, 1, 1, 1],
    [2, 1, 3, 1],
  ]);
});
