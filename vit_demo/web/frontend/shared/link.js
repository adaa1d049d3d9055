// The state of the page as the fragment of its address, and back. Whatever comes from an address is checked here.

import { PENS } from "../pad/strokes.js";
import { TASKS } from "./pageState.js";
import { decodeStrokes, encodeStrokes } from "./strokeCodec.js";
import { decodeView, encodeView, FIRST_VIEW, integer } from "./viewLink.js";

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
export function leftOut({ task, [task]: { picture }, view }) {
  if (picture?.upload) return "photo";
  if (picture?.strokes && encodeStrokes(picture.strokes, WIDTHS) === null) return "drawing";
  return view.features.second?.own ? "second" : null;
}

/**
 * The state that a fragment describes, or null for one that describes none; `page` is {models, defaults, examples,
 * customModels}. What is missing or makes no sense is as when the page opens. `model` beside the state is the name of a
 * model that is not on the menu yet, or whose weights are to be downloaded first, with the patch size for it.
 */
export function decodeLink(fragment, page) {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 4000));
  const task = fields.get("tab") ?? (fields.has("section") ? TASKS[0] : null); // #section=steps is easy to remember
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

/** A patch size of a model: the wanted one if it is offered, else the default. */
export const sizeOf = (model, wanted) =>
  model.sizes.some(({ size }) => size === wanted) ? wanted : model.default_patch_size;
