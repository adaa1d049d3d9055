// Heatmap colours.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  greyOnPaper,
  heatColour,
  heatGradient,
  heatPixels,
  isCoarse,
  isFaint,
  paintedColour,
  peakOf,
  scaleEnd,
} from "../../vit_demo/web/frontend/stage/heatmapColours.js";
import { assertClose, fixture } from "./helpers.js";

const luminance = ([red, green, blue]) => 0.2126 * red + 0.7152 * green + 0.0722 * blue;

test("colours and opacity are those of the package's overlay", () => {
  const { shares, opacity, styles } = fixture.heat;
  for (const { colours, ...style } of styles) {
    shares.forEach((share, i) => {
      assertClose(heatColour(share, opacity, style), colours[i], 1e-9);
    });
  }
  assert.deepEqual(
    fixture.ink,
    Array.from({ length: 256 }, (_, brightness) => greyOnPaper(brightness)),
  );
});

test("stronger is brighter over a photo and deeper on paper, in the picture as in the legend", () => {
  for (let i = 1; i <= 100; i++) {
    const [lower, higher] = [(i - 1) / 100, i / 100];
    assert.ok(luminance(heatColour(higher, 0.8)) > luminance(heatColour(lower, 0.8)));
    assert.ok(heatColour(higher, 0.8)[3] > heatColour(lower, 0.8)[3]);
    if (i % 5) continue;
    const onPaper = (share) => luminance(paintedColour(share, 0.8, { paper: true }));
    assert.ok(onPaper(i / 100) < onPaper((i - 5) / 100));
  }
});

test("equal steps of the value are nearly equal steps of lightness on paper", () => {
  const steps = Array.from({ length: 8 }, (_, i) =>
    [i / 8, (i + 1) / 8].map((share) => luminance(paintedColour(share, 0.8, { paper: true }))),
  ).map(([from, to]) => from - to);
  assert.ok(Math.max(...steps) < 4 * Math.min(...steps), steps.join(" "));
});

test("both signs are equally strong at equal distance from 0, and different in hue", () => {
  for (const paper of [false, true]) {
    for (const share of [0.25, 0.5, 1]) {
      const [below, above] = [-share, share].map((value) => heatColour(value, 1, { signed: true, paper }));
      assert.equal(below[3], above[3]);
      assert.ok(Math.abs(luminance(below) - luminance(above)) < 48, `${luminance(below)} ${luminance(above)}`);
      assert.ok(below[2] > below[0] && above[0] > above[2], "blue below, red above");
    }
  }
});

test("nothing is painted on paper where the value is 0, and an opacity of 0 paints nothing anywhere", () => {
  for (const signed of [false, true]) assert.equal(heatColour(0, 1, { signed, paper: true })[3], 0);
  assert.equal(heatColour(1, 1)[3], 1);
  assert.equal(heatColour(0.5, 0)[3], 0);
});

test("a map without signs shows negative values as 0; one with signs does not", () => {
  const map = Float32Array.of(0.02, 0.01, 0, -0.02);
  const rgba = (share, style) => {
    const [red, green, blue, alpha] = heatColour(share, 0.5, style);
    return [red, green, blue, 255 * alpha];
  };
  assertClose(
    heatPixels(map, 0.5),
    [1, 0.5, 0, 0].flatMap((share) => rgba(share)),
    0.51,
  );
  const signed = { signed: true };
  assertClose(
    heatPixels(map, 0.5, signed),
    [1, 0.5, 0, -1].flatMap((share) => rgba(share, signed)),
    0.51,
  );
});

test("the scale ends at the largest value of either sign, but never below the floor", () => {
  const map = Float32Array.of(0.001, -0.004);
  assert.equal(peakOf(map), Math.fround(0.004));
  assert.equal(scaleEnd(map, { floor: 0.01 }), 0.01);
  assert.equal(scaleEnd(map, { floor: 0.001 }), peakOf(map));
  assert.ok(isFaint(map, { floor: 0.01 }) && !isFaint(map, { floor: 0.001 }) && !isFaint(map));
  const alphas = (floor) => [...heatPixels(map, 1, { signed: true, floor }, true)].filter((_, i) => i % 4 === 3);
  assert.ok(Math.max(...alphas(0.4)) < 0.11 * 255 && Math.max(...alphas(0)) === 255);
});

test("a map of zeros has the colour of 0, not an undefined one", () => {
  const pixels = heatPixels(new Float32Array(4), 1);
  assert.deepEqual([...pixels.subarray(0, 4)], [...pixels.subarray(12)]);
  assertClose(pixels.subarray(0, 3), heatColour(0, 1).slice(0, 3), 0.51);
});

test("the legend shows what is painted on paper, and runs over 0 for a map with signs", () => {
  const words = (colour) => `rgb\\(${colour.join(", ")}\\)`;
  for (const signed of [false, true]) {
    const [first, last] = [signed ? -1 : 0, 1].map((share) =>
      words(paintedColour(share, 0.7, { signed, paper: true })),
    );
    const gradient = heatGradient(0.7, { signed, paper: true });
    assert.match(gradient, new RegExp(`to right, ${first}.*${last}\\)$`));
    if (signed) assert.match(gradient, /rgb\(252, 252, 252\)/);
  }
});

test("pages and package smooth a map from the same number of patches", () => {
  assert.ok(isCoarse({ numPatches: fixture.constants.coarsePatches }));
  assert.ok(!isCoarse({ numPatches: fixture.constants.coarsePatches + 1 }));
});
