// The features' mathematics on small numbers, their colours, words and requests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pause } from "../../vit_demo/web/frontend/shared/requests.js";
import {
  classColours,
  classLegend,
  componentColours,
  createShown,
  heatColours,
  normRange,
  PALETTE,
  patchPixels,
} from "../../vit_demo/web/frontend/stage/views/features/modes.js";
import { bordersOf } from "../../vit_demo/web/frontend/stage/views/features/patchCanvas.js";
import {
  eigenvectors,
  foreground,
  principalComponents,
  segmentsOf,
} from "../../vit_demo/web/frontend/stage/views/features/reduction.js";
import { formatCosine, MODES, readingOf, sentenceOf } from "../../vit_demo/web/frontend/stage/views/features/text.js";
import { createTokenLoader } from "../../vit_demo/web/frontend/stage/views/features/tokens.js";
import { assertClose, fixture, randomNumbers } from "./helpers.js";

test("eigenvectors multiply to themselves times their values, and are orthogonal", () => {
  const width = 9;
  const random = randomNumbers(width * width);
  const matrix = Float64Array.from(random, (value, i) => value + random[(i % width) * width + Math.floor(i / width)]);
  const { values, vectors } = eigenvectors(Float64Array.from(matrix), width);
  for (let v = 0; v < width; v++) {
    const vector = Array.from({ length: width }, (_, i) => vectors[i * width + v]);
    const product = vector.map((_, i) => vector.reduce((sum, value, j) => sum + matrix[i * width + j] * value, 0));
    assertClose(
      product,
      vector.map((value) => value * values[v]),
      1e-7,
    );
    assertClose([Math.hypot(...vector)], [1], 1e-9);
  }
});

test("components of points on a line lie along it; others stay 0", () => {
  const points = Float32Array.from([0, 0, 3, 4, 6, 8, 100, 0]);
  const { scores, shares } = principalComponents(points, 2, [1, 1, 1, 0], 3);
  assertClose([...scores].map(Math.abs), [5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0], 1e-5);
  assertClose(shares, [1, 0, 0], 1e-6);
});

test("the foreground touches the edge less, whatever the sign", () => {
  const edges = Uint8Array.from({ length: 25 }, (_, i) => {
    return Number(i < 5 || i > 19 || i % 5 === 0 || i % 5 === 4);
  });
  const middle = Float32Array.from(edges, (edge) => (edge ? -1 : 2));
  const inside = Array.from(edges, (edge) => 1 - edge);
  assert.deepEqual([...foreground(middle, 1, edges)], inside);
  assert.deepEqual(
    [
      ...foreground(
        middle.map((value) => -value),
        1,
        edges,
      ),
    ],
    inside,
  );
  assert.deepEqual([...foreground(new Float32Array(25).fill(1), 1, edges)], new Array(25).fill(1));
});

test("segments grow from their seeds, and one without points stays empty", () => {
  const points = Float32Array.from([0, 1, 10, 11, 12]);
  assert.deepEqual([...segmentsOf(points, 1, [4, 0])], [1, 1, 0, 0, 0]);
  assert.deepEqual([...segmentsOf(new Float32Array(4), 1, [0, 2])], [0, 0, 0, 0]);
});

test("a dropped patch stays clear, the others get their token's colour", () => {
  const pixels = patchPixels({ tokenOf: Int32Array.from([1, -1, 0]) }, [
    [1, 2, 3, 1],
    [4, 5, 6, 0.2],
  ]);
  assert.deepEqual([...pixels], [4, 5, 6, 51, 0, 0, 0, 0, 1, 2, 3, 255]);
});

test("each component fills its channel; a removed background is veiled", () => {
  const scores = Float32Array.from([-1, 0, 5, 1, 0, 7, 99, 99, 99]);
  const [low, high, veiled] = componentColours({ scores, kept: [1, 1, 0] }, 0.5);
  assert.deepEqual(low, [0, 127.5, 0, 0.5]);
  assert.deepEqual(high, [255, 127.5, 255, 0.5]);
  assert.equal(veiled.length, 4);
  assert.ok(veiled[3] > 0.5 && veiled[0] < 40);
});

test("the range of norms leaves outliers out, which get the brightest colour", () => {
  const norms = Float32Array.from([2, 3, 50]);
  const range = normRange({ norms, outliers: new Set([2]) });
  assert.deepEqual(range, [2, 3]);
  const colours = heatColours(norms, ...range, 1);
  assert.deepEqual(colours[1], colours[2]);
  assert.notDeepEqual(colours[0], colours[1]);
});

test("frequent classes have colours of their own, the rest share grey; doubt is paler", () => {
  const counts = [9, 8, 7, 6, 5, 4, 3, 2, 1];
  const classes = Uint32Array.from(counts.flatMap((count, index) => new Array(count).fill(10 + index)));
  const names = Object.fromEntries(counts.map((_, index) => [10 + index, `class ${index}`]));
  const probabilities = Float32Array.from(classes, (_, i) => (i === 0 ? 0.1 : 0.9));
  const tokens = { classes, probabilities, count: classes.length, names };
  const legend = classLegend(tokens);
  assert.deepEqual(
    legend.map(({ name, count }) => `${name} ${count}`),
    [...counts.slice(0, 7).map((count, i) => `class ${i} ${count}`), "other 3"],
  );
  const colours = classColours(tokens, legend, 1);
  assert.deepEqual(colours[0].slice(0, 3), PALETTE[0]);
  assert.ok(colours[0][3] < colours[1][3]);
  assert.deepEqual(colours.at(-1).slice(0, 3), legend.at(-1).colour);
});

test("the palette's colours differ", () => {
  for (const [i, one] of PALETTE.entries()) {
    for (const other of PALETTE.slice(i + 1)) assert.ok(Math.hypot(...one.map((value, j) => value - other[j])) > 40);
  }
});

test("every mode has two sentences and a reading", () => {
  const result = { numBlocks: 6, hasClassToken: true, pool: "cls" };
  const tokens = { ...baseTokens(), outliers: new Set([1]) };
  const show = createShown();
  for (const [mode] of MODES) {
    const text = sentenceOf(mode, tokens, { block: 2, k: 2 }, result);
    assert.equal(text.replaceAll("*", "").match(/[.](\s|$)/g).length, 2, text);
    const shown = show(tokens, { mode, k: 2, background: false, token: 0 });
    assert.ok(readingOf(mode, tokens, 1, shown).includes("*"), mode);
    assert.equal(show(tokens, { mode, k: 2, background: false, token: 0 }), shown);
    assert.equal(shown.colours(0.5).length, tokens.count);
  }
  assert.match(readingOf("norms", tokens, 1, null), /outlier/);
  assert.equal(readingOf("norms", tokens, -1, null), "this patch is removed");
  assert.equal(formatCosine(-0.001), "0.00");
  assert.equal(formatCosine(-0.251), "−0.25");
});

function baseTokens() {
  return {
    count: 3,
    width: 2,
    scale: 2,
    unit: Float32Array.from([1, 0, 0, 1, -1, 0]),
    main: Float32Array.from([1, 0, 0, 1, -1, 0]),
    mainWidth: 2,
    shares: [0.7, 0.3],
    seeds: [0, 1, 2],
    lowest: 0,
    norms: Float32Array.from([1, 9, 2]),
    classes: Uint32Array.from([0, 1, 1, 0, 0, 1]),
    probabilities: Float32Array.from([0.9, 0.1, 0.6, 0.4, 0.8, 0.2]),
    names: { 0: "cat", 1: "dog" },
    edges: new Uint8Array(3),
  };
}

/** A loader whose requests are answered by hand: `sent` lists [fields, answer]. */
function handLoader() {
  const sent = [];
  let updates = 0;
  const request = (fields) => new Promise((answer) => sent.push([fields, answer]));
  const loader = createTokenLoader(
    request,
    () => updates++,
    async (url) => ({ url }),
  );
  return { loader, sent, updates: () => updates };
}

test("tokens of a block are requested once, those of a passed block never", async () => {
  const { loader, sent, updates } = handLoader();
  const result = { source: "s" };
  const entry = loader.get(result, 5, null);
  await pause(10);
  assert.equal(loader.get(result, 5, null), entry);
  assert.deepEqual(sent[0][0], { kind: "tokens", source: "s", block: 5, other: undefined });
  sent[0][1]({ result: fixture.tokens.one });
  await pause(10);
  assert.ok(entry.tokens && !entry.isLoading && updates() > 0);
  loader.get(result, 4, null);
  loader.get(result, 3, null);
  await pause(200);
  assert.equal(sent.length, 2);
  assert.equal(sent[1][0].block, 3);
});

test("a second picture is requested together with the first, and its image opened", async () => {
  const { loader, sent } = handLoader();
  const entry = loader.get({ source: "s" }, 5, { id: 1, source: { digit: "d" } });
  await pause(10);
  assert.deepEqual(sent[0][0].other, { digit: "d" });
  sent[0][1]({ result: fixture.tokens.two });
  await pause(10);
  assert.equal(entry.tokens.pictures.length, 2);
  assert.equal(entry.image.url, fixture.tokens.two.pictures[1].image);
});

test("an error stays until it is tried again", async () => {
  const { loader, sent } = handLoader();
  const result = { source: "s" };
  loader.get(result, 5, null);
  await pause(10);
  sent[0][1]({ error: "Too many." });
  await pause(10);
  assert.equal(loader.get(result, 5, null).error, "Too many.");
  loader.retry();
  assert.equal(loader.get(result, 5, null).error, "");
  await pause(200);
  assert.equal(sent.length, 2);
});

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
