// Heatmap colours.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  greyOnPaper,
  heatColour,
  heatGradient,
  heatPixels,
  isFaint,
  paintedColour,
  peakOf,
  scaleEnd,
} from "../../vit_demo/web/frontend/stage/heatmapColours.js";
import { assertClose, fixture } from "./helpers.js";

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

test("nothing is painted where the value is 0, and an opacity of 0 paints nothing anywhere", () => {
  for (const signed of [false, true]) assert.equal(heatColour(0, 1, { signed })[3], 0);
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
    heatPixels({ map, opacity: 0.5 }),
    [1, 0.5, 0, 0].flatMap((share) => rgba(share)),
    0.51,
  );
  const signed = { signed: true };
  assertClose(
    heatPixels({ map, opacity: 0.5, style: signed }),
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
  const alphas = (floor) =>
    [...heatPixels({ map, opacity: 1, style: { signed: true, floor } })].filter((_, i) => i % 4 === 3);
  assert.ok(Math.max(...alphas(0.4)) < 0.11 * 255 && Math.max(...alphas(0)) === 255);
});

test("a map of zeros has the colour of 0, not an undefined one", () => {
  const pixels = heatPixels({ map: new Float32Array(4), opacity: 1 });
  assert.deepEqual([...pixels.subarray(0, 4)], [...pixels.subarray(12)]);
  assertClose(pixels.subarray(0, 3), heatColour(0, 1).slice(0, 3), 0.51);
});

test("over a photo the scale begins with its average grey, paler by a share of white", () => {
  assertClose(paintedColour(0, 0.7, { signed: false, paper: false }), Array(3).fill(0.7 * 128 + 0.3 * 255), 0.51);
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
