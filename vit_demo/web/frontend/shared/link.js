// @ts-check
// The state of the page as the fragment of its address, and back. Whatever comes from an address is checked here.

import { decodeStrokes, encodeStrokes, PENS } from "../pad/strokes.js";
import { TASKS } from "./pageState.js";

export const FITS = ["crop", "squash", "keep"];

const WIDTHS = Object.values(PENS);
const REPOSITORY = /^[A-Za-z0-9_][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}(@[\w.-]{1,100})?$/;

/** The state of a page that was opened without a link. */
export function firstState({ models, defaults, examples }) {
  const tab = (preset) => ({ preset, patchSize: models.get(preset)?.default_patch_size ?? null });
  return {
    task: "digits",
    digits: { picture: { digit: defaults.digit }, ...tab(defaults.digits) },
    photos: { picture: examples.length ? { example: examples[0].name } : null, ...tab(defaults.photos), fit: "crop" },
    view: FIRST_VIEW,
  };
}

/**
 * The fragment for a state, without "#". A photo of the visitor's own is left out, and so is a drawing that is too long;
 * `leftOut(state)` tells which.
 */
export function encodeLink(state, models) {
  const { task, view } = state;
  const { picture, preset, patchSize, fit } = state[task];
  const model = models.get(preset);
  const fields = {
    tab: task,
    model: preset,
    patch_size: patchSize,
    fit: task === "photos" && fit !== "crop" ? fit : null,
    ...pictureFields(picture),
    ...encodeView(view, model?.num_blocks),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return given.map(([name, value]) => `${name}=${readable(value)}`).join("&");
}

/** A value for a fragment, in which these characters may stand as they are. */
const readable = (value) => encodeURIComponent(value).replace(/%(2F|3A|2C|40)/g, (code) => decodeURIComponent(code));

function pictureFields(picture) {
  if (!picture || picture.refused) return { picture: "none" };
  if (picture.strokes) return { strokes: encodeStrokes(picture.strokes, WIDTHS) };
  return { digit: picture.digit, photo: picture.example };
}

/**
 * What no link holds, of a state: "photo", "drawing" (one that is too long), "second" (a second picture of one's own) or
 * null.
 */
export function leftOut(/** @type {import("./pageState.js").State} */ state) {
  const { picture } = state[state.task];
  if (picture?.upload) return "photo";
  if (picture?.strokes && encodeStrokes(picture.strokes, WIDTHS) === null) return "drawing";
  return state.view.features.second?.own ? "second" : null;
}

/**
 * The state that a fragment describes, or null for one that describes none; `page` is {models, defaults, examples,
 * customModels}. What is missing or makes no sense is as when the page opens. `model` beside the state is the name of a
 * model that is not on the menu yet, or whose weights are to be downloaded first, with the patch size for it.
 *
 * @returns {{state: import("./pageState.js").State, model: {name: string, patchSize: number | null} | null} | null}
 */
export function decodeLink(fragment, page) {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 4000));
  const name = fields.get("tab") ?? (fields.has("section") ? TASKS[0] : null); // #section=steps is easy to remember
  const task = TASKS.find((each) => each === name);
  if (!task) return null;
  const state = firstState(page);
  /** @type {any} */
  const tab = { ...state[task], ...decodePicture(fields, task, page) };
  const fit = FITS.find((each) => each === fields.get("fit"));
  if (task === "photos" && fit) tab.fit = fit;
  const size = integer(fields.get("patch_size"), 1, 10_000);
  const wanted = fields.get("model") ?? "";
  const known = page.models.get(wanted);
  /** @type {{name: string, patchSize: number | null} | null} */
  let model = null;
  if (known?.task === task && known.on_machine) Object.assign(tab, { preset: wanted, patchSize: sizeOf(known, size) });
  else if (known ? known.task === task : task === "photos" && page.customModels && REPOSITORY.test(wanted)) {
    model = { name: wanted, patchSize: size };
  }
  return { state: { ...state, task, [task]: tab, view: decodeView(fields) }, model };
}

function decodePicture(fields, task, { examples }) {
  if (fields.get("picture") === "none") return { picture: null };
  if (task === "photos") {
    const example = examples.find(({ name }) => name === fields.get("photo"));
    return example ? { picture: { example: example.name } } : {};
  }
  const digit = integer(fields.get("digit"), 0, 9);
  if (digit !== null) return { picture: { digit } };
  const strokes = decodeStrokes(fields.get("strokes") ?? "", WIDTHS);
  return strokes ? { picture: { strokes } } : {};
}

/** A patch size of a model: the wanted one if it is offered, else the default. */
export const sizeOf = (model, wanted) =>
  model.sizes.some(({ size }) => size === wanted) ? wanted : model.default_patch_size;

// The view of the stage as fields of an address, and back: what is shown of a result, in each section.

/**
 * What a view is before anybody has chosen one; null where it depends on the result: the last block, the predicted class.
 * @type {import("./pageState.js").View}
 */
export const FIRST_VIEW = {
  section: "attention",
  method: "attention",
  block: null,
  head: -1,
  direction: "from",
  pinned: null,
  label: null,
  against: null,
  dropped: null,
  opacity: 0.8,
  features: { mode: "similarity", block: null, k: 5, background: false, opacity: 0.75, pinned: null, second: null },
  tour: { step: 0, patch: null, block: null, head: 0, filter: null, fromClassToken: false },
  compare: null,
  network: null,
};

export const VIEW_FIELDS = Object.keys(FIRST_VIEW);
export const FEATURE_MODES = ["similarity", "pca", "segments", "norms", "classes"];
export const MOST_COLUMNS = 4;
const MOST_RANGES = 500;

const NAME = /^[a-z][a-z0-9_-]{0,39}$/;
const MODEL = /^[\w.-]{1,96}(\/[\w.-]{1,96}(@[\w.-]{1,100})?)?$/;
const TITLE = /^[\w .-]{1,60}$/;
const LARGEST = 100_000;

/** The fields of a network that a visitor may change, and the words that a link may hold; null for a whole number. */
const NETWORK_FIELDS = {
  image_size: null,
  patch_size: null,
  in_channels: null,
  num_classes: null,
  embed_dim: null,
  depth: null,
  num_heads: null,
  pool: ["cls", "mean", "all", "cls+mean", "cls+next"],
  class_token: ["true", "false"],
  pos_embed: ["learned", "sincos"],
};

/** The fields of a view by name; null for what is as at first. `numBlocks` is that of the model, if it is known. */
function encodeView(view, numBlocks) {
  const { features, tour } = view;
  const unless = (value, first) => (value === first ? null : value);
  const plusOne = (value) => (value === null ? null : value + 1);
  const percent = (value, first) => (value === first ? null : Math.round(100 * value));
  const first = FIRST_VIEW.features;
  return {
    section: unless(view.section, FIRST_VIEW.section),
    method: unless(view.method, FIRST_VIEW.method),
    block: view.block === null || view.block + 1 === numBlocks ? null : view.block + 1,
    head: view.head < 0 ? null : view.head + 1,
    direction: unless(view.direction, FIRST_VIEW.direction),
    patch: plusOne(view.pinned),
    class: view.label,
    against: view.against,
    removed: view.dropped?.length ? encodePatches(view.dropped) : null,
    opacity: percent(view.opacity, FIRST_VIEW.opacity),
    features: unless(features.mode, first.mode),
    features_block: plusOne(features.block),
    segments: unless(features.k, first.k),
    background: features.background ? "removed" : null,
    features_opacity: percent(features.opacity, first.opacity),
    features_patch: features.pinned && [features.pinned.patch + 1, ...(features.pinned.picture ? [2] : [])].join(":"),
    second: features.second?.example,
    step: tour.step ? tour.step + 1 : null,
    step_patch: plusOne(tour.patch),
    step_block: plusOne(tour.block),
    step_head: tour.head ? tour.head + 1 : null,
    step_filter: plusOne(tour.filter),
    step_token: tour.fromClassToken ? "class" : null,
    columns: view.compare?.map(encodeColumn).join(","),
    network: view.network && encodeNetwork(view.network),
  };
}

const encodeColumn = ({ preset, patchSize, method, label }) =>
  [preset, patchSize, method, ...(label === null ? [] : [label])].join(":");

function encodeNetwork({ start, fields }) {
  const given = Object.entries(fields).filter(([, value]) => !Number.isNaN(value)); // a field that is being emptied
  return [start, ...given.map(([name, value]) => `${name}:${value}`)].join(",");
}

/**
 * The view that the fields of an address (URLSearchParams) describe; what makes no sense is as at first.
 * @returns {import("./pageState.js").View}
 */
function decodeView(fields) {
  const lessOne = (value) => (value === null ? null : value - 1);
  const get = (name) => fields.get(name) ?? "";
  const number = (name, lowest, highest) => integer(get(name), lowest, highest);
  const place = (name, highest) => lessOne(number(name, 1, highest));
  const percent = (name, first) => (number(name, 0, 100) ?? 100 * first) / 100;
  const first = FIRST_VIEW.features;
  return {
    section: NAME.test(get("section")) ? get("section") : FIRST_VIEW.section,
    method: NAME.test(get("method")) ? get("method") : FIRST_VIEW.method,
    block: place("block", 1000),
    head: place("head", 1000) ?? -1,
    direction: get("direction") === "to" ? "to" : "from",
    pinned: place("patch", 10_000),
    label: number("class", 0, LARGEST),
    against: number("against", 0, LARGEST),
    dropped: decodePatches(get("removed")),
    opacity: percent("opacity", FIRST_VIEW.opacity),
    features: {
      mode: FEATURE_MODES.includes(get("features")) ? get("features") : first.mode,
      block: place("features_block", 1000),
      k: number("segments", 2, 12) ?? first.k,
      background: get("background") === "removed",
      opacity: percent("features_opacity", first.opacity),
      pinned: decodePlace(get("features_patch")),
      second: NAME.test(get("second")) ? { example: get("second") } : null,
    },
    tour: {
      step: place("step", 100) ?? FIRST_VIEW.tour.step,
      patch: place("step_patch", 10_000),
      block: place("step_block", 1000),
      head: place("step_head", 1000) ?? FIRST_VIEW.tour.head,
      filter: place("step_filter", 10_000),
      fromClassToken: get("step_token") === "class",
    },
    compare: decodeColumns(get("columns")),
    network: decodeNetwork(get("network")),
  };
}

/** Patches as numbers and ranges: [0, 1, 2, 6] is "1-3,7". */
function encodePatches(patches) {
  const ranges = [];
  for (const patch of patches) {
    const last = ranges.at(-1);
    if (last?.[1] === patch - 1) last[1] = patch;
    else ranges.push([patch, patch]);
  }
  return ranges.map(([first, last]) => (first === last ? first + 1 : `${first + 1}-${last + 1}`)).join(",");
}

function decodePatches(text) {
  const patches = new Set();
  for (const range of text.split(",", MOST_RANGES)) {
    const [first, last, ...rest] = range.split("-").map((part) => integer(part, 1, 10_000));
    if (!first || last === null || rest.length) return null;
    for (let patch = first; patch <= (last ?? first); patch++) patches.add(patch - 1);
  }
  return patches.size ? [...patches].sort((a, b) => a - b) : null;
}

/** A patch, and in which of two pictures. */
function decodePlace(text) {
  const [patch, picture, ...rest] = text.split(":");
  const place = { picture: picture === "2" ? 1 : 0, patch: (integer(patch, 1, 10_000) ?? 0) - 1 };
  return place.patch < 0 || rest.length || ![undefined, "2"].includes(picture) ? null : place;
}

/** Columns of a comparison that may exist, or null for none. */
function decodeColumns(text) {
  const columns = text.split(",", MOST_COLUMNS).map((column) => {
    const [preset, size, method, label] = column.split(":", 4);
    const patchSize = integer(size, 1, 10_000);
    const isColumn = MODEL.test(preset) && patchSize !== null && NAME.test(method ?? "");
    return isColumn && { preset, patchSize, method, label: integer(label, 0, LARGEST) };
  });
  const found = columns.filter(Boolean);
  return found.length ? found : null;
}

/** A starting point by its title, and the fields that differ from it; null for none. */
function decodeNetwork(text) {
  const [start, ...changes] = text.split(",", 1 + Object.keys(NETWORK_FIELDS).length);
  if (!TITLE.test(start)) return null;
  const given = changes.map((change) => change.split(":", 2)).filter(([name]) => Object.hasOwn(NETWORK_FIELDS, name));
  const read = ([name, value]) => [name, NETWORK_FIELDS[name] ? word(name, value) : integer(value, 0, LARGEST)];
  return { start, fields: Object.fromEntries(given.map(read).filter(([, value]) => value !== null)) };
}

function word(name, value) {
  if (!NETWORK_FIELDS[name].includes(value)) return null;
  return name === "class_token" ? value === "true" : value;
}

/** A whole number in a range that was written with digits alone, else null. */
function integer(text, lowest, highest) {
  if (!/^\d{1,6}$/.test(text ?? "")) return null;
  const value = Number(text);
  return lowest <= value && value <= highest ? value : null;
}
