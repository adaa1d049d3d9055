// The state of the page as the fragment of its address, and back. Whatever comes from an address is checked here.

import { PENS } from "../pad/strokes.js";
import { TASKS } from "./pageState.js";
import { decodeStrokes, encodeStrokes } from "./strokeCodec.js";

export const FITS = ["crop", "squash", "keep"];

const WIDTHS = Object.values(PENS);
const REPOSITORY = /^[A-Za-z0-9_][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}(@[\w.-]{1,100})?$/;
const NAME = /^[a-z][a-z0-9_-]{0,39}$/;

/** What a view is before anybody has chosen one; the block is the last, whose number depends on the model. */
export const FIRST_VIEW = {
  section: "attention",
  method: "attention",
  block: null,
  head: -1,
  direction: "from",
  pinned: null,
  label: null,
};

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
 * `isWhole(state)` tells whether anything is.
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
    section: view.section === FIRST_VIEW.section ? null : view.section,
    method: view.method === FIRST_VIEW.method ? null : view.method,
    block: view.block === null || view.block + 1 === model?.num_blocks ? null : view.block + 1,
    head: view.head < 0 ? null : view.head + 1,
    direction: view.direction === FIRST_VIEW.direction ? null : view.direction,
    patch: view.pinned === null ? null : view.pinned + 1,
    class: view.label,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return given.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&");
}

function pictureFields(picture) {
  if (!picture) return { picture: "none" };
  if (picture.strokes) return { strokes: encodeStrokes(picture.strokes, WIDTHS) };
  return { digit: picture.digit, photo: picture.example };
}

/** Whether a link holds all of a state. */
export const isWhole = (state) => {
  const { picture } = state[state.task];
  return !picture?.upload && (!picture?.strokes || encodeStrokes(picture.strokes, WIDTHS) !== null);
};

/**
 * The state that a fragment describes, or null for one that describes none; `page` is {models, defaults, examples,
 * customModels}. What is missing or makes no sense is as when the page opens. `model` beside the state is the name of a
 * model that is not on the menu yet, or whose weights are to be downloaded first, with the patch size for it.
 */
export function decodeLink(fragment, page) {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 4000));
  const task = fields.get("tab");
  if (!TASKS.includes(task)) return null;
  const state = firstState(page);
  const tab = { ...state[task], ...decodePicture(fields, task, page) };
  if (task === "photos" && FITS.includes(fields.get("fit"))) tab.fit = fields.get("fit");
  const size = integer(fields.get("patch_size"), 1, 10_000);
  const name = fields.get("model") ?? "";
  const known = page.models.get(name);
  let model = null;
  if (known?.task === task && known.on_machine) Object.assign(tab, { preset: name, patchSize: sizeOf(known, size) });
  else if (known ? known.task === task : task === "photos" && page.customModels && REPOSITORY.test(name)) {
    model = { name, patchSize: size };
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

function decodeView(fields) {
  const lessOne = (value) => (value === null ? null : value - 1);
  const name = (field) => (NAME.test(fields.get(field) ?? "") ? fields.get(field) : FIRST_VIEW[field]);
  return {
    section: name("section"),
    method: name("method"),
    block: lessOne(integer(fields.get("block"), 1, 1000)),
    head: lessOne(integer(fields.get("head"), 1, 1000)) ?? -1,
    direction: fields.get("direction") === "to" ? "to" : "from",
    pinned: lessOne(integer(fields.get("patch"), 1, 10_000)),
    label: integer(fields.get("class"), 0, 100_000),
  };
}

/** A patch size of a model: the wanted one if it is offered, else the default. */
export const sizeOf = (model, wanted) =>
  model.sizes.some(({ size }) => size === wanted) ? wanted : model.default_patch_size;

/** A whole number in a range that was written with digits alone, else null. */
function integer(text, lowest, highest) {
  if (!/^\d{1,6}$/.test(text ?? "")) return null;
  const value = Number(text);
  return lowest <= value && value <= highest ? value : null;
}
