// @ts-check
// Vectors and small pictures in two colours: one for positive numbers, one for negative ones, stronger for larger.

import { make, makeButton, pixelCanvas, pixelsOf, setText } from "../../../shared/dom.js";
import { middlePatch } from "../../../shared/geometry.js";
import { english, formatDecimals, translate } from "../../../shared/language.js";
import { greyOnPaper, peakOf, strongest } from "../../heatmapColours.js";
import { fitCanvas, listenToPatches, paintResult } from "../../picture.js";

const FEW = 8; // so few numbers are written into their cells

/** A number with two decimals, more if it is small. */
export function short(value) {
  const digits = value !== 0 && Math.abs(value) < 0.005 ? 4 : 2;
  return formatDecimals(value, digits);
}

export const largest = (...lists) => Math.max(1e-9, ...lists.map(peakOf));

/** The pixels of values, RGBA: `plus` or `minus` ([red, green, blue]), as opaque as the value is large. */
export const signedPixels = (values, peak, { plus, minus }) =>
  pixelsOf(values.length, (i) => [...(values[i] < 0 ? minus : plus), Math.min(1, Math.abs(values[i]) / peak) ** 0.7]);

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
 * - `signed(values, side)`: a square picture of positive and negative values.
 * - `sum(before, added, after)`: three vectors and the arithmetic of one of their numbers.
 */
export function createPainter(host) {
  function strip(values, { peak = largest(values), mark = null, parts = 1 } = {}) {
    const canvas = pixelCanvas(signedPixels(values, peak, colours(host)), values.length, 1);
    const cells = make("div", { className: "cells-row" }, canvas);
    if (values.length <= FEW) {
      const numbers = [...values].map((value) => make("span", {}, short(value)));
      cells.append(make("div", { className: "written" }, ...numbers));
    }
    for (let part = 1; part < parts; part++) cells.append(at(make("i", { className: "divider" }), part / parts));
    if (mark !== null) {
      const box = at(make("i", { className: "mark" }), mark / values.length);
      box.style.width = `max(5px, ${100 / values.length}%)`;
      cells.append(box);
    }
    return cells;
  }

  function vector(name, values, options) {
    const size = make("small", {}, translate("{count} number|{count} numbers", { count: values.length }));
    const title = make("span", { className: "vector-name" }, name, " ", size);
    return make("div", { className: "vector" }, title, strip(values, options));
  }

  const signed = (values, side) => pixelCanvas(signedPixels(values, largest(values), colours(host)), side, side);

  /** A token, what is added to it, and the sum, each [name, values], with the arithmetic of the number that changes most. */
  function sum(...terms) {
    const [before, added, after] = terms.map(([, values]) => values);
    const [peak, mark] = [largest(before, added, after), strongest(added)];
    const written = `${short(before[mark])} + ${bracketed(added[mark])} ≈ ${short(after[mark])}`;
    return [
      ...terms.map(([name, values]) => vector(name, values, { peak, mark })),
      arithmetic(translate("number {number}: {sum}", { number: mark + 1, sum: written })),
    ];
  }

  return { strip, vector, signed, sum };
}

export const hint = (words) => make("p", { className: "hint" }, words);

export const arithmetic = (...words) => make("p", { className: "arithmetic" }, ...words);

export const captioned = (node, words) => make("figure", {}, node, make("figcaption", {}, words));

/** A button that chooses; after the choice, what is drawn anew gives the focus to the button with the same key. */
export function choiceButton(key, isChosen, onclick, properties, ...children) {
  const button = makeButton(onclick, { ariaPressed: String(isChosen), ...properties }, ...children);
  button.dataset.key = key;
  return button;
}

export const bracketed = (value) => (value < 0 ? `(${short(value)})` : short(value));

/** The end of a sum of which so many terms are not written; "" for none. */
export const moreTerms = (count) => (count > 0 ? ` + … (${translate("{count} more|{count} more", { count })})` : "");

function at(node, share) {
  node.style.left = `${100 * share}%`;
  return node;
}

/**
 * The pixels of an input [channels, side, side], RGBA; `mean` and `std` are those of the normalization. On `paper` it is
 * drawn as everywhere on the page: what is bright to the network is ink.
 */
export function inputPixels(values, { channels, mean, std, paper = false }) {
  const count = values.length / channels;
  const levelOf = (i, channel) => {
    const level = 255 * (values[channel * count + i] * std[channel % std.length] + mean[channel % mean.length]);
    return paper ? greyOnPaper(level) : level;
  };
  return pixelsOf(count, (i) => [...[0, 1, 2].map((c) => levelOf(i, channels === 3 ? c : 0)), 1]);
}

/** The pixels of a filter in colour [3, side, side], RGBA: grey stands for 0. */
export function filterPixels(values) {
  const count = values.length / 3;
  const scale = 127 / largest(values);
  return pixelsOf(count, (i) => [...[0, 1, 2].map((c) => 128 + scale * values[c * count + i]), 1]);
}

/** The products of two inputs [channels, n], summed over the channels: n values. */
export function productsOf(left, right, channels) {
  const count = left.length / channels;
  const products = new Float32Array(count);
  for (let i = 0; i < left.length; i++) products[i % count] += left[i] * right[i];
  return products;
}

// The picture beside every step: the visitor points at a patch to choose it.

const OPACITY = 0.7;

/**
 * Adds a picture to `host`. `show({result, mapOf, chosen, marks, caption})` paints it: `mapOf(hovered)` returns
 * one value for each patch or null, `chosen` is a patch or null, `marks` are [patch, letter], `caption(hovered)` the words
 * below it. `onChoose(patch)` is called when a visitor chooses a patch.
 */
export function createPicture(host, onChoose) {
  const canvas = make("canvas", { className: "tour-picture", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", english("The picture in its patches: arrow keys choose one"));
  const box = make("div", { className: "pane" }, canvas);
  const words = make("p", { className: "picture-caption" });
  host.append(box, words);
  let shown = /** @type {any} */ (null);
  let hovered = /** @type {any} */ (null);

  function paint() {
    if (!shown || !box.clientWidth) return;
    const { result, mapOf, chosen, marks, caption } = shown;
    paintResult(canvas, fitCanvas(canvas, result.size), result, {
      map: mapOf(hovered),
      opacity: OPACITY,
      queried: chosen,
      hovered,
      dropped: new Set(result.dropped),
      labels: marks,
      disc: true,
    });
    setText(words, caption(hovered));
  }

  function show(next) {
    if (next.result !== shown?.result) hovered = null;
    shown = next;
    paint();
  }

  function hover(patch) {
    if (patch === hovered) return;
    hovered = patch;
    paint();
  }

  const isDropped = (patch) => shown.result.tokenOf[patch] < 0; // such a patch has no token

  /** Outlines a patch at once: its numbers may still be on their way. */
  function choose(patch) {
    if (isDropped(patch)) return;
    shown = { ...shown, chosen: patch };
    paint();
    onChoose(patch);
  }

  listenToPatches(canvas, () => shown?.result ?? null, {
    hover,
    click: choose,
    leave: () => hover(null),
    at: () => shown.chosen ?? middlePatch(shown.result),
    move: choose,
    skipped: isDropped,
  });
  new ResizeObserver(paint).observe(box);

  return { show };
}
