// @ts-check
// Small helpers for the page, and widgets in plain HTML: radio buttons that look like one bar, a select, sliders.

import { boldParts, translate, translateName } from "./language.js";

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export const makeButton = (onclick, properties = {}, ...children) =>
  make("button", { type: "button", onclick, ...properties }, ...children);

/** Gives an element, its `style` or its `dataset` the properties that it does not have yet: what stays is not written. */
export function put(node, properties) {
  for (const [name, value] of Object.entries(properties)) if (node[name] !== value) node[name] = value;
}

const shownTexts = new WeakMap(); // element -> the text in the page's language

/**
 * Sets text, in the page's language if the catalogue has it; *stars* make words bold. Touches the page only when the text
 * is new, and returns whether it was.
 */
export function setText(node, text) {
  const shown = translate(text);
  if (shownTexts.get(node) === shown) return false;
  shownTexts.set(node, shown);
  node.dataset.text = text; // for another language
  node.replaceChildren(...boldParts(shown).map((part, i) => (i % 2 ? make("b", { textContent: part }) : part)));
  return true;
}

const shownContents = new WeakMap(); // element -> what it shows

/** Whether a host is to show something else than at the last call: plain values, arrays and objects, which stay as they are. */
export function isNew(host, content) {
  if (shownContents.has(host) && isSame(shownContents.get(host), content)) return false;
  shownContents.set(host, content);
  return true;
}

function isSame(one, other) {
  if (one === other || !(one instanceof Object && other instanceof Object)) return Object.is(one, other);
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => isSame(one[key], other[key]));
}

/** Calls `take(...files)` with the files that are chosen, also with the same ones again. */
export function onFiles(input, take) {
  input.addEventListener("change", () => {
    take(...input.files);
    input.value = "";
  });
}

/** The pixels of so many cells, RGBA; `colourOf(i)` is [red, green, blue] from 0 to 255 and alpha from 0 to 1. */
export function pixelsOf(count, colourOf) {
  const pixels = new Uint8ClampedArray(4 * count);
  for (let i = 0; i < count; i++) {
    const [red, green, blue, alpha] = colourOf(i);
    pixels.set([red, green, blue, 255 * alpha], 4 * i);
  }
  return pixels;
}

/** Pixels, RGBA, as a canvas, which may be one that is no longer needed. */
export function pixelCanvas(pixels, width, height, canvas = make("canvas")) {
  put(canvas, { width, height });
  canvas.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
  return canvas;
}

export async function loadImage(src) {
  const image = make("img", { src });
  await image.decode();
  return image;
}

/** Returns `listen(name, callback)` for events of the whole document, for as long as the element is on the page. */
export function documentEvents(element) {
  const stopped = new AbortController();
  return (name, callback) =>
    document.addEventListener(name, (event) => (element.isConnected ? callback(event) : stopped.abort()), {
      signal: stopped.signal,
    });
}

/** Shows or hides a thin progress bar; `progress` is 0 to 1, or null where it is not known. */
export function setProgress(bar, visible, /** @type {number | null} */ progress = null) {
  bar.classList.toggle("on", visible);
  bar.classList.toggle("unknown", progress === null);
  put(bar.firstElementChild.style, { width: `${100 * (progress ?? 1)}%` });
}

/** Writes to the clipboard and resolves to whether that worked; in a frame without that right, the way of older browsers. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** A share, 0 to 1, as a bar. */
export const track = (share) =>
  make("span", { className: "track" }, make("i", { style: `width: ${100 * Math.max(0, share)}%` }));

/** An item of a list about classes: what it is about, a class in the page's language, a bar for a share, and a number. */
export function barRow(about, name, share, number, agrees) {
  const label = translateName(name);
  return make(
    "li",
    { className: agrees ? "agrees" : "" },
    make("small", {}, about),
    make("span", { className: "label", translate: false, title: label }, label),
    track(share),
    make("span", { className: "number" }, number),
  );
}

/**
 * Makes the buttons in a host one stop of the Tab key: the pressed one, or the first that can be used. Arrow keys, Home and
 * End move between them, up and down by a row of `columns`, and `onMove(button)` is called. Called again when another one is
 * pressed.
 */
export function rove(host, columns = 1, onMove = (/** @type {HTMLButtonElement} */ _button) => {}) {
  const usable = () => [...host.querySelectorAll("button:enabled:not([hidden])")];
  const stop = usable().find((button) => button.matches("[aria-pressed=true], [aria-selected=true]")) ?? usable()[0];
  for (const button of host.querySelectorAll("button")) put(button, { tabIndex: button === stop ? 0 : -1 });
  host.onkeydown = (event) => {
    const all = usable();
    const at = all.indexOf(event.target);
    const steps = {
      ArrowRight: at + 1,
      ArrowDown: at + columns,
      ArrowLeft: at - 1,
      ArrowUp: at - columns,
      Home: 0,
      End: -1,
    };
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    const next = all.at(steps[event.key] % all.length);
    next.focus();
    onMove(next);
  };
}

/** The options of a select from [value, words]. */
export const makeOptions = (options) => options.map(([value, textContent]) => make("option", { value, textContent }));

/** The terms and definitions of a list of [term, definition]. */
export const definitions = (lines) =>
  lines.flatMap(([term, value]) => [
    make("dt", { textContent: term }),
    make("dd", { textContent: value, title: value }),
  ]);

const styles = new WeakMap(); // element -> {theme, values}

/** CSS variables of an element, which the theme alone changes: reading them anew would have the page's styles computed. */
export function variablesOf(element, names) {
  const theme = document.body.className; // of which Gradio's dark theme is a part
  const known = styles.get(element);
  if (known?.theme === theme && names.every((name) => known.values[name])) return known.values;
  const style = getComputedStyle(element);
  const values = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`)]));
  styles.set(element, { theme, values });
  return values;
}

let ids = 0;

/** An id that no other element of the page has. */
export const newId = (name) => `${name}-${++ids}`;

/** Fills `host` with radio buttons in one bar, always the same, of [value, label]; returns {set(value), enable(flag)}. */
export function segmentChoice(host, name, options, onChange) {
  const bar = make("div", { id: newId("choice"), className: "segments", role: "radiogroup", ariaLabel: name });
  const { set, enable } = createRadios(bar, onChange);
  host.replaceChildren(bar);
  set(options);
  return { set: (value) => set(options, value), enable };
}

/** Radio buttons in a bar, for options that change: `set([value, label, small lines][], value)`. */
export function createRadios(bar, onChange) {
  const inputs = () => bar.querySelectorAll("input");

  function set(options, value) {
    if (isNew(bar, options)) bar.replaceChildren(...options.map((option) => segment(bar.id, option, onChange)));
    for (const input of inputs()) input.checked = input.value === String(value);
  }

  function enable(flag) {
    for (const input of inputs()) put(input, { disabled: !flag });
  }

  return { set, enable };
}

/** A radio button with its label, and small lines below it. */
function segment(name, [value, label, lines], onChange) {
  const input = make("input", { type: "radio", name, value, onchange: () => onChange(value) });
  input.dataset.value = value;
  const small = lines?.map((textContent) => make("small", { textContent }));
  if (small) return make("label", {}, make("span", { textContent: label }), ...small, input);
  const face = make("label", { textContent: label }, input);
  face.dataset.label = label; // a hidden bold copy keeps the width, so that choosing moves nothing
  return face;
}

/** Offers the [value, words] of `options()` in a select, whose values are JSON, where what they are `of` is new. */
export function fillSelect(select, of, options, value) {
  if (isNew(select, of)) {
    select.replaceChildren(...makeOptions(options().map(([each, words]) => [JSON.stringify(each), words])));
  }
  select.value = JSON.stringify(value);
}

/** A slider with its value written beside it by `format(value)`. */
export function slider(input, format, onChange) {
  const host = input.parentElement;
  host.previousElementSibling.htmlFor = input.id = newId("slider");
  input.addEventListener("input", () => onChange(Number(input.value)));
  return {
    set(value, most = input.max) {
      put(input, { max: String(most), ariaValueText: format(value) });
      input.value = value;
      setText(host.querySelector("span"), format(value));
    },
    enable(flag) {
      put(input, { disabled: !flag });
    },
  };
}
