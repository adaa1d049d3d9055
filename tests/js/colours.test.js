// Heatmap colours.

import assert from "node:assert/strict";
import { test } from "node:test";

import { heatColour, heatGradient, heatPixels, isCoarse, peakOf } from "../../vit_demo/web/components/stage/colours.js";
import { assertClose, fixture } from "./helpers.js";

const luminance = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

test("colours are matplotlib's magma, without its very ends", () => {
  fixture.magma.forEach(([value, ...expected]) => {
    assertClose(heatColour(value, 1).slice(0, 3), expected, 12); // interpolated between nine of its 256 colours
  });
});

test("brighter always means more, and more covers more of the picture", () => {
  for (let i = 1; i <= 100; i++) {
    const [lower, higher] = [heatColour((i - 1) / 100, 0.6), heatColour(i / 100, 0.6)];
    assert.ok(luminance(higher) > luminance(lower));
    assert.ok(higher[3] > lower[3]);
  }
  assert.equal(heatColour(1, 1)[3], 1);
  assert.equal(heatColour(0.5, 0)[3], 0);
});

test("a map is scaled by its own maximum, and negative values are cold", () => {
  const pixels = heatPixels(Float32Array.of(0.02, 0.01, 0, -5), 0.5);
  const expected = [1, 0.5, 0, 0].flatMap((value) => {
    const [red, green, blue, alpha] = heatColour(value, 0.5);
    return [red, green, blue, 255 * alpha];
  });
  assertClose(pixels, expected, 0.51);
});

test("a map without any positive value is cold everywhere, not undefined", () => {
  const pixels = heatPixels(new Float32Array(4), 1);
  assert.deepEqual([...pixels.subarray(0, 4)], [...pixels.subarray(12)]);
  assertClose(pixels.subarray(0, 3), heatColour(0, 1).slice(0, 3), 0.51);
  assert.equal(peakOf(Float32Array.of(-3, -1)), 0);
});

test("the scale runs from cold to hot", () => {
  const [first, last] = [heatColour(0, 1), heatColour(1, 1)].map((c) => c.slice(0, 3).map(Math.round).join(" "));
  assert.match(heatGradient(), new RegExp(`to right, rgb\\(${first}\\).*rgb\\(${last}\\)\\)$`));
});

test("pages and package smooth a map from the same number of patches", () => {
  assert.ok(isCoarse({ numPatches: fixture.coarsePatches }));
  assert.ok(!isCoarse({ numPatches: fixture.coarsePatches + 1 }));
});
