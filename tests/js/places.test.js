// Where a map is strong, on maps whose places are known, and in words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { placesText, strongPlaces } from "../../vit_demo/web/frontend/stage/places.js";
import { randomNumbers } from "./helpers.js";

const grid = { rows: 10, columns: 10 };
const result = { ...grid, numPatches: 100, dropped: [] };
const evidence = { classSpecific: true, isShare: false };

/** A map with so much at each of some patches, and a little everywhere. */
function mapWith(values, everywhere = 0.01) {
  const map = new Float32Array(100).fill(everywhere);
  for (const [patch, value] of Object.entries(values)) map[patch] = value;
  return map;
}

test("the patches named are the fewest of a place that hold half of the sum", () => {
  const map = mapWith({ 33: 3, 34: 3, 43: 3, 44: 3 });
  assert.deepEqual(strongPlaces(map, grid), { isSpread: false, patches: [33, 34, 43], centres: [33] });
  const map2 = mapWith({ 11: 4, 12: 2, 77: 4, 78: 2 });
  const { patches, centres } = strongPlaces(map2, grid);
  assert.deepEqual(centres, [11, 77]);
  const held = patches.reduce((sum, patch) => sum + map2[patch], 0);
  assert.ok(held >= map2.reduce((sum, value) => sum + value, 0) / 2 && patches.length <= 4);
});

test("patches that touch at a corner are one place, but not those at both ends of neighbouring rows", () => {
  assert.deepEqual(strongPlaces(mapWith({ 40: 5, 51: 5, 62: 5 }, 0), grid).centres, [51]);
  assert.equal(strongPlaces(mapWith({ 39: 5, 40: 5 }, 0), grid).centres.length, 1, "one of them is half of the sum");
  assert.equal(strongPlaces(mapWith({ 38: 2, 39: 3, 40: 3, 41: 2 }, 0), grid).centres.length, 2);
});

test("the middle of a ring is inside of it", () => {
  const ring = Object.fromEntries([22, 23, 24, 32, 34, 42, 43, 44].map((patch) => [patch, 5]));
  const { centres, patches } = strongPlaces(mapWith(ring, 0), grid);
  assert.ok(!(33 in ring) && patches.length <= 8);
  assert.ok(centres.every((centre) => [22, 23, 24, 32, 33, 34].includes(centre)));
});

test("a uniform map, noise and a map of zeros stand out nowhere; strong patches that are far apart are many places", () => {
  assert.ok(strongPlaces(new Float32Array(100).fill(0.01), grid).isSpread);
  assert.ok(strongPlaces(randomNumbers(100).map(Math.abs), grid).isSpread);
  assert.ok(strongPlaces(new Float32Array(100), grid).isSpread);
  const far = Object.fromEntries([0, 4, 8, 40, 44, 48, 80, 84, 88].map((patch) => [patch, 1]));
  assert.deepEqual(strongPlaces(mapWith(far, 0), grid).centres, []);
  assert.equal(strongPlaces(mapWith(far, 0), grid).patches.length, 5);
});

test("with most patches dropped, what is left counts", () => {
  const map = mapWith({ 3: 1, 4: 1, 5: 1, 6: 1 }, 0);
  assert.ok(!strongPlaces(map, grid).isSpread);
  assert.ok(strongPlaces(map, grid, 4).isSpread, "all four patches have the same");
});

test("the sentence has the words of its method", () => {
  const one = mapWith({ 34: 30 });
  const four = mapWith({ 33: 3, 34: 3, 43: 3, 44: 3 });
  const share = { classSpecific: false, isShare: true };
  assert.equal(placesText(evidence, one, result), "Most of the evidence lies in one patch, row 4, column 5");
  assert.equal(placesText(share, four, result), "Most of the attention lies in 3 patches around row 4, column 4");
  assert.match(
    placesText({ classSpecific: false, isShare: false }, four, result),
    /^Most of the map lies in 3 patches/,
  );
  const flat = new Float32Array(100).fill(1);
  assert.equal(placesText(evidence, flat, result), "The evidence is spread over the whole picture");
  const two = placesText(evidence, mapWith({ 11: 4, 77: 3.9 }, 0), result);
  assert.equal(two, "Most of the evidence lies in one patch, row 2, column 2");
  // 60 % of 20.95 are in four patches, and each pair alone has less than half.
  assert.equal(
    placesText(evidence, mapWith({ 11: 4, 12: 4, 77: 4, 78: 4, 79: 4 }), result),
    "Most of the evidence lies in 4 patches around row 2, column 3 and row 8, column 9",
  );
});

test("what speaks against the class is said where it is a third of what speaks for it", () => {
  const start = "Most of the evidence lies in one patch, row 1, column 1";
  const text = (values) => placesText(evidence, mapWith({ 0: 10, ...values }, 0), result);
  assert.equal(text({ 99: -3 }), start);
  assert.equal(text({ 99: -4 }), `${start}; much speaks against it, around row 10, column 10`);
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [i + 30, -0.1]));
  assert.equal(text(many), `${start}; much speaks against it, in many places`);
});
