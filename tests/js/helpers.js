// What the tests share: the numbers that Python wrote, and comparisons with a tolerance.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setConstants } from "../../vit_demo/web/frontend/shared/constants.js";

export const fixture = JSON.parse(readFileSync(process.env.VIT_DEMO_FIXTURE, "utf8"));
setConstants(fixture.constants);

/** Numbers, or lists of numbers, that differ by at most `tolerance`. */
export function assertClose(found, expected, tolerance) {
  const [left, right] = [found, expected].map((value) => (typeof value === "number" ? [value] : [...value]));
  assert.equal(left.length, right.length);
  left.forEach((value, i) => {
    assert.ok(Math.abs(value - right[i]) <= tolerance, `at ${i}: ${value} is not ${right[i]}`);
  });
}

/** The same random numbers in each run, between -1 and 1. */
export function randomNumbers(count, seed = 1) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}
