// @ts-check
// A map as colours, over a photo in grey or over ink on light paper: stronger is deeper.
//
// A style is {signed, floor, end}: whether values below 0 have a colour of their own, the least end of the scale, so that a map
// without a meaningful value is faint, and the end of a scale that several maps share.

import { constants } from "../shared/constants.js";
import { make, pixelCanvas, pixelsOf } from "../shared/dom.js";

/** The share of white in the grey of a photo: over dark ones colours would look muddy. */
export const PHOTO_WHITE = 0.3;
const PHOTO_GREY = 128 + PHOTO_WHITE * (255 - 128); // what the legend lies over, as a photo can have any colour
const LEGEND_STOPS = 16;

/**
 * The colour of a share of the scale's end, from 0 to 1 (from -1 if signed), as [red, green, blue] from 0 to 255 and alpha
 * from 0 to 1. Nothing is painted at 0. On paper the root makes equal steps of the value equal steps of lightness.
 */
export function heatColour(share, opacity, { signed = false } = {}) {
  const value = Math.min(1, Math.max(signed ? -1 : 0, share));
  const scale = signed ? constants.signedScale : constants.scale; // of [red, green, blue], evenly spaced
  const strength = Math.abs(value);
  const alpha = opacity * Math.sqrt(strength);
  return [...colourAt(scale, signed ? (value + 1) / 2 : value), alpha];
}

/** The largest value of a map without regard to its sign. */
export const peakOf = (map) => map.reduce((peak, value) => Math.max(peak, Math.abs(value)), 0);

/** The index of the value that is furthest from 0. */
export const strongest = (values) =>
  values.reduce((best, value, i) => (Math.abs(value) > Math.abs(values[best]) ? i : best), 0);

/** The value at the strong end of a map's scale. */
export const scaleEnd = (map, { floor = 0, end = 0 } = {}) => end || Math.max(peakOf(map), floor, 1e-12);

/** Whether a map has no value that matters, so that it is faint. */
export const isFaint = (map, { floor = 0 } = {}) => peakOf(map) < floor;

/** The pixels of a look's map, RGBA, one for each patch. */
export function heatPixels({ map, opacity, style = /** @type {any} */ ({}) }) {
  const end = scaleEnd(map, style);
  return pixelsOf(map.length, (i) => heatColour(map[i] / end, opacity, { signed: style.signed }));
}

/** The map of a look as a canvas with one pixel for each patch; the caller enlarges it, and may give one to be painted again. */
export const heatCanvas = (
  look,
  { rows, columns },
  canvas = /** @type {HTMLCanvasElement | undefined} */ (undefined),
) => pixelCanvas(heatPixels(look), columns, rows, canvas);

let layer = /** @type {any} */ (undefined);

/** The same canvas each time, for who paints it at once. */
export function heatLayer(look, grid) {
  layer = heatCanvas(look, grid, layer);
  return layer;
}

/** The colours along the scale, from its low end to its high one, as CSS writes them. */
export function heatStops(opacity, { signed = false, paper = false } = {}) {
  return Array.from({ length: LEGEND_STOPS + 1 }, (_, i) => {
    const place = i / LEGEND_STOPS;
    return `rgb(${paintedColour(signed ? 2 * place - 1 : place, opacity, { signed, paper }).join(", ")})`;
  });
}

/** The colour scale as a CSS gradient, as it is painted over paper, or over an average photo. */
export const heatGradient = (opacity, style) => `linear-gradient(to right, ${heatStops(opacity, style).join(", ")})`;

/** The colour that a share of the scale's end has in the picture, over paper or grey. */
export function paintedColour(share, opacity, { signed, paper }) {
  const [red, green, blue, alpha] = heatColour(share, opacity, { signed });
  const ground = paper ? constants.whiteOfPaper : PHOTO_GREY;
  return [red, green, blue].map((part) => Math.round(ground + (part - ground) * alpha));
}

/** The colour at a place from 0 to 1 of a scale. */
function colourAt(scale, place) {
  const at = Math.min(1, Math.max(0, place)) * (scale.length - 1);
  const below = Math.min(scale.length - 2, Math.floor(at));
  return scale[below].map((from, i) => from + (scale[below + 1][i] - from) * (at - below));
}

// A drawing as ink on paper: the model sees white on black, but under a heatmap dark ink on light paper reads better.

/** The grey that a brightness of the model's picture, 0 to 255, has on paper. */
export function greyOnPaper(brightness) {
  const { whiteOfPaper, blackOfInk } = constants;
  return Math.round(whiteOfPaper + ((blackOfInk - whiteOfPaper) * brightness) / 255);
}

/** The ink of a decoded grey picture, white on black, as a canvas of the same size: whatever it is painted over shows through. */
export function inkOf(picture) {
  const canvas = make("canvas", { width: picture.naturalWidth, height: picture.naturalHeight });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < pixels.data.length; i += 4) {
    pixels.data[i + 3] = pixels.data[i];
    pixels.data.fill(constants.blackOfInk, i, i + 3);
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

/** The colour of paper, as CSS writes it. */
export const paperColour = () => `rgb(${new Array(3).fill(constants.whiteOfPaper).join(" ")})`;

/** A decoded grey picture, white on black, as ink on paper. */
export const inkOnPaper = (picture) => onPaper(inkOf(picture));

/** Ink on paper. */
export function onPaper(ink) {
  const canvas = make("canvas", { width: ink.width, height: ink.height });
  const context = canvas.getContext("2d");
  context.fillStyle = paperColour();
  context.fillRect(0, 0, ink.width, ink.height);
  context.drawImage(ink, 0, 0);
  return canvas;
}
