// Vectors and small pictures in two colours: one for positive numbers, one for negative ones, stronger for larger.

import { make } from "../../../shared/dom.js";
import { formatDecimals, translate } from "../../../shared/language.js";

const FEW = 8; // so few numbers are written into their cells

/** A number with two decimals, more if it is small. */
export function short(value) {
  const digits = value !== 0 && Math.abs(value) < 0.005 ? 4 : 2;
  return formatDecimals(value, digits);
}

export const largest = (...lists) =>
  Math.max(1e-9, ...lists.map((list) => list.reduce((peak, v) => Math.max(peak, Math.abs(v)), 0)));

/** The pixels of values, RGBA: `plus` or `minus` ([red, green, blue]), as opaque as the value is large. */
export function signedPixels(values, peak, { plus, minus }) {
  const pixels = new Uint8ClampedArray(4 * values.length);
  values.forEach((value, i) => {
    pixels.set([...(value < 0 ? minus : plus), 255 * Math.min(1, Math.abs(value) / peak) ** 0.7], 4 * i);
  });
  return pixels;
}

function canvasOf(pixels, width, height) {
  const canvas = make("canvas", { width, height });
  canvas.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}

/** The two colours of the page's theme, read where `host` stands. */
function colours(host) {
  const style = getComputedStyle(host);
  const read = (name) => style.getPropertyValue(name).trim().split(" ").map(Number);
  return { plus: read("--plus"), minus: read("--minus") };
}

/**
 * Draws what the figures of the tour need in the colours of `host`:
 *
 * - `strip(values, {peak, mark, parts})`: a row of cells; `mark` is the index of one that is pointed out, `parts` in how
 *   many equal parts the row is divided.
 * - `vector(name, values, options)`: a strip beside its name and length.
 * - `signed(values, side, peak)`: a square picture of positive and negative values.
 * - `picture(pixels, side)`: a square picture of RGBA pixels.
 */
export function createPainter(host) {
  function strip(values, { peak = largest(values), mark = null, parts = 1 } = {}) {
    const cells = make(
      "div",
      { className: "cells-row" },
      canvasOf(signedPixels(values, peak, colours(host)), values.length, 1),
    );
    if (values.length <= FEW) {
      cells.append(
        make("div", { className: "written" }, ...[...values].map((v) => make("span", { textContent: short(v) }))),
      );
    }
    if (parts > 1) {
      for (let part = 1; part < parts; part++) cells.append(at(make("i", { className: "divider" }), part / parts));
    }
    if (mark !== null) {
      const box = at(make("i", { className: "mark" }), mark / values.length);
      box.style.width = `max(5px, ${100 / values.length}%)`;
      cells.append(box);
    }
    return cells;
  }

  function vector(name, values, options) {
    const size = make("small", { textContent: translate("{count} number|{count} numbers", { count: values.length }) });
    const title = make("span", { className: "vector-name" }, name, " ", size);
    return make("div", { className: "vector" }, title, strip(values, options));
  }

  const signed = (values, side, peak = largest(values)) =>
    canvasOf(signedPixels(values, peak, colours(host)), side, side);
  const picture = (pixels, side) => canvasOf(pixels, side, side);

  return { strip, vector, signed, picture };
}

function at(node, share) {
  node.style.left = `${100 * share}%`;
  return node;
}

/** The pixels of an input [channels, side, side], RGBA; `mean` and `std` are those of the normalization. */
export function inputPixels(values, { channels, mean, std }) {
  const count = values.length / channels;
  const pixels = new Uint8ClampedArray(4 * count);
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < 3; c++) {
      const channel = channels === 3 ? c : 0;
      pixels[4 * i + c] = 255 * (values[channel * count + i] * std[channel % std.length] + mean[channel % mean.length]);
    }
    pixels[4 * i + 3] = 255;
  }
  return pixels;
}

/** The pixels of a filter in colour [3, side, side], RGBA: grey stands for 0. */
export function filterPixels(values) {
  const count = values.length / 3;
  const scale = 127 / largest(values);
  const pixels = new Uint8ClampedArray(4 * count).fill(255);
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < 3; c++) pixels[4 * i + c] = 128 + scale * values[c * count + i];
  }
  return pixels;
}

/** The products of two inputs [channels, n], summed over the channels: n values. */
export function productsOf(left, right, channels) {
  const count = left.length / channels;
  const products = new Float32Array(count);
  for (let i = 0; i < left.length; i++) products[i % count] += left[i] * right[i];
  return products;
}
