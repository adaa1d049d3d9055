// Heatmap colours: magma, perceptually even from black to cream, so that brighter always means more.

const MAGMA = [
  [0, 0, 4],
  [28, 16, 68],
  [79, 18, 123],
  [129, 37, 129],
  [181, 54, 122],
  [229, 80, 100],
  [251, 135, 97],
  [254, 194, 135],
  [252, 253, 191],
];

/** The colour of a value between 0 and 1 as [red, green, blue] from 0 to 255 and alpha from 0 to 1. */
export function heatColour(value, opacity) {
  // The very ends are left out: black hides the picture, and cream is taken for part of it.
  const at = (0.1 + 0.88 * value) * (MAGMA.length - 1);
  const below = Math.min(MAGMA.length - 2, Math.floor(at));
  const colour = MAGMA[below].map((from, i) => from + (MAGMA[below + 1][i] - from) * (at - below));
  // Hot patches cover more than cold ones, so that the picture stays readable where the map is low.
  return [...colour, Math.min(1, opacity * (0.55 + 0.6 * value))];
}

/** The pixels of a map, RGBA, one for each patch: scaled by its maximum, negative values as 0. */
export function heatPixels(map, opacity) {
  const pixels = new Uint8ClampedArray(4 * map.length);
  const scale = 1 / Math.max(peakOf(map), 1e-12);
  for (let i = 0; i < map.length; i++) {
    const [red, green, blue, alpha] = heatColour(Math.max(0, map[i] * scale), opacity);
    pixels.set([red, green, blue, 255 * alpha], 4 * i);
  }
  return pixels;
}

/** A map as a canvas with one pixel for each patch; the caller enlarges it. */
export function heatCanvas(map, { rows, columns }, opacity, canvas = document.createElement("canvas")) {
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(new ImageData(heatPixels(map, opacity), columns, rows), 0, 0);
  return canvas;
}

/** The largest value of a map, at least 0. */
export const peakOf = (map) => map.reduce((peak, value) => Math.max(peak, value), 0);

/** The colour scale as a CSS gradient. */
export function heatGradient() {
  const stops = Array.from({ length: 9 }, (_, i) =>
    heatColour(i / 8, 1)
      .slice(0, 3)
      .map(Math.round),
  );
  return `linear-gradient(to right, ${stops.map((stop) => `rgb(${stop.join(" ")})`).join(", ")})`;
}

const COARSE_PATCHES = 100; // as in render/overlay.py

/** With few patches, their edges matter; with many, a smooth map reads better. */
export const isCoarse = ({ numPatches }) => numPatches <= COARSE_PATCHES;
