// The sentence about where a map is strong, on maps whose places are known: it names no patch that is not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { concentration, placesText } from "../../vit_demo/web/frontend/stage/caption.js";
import { randomNumbers } from "./helpers.js";

const result = { rows: 10, columns: 10, numPatches: 100, dropped: [] };
const method = { format: (value) => value.toFixed(1) };
const text = (map, more = {}) => placesText(method, map, { ...result, ...more });

/** A map with so much at each of some patches, and a little everywhere. */
function mapWith(values, everywhere = 0.01) {
  const map = new Float32Array(100).fill(everywhere);
  for (const [patch, value] of Object.entries(values)) map[patch] = value;
  return map;
}

test("the patch named is the strongest, whatever lies around it", () => {
  const ring = Object.fromEntries([22, 23, 24, 32, 34, 42, 43, 44].map((patch) => [patch, 5]));
  const cold = text(mapWith({ ...ring, 44: 5.5, 33: 0 }, 0));
  assert.equal(cold, "Strongest: row 5, column 5, 5.5; 4 of the other 99 patches hold half of the rest");
  for (let seed = 1; seed < 50; seed++) {
    const map = randomNumbers(100, seed);
    const { strongest } = concentration(map);
    assert.equal(map[strongest], Math.max(...map));
    const place = `row ${Math.floor(strongest / 10) + 1}, column ${(strongest % 10) + 1}, `;
    assert.ok(text(map).startsWith(`Strongest: ${place}${map[strongest].toFixed(1)};`));
  }
});

test("how concentrated the rest is, is the number of patches that hold half of it", () => {
  assert.match(text(mapWith({ 11: 9, 12: 3, 77: 3, 78: 3 }, 0)), /2 of the other 99 patches hold half of the rest$/);
  assert.match(text(mapWith({ 11: 9, 12: 3 }, 0)), /one of the other 99 patches holds half of the rest$/);
  assert.match(text(mapWith({ 11: 9 }, 0)), /^Strongest: row 2, column 2, 9\.0; nothing anywhere else$/);
  assert.match(text(mapWith({ 11: 9 }, 0.5)), /^Strongest: row 2, .*; the rest is spread over the whole picture$/);
  assert.match(text(randomNumbers(100).map(Math.abs)), /spread over the whole picture$/);
  for (let seed = 1; seed < 20; seed++) {
    const map = randomNumbers(100, seed).map((value) => Math.abs(value) ** 5);
    const { numOfRest } = concentration(map);
    const rest = [...map].sort((one, other) => other - one).slice(1);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    assert.ok(sum(rest.slice(0, numOfRest)) >= 0.4999 * sum(rest));
    assert.ok(sum(rest.slice(0, numOfRest - 1)) < 0.5 * sum(rest));
  }
});

test("with most patches dropped, what is left counts", () => {
  const map = mapWith({ 3: 1, 4: 1, 5: 1, 6: 1 }, 0);
  assert.match(text(map), /2 of the other 99 patches hold half of the rest$/);
  assert.match(text(map, { dropped: Array.from({ length: 96 }) }), /spread over the whole picture$/);
});

test("what speaks against the class is said where it is a third of what speaks for it", () => {
  const start = "Strongest: row 1, column 1, 10.0; nothing anywhere else";
  assert.equal(text(mapWith({ 0: 10, 99: -3 }, 0)), start);
  assert.equal(text(mapWith({ 0: 10, 99: -4 }, 0)), `${start}; strongest against it: row 10, column 10, -4.0`);
  const none = text(mapWith({ 5: -1, 6: -2 }, 0));
  assert.equal(none, "No patch speaks for the class; strongest against it: row 1, column 7, -2.0");
});
