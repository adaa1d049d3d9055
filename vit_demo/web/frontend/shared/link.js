// @ts-check
// The state of the page as the fragment of its address, and back. Whatever comes from an address is checked here.

import { PENS } from "../pad/strokes.js";
import { decodeStrokes, encodeStrokes } from "../pad/strokesInLink.js";
import { english } from "./language.js";
import { integer, kinds, LARGEST, NAME, readWords } from "./linkFields.js";
import { TASKS } from "./pageState.js";

export const FITS = ["crop", "squash", "keep"];

const NOT_IN_IT = english(
  "The picture of this link is not in it: links never hold a visitor’s own photos. Choose one, or draw a digit.",
);
const WIDTHS = Object.values(PENS);
const REPOSITORY = /^[A-Za-z0-9_][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}(@[\w.-]{1,100})?$/;

const TAUGHT = /^[\w-]{1,8192}$/; // the names and numbers of a head, as Python's `to_link` writes them

const TEST_DIGIT = /^test-\d{1,3}$/; // one that the networks trained here have not seen
/** Whether a model is a network that a visitor has trained. */
export const isTrained = (name) => /^yours-[\w-]{22}$/.test(name);

/** The state of a page that was opened without a link. */
export function firstState({ models, defaults, examples }) {
  const tab = (preset) => ({ preset, patchSize: models.get(preset)?.default_patch_size ?? null });
  return {
    task: "digits",
    digits: { picture: { digit: defaults.digit }, ...tab(defaults.digits) },
    photos: {
      picture: examples.length ? { example: examples[0].name } : null,
      ...tab(defaults.photos),
      fit: "crop",
      words: null,
    },
    view: FIRST_VIEW,
  };
}

/**
 * The fragment for a state, without "#": what differs from `page.start`. A photo of the visitor's own is left out, and so
 * is a drawing that is too long; `leftOut(state)` tells which.
 */
export function encodeLink(state, { models, start }) {
  const { task, view } = state;
  const { picture, preset, patchSize, fit, words } = state[task];
  const first = start[task];
  const model = models.get(preset);
  const isFirst = JSON.stringify(picture) === JSON.stringify(first.picture);
  const fields = {
    tab: task === TASKS[0] ? null : task,
    model: preset === first.preset ? null : preset,
    taught: model?.link || null,
    patch_size: patchSize === model?.default_patch_size ? null : patchSize,
    fit: fit === first.fit ? null : fit,
    words: model?.takes_words && words ? words.join() : null,
    ...(isFirst ? {} : pictureFields(picture)),
    ...encodeView(view, model?.num_blocks),
    ...(!isTrained(preset) && { training: null }),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return given.map(([name, value]) => `${name}=${readable(value)}`).join("&");
}

/** A value for a fragment, in which these characters may stand as they are. */
const readable = (value) => encodeURIComponent(value).replace(/%(2F|3A|2C|40)/g, (code) => decodeURIComponent(code));

function pictureFields(picture) {
  if (!picture || picture.refused) return { picture: "none" };
  const strokes = picture.strokes && encodeStrokes(picture.strokes, WIDTHS);
  if (picture.upload || strokes === null) return { picture: "own" };
  if (strokes) return { strokes };
  return TEST_DIGIT.test(picture.example)
    ? { digit: picture.example }
    : { digit: picture.digit, photo: picture.example };
}

/**
 * What no link holds, of a state: "photo", "drawing" (one that is too long), "classes" (that were taught, too many), "second"
 * (a second picture of one's own) or null.
 */
export function leftOut(/** @type {import("./pageState.js").State} */ state, /** @type {any} */ models = null) {
  const { picture, preset } = state[state.task];
  if (models?.get(preset)?.link === "") return "classes";
  if (picture?.upload) return "photo";
  if (picture?.strokes && encodeStrokes(picture.strokes, WIDTHS) === null) return "drawing";
  return state.view.features.second?.own ? "second" : null;
}

/**
 * The state that a fragment describes, or null for one that describes none; `page` is {models, start, examples,
 * customModels}. What is missing or makes no sense is as when the page opens. `model` beside the state is the name of a
 * model that is not on the menu yet, or whose weights are to be downloaded first, with the patch size for it.
 *
 * @returns {{state: import("./pageState.js").State, model: {name: string, patchSize: number | null} | null} | null}
 */
export function decodeLink(fragment, page) {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 12_500));
  const name = fields.get("tab") ?? (NAMES.some((each) => fields.has(each)) ? TASKS[0] : null);
  const task = TASKS.find((each) => each === name);
  if (!task) return null;
  const state = page.start;
  /** @type {any} */
  const tab = { ...state[task], ...decodePicture(fields, task, page) };
  const fit = FITS.find((each) => each === fields.get("fit"));
  if (task === "photos" && fit) tab.fit = fit;
  const words = readWords(fields.get("words") ?? "");
  if (task === "photos" && words) tab.words = words;
  const size = integer(fields.get("patch_size"), 1, 10_000);
  const wanted = fields.get("model") ?? state[task].preset;
  const known = page.models.get(wanted);
  const taught = TAUGHT.exec(fields.get("taught") ?? "")?.[0];
  /** @type {{name: string, patchSize: number | null, taught?: string} | null} */
  let model = /** @type {any} */ (null);
  if (known?.task === task && known.on_machine) Object.assign(tab, { preset: wanted, patchSize: sizeOf(known, size) });
  else if (!known && taught) model = { name: wanted, patchSize: size, taught };
  else if (known ? known.task === task : isOwnModel(task, wanted, page)) {
    model = { name: wanted, patchSize: size };
  }
  return { state: { ...state, task, [task]: tab, view: decodeView(fields) }, model };
}

/** Whether a name that is not on the menu may be that of a model: a trained network, or a repository of the Hub. */
const isOwnModel = (task, name, { customModels }) =>
  task === "digits" ? isTrained(name) : customModels && REPOSITORY.test(name);

/** The small copy of a picture that the link of a report holds, in base64, as a file; null for none. */
function linkedPhoto(text) {
  try {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return bytes.length ? new File([bytes], "picture.webp", { type: "image/webp" }) : null;
  } catch {
    return null; // no base64
  }
}

function decodePicture(fields, task, { examples }) {
  const file = linkedPhoto(fields.get("image") ?? "");
  if (file) return { picture: { refused: english("Uploading …"), file } };
  if (fields.get("picture") === "none") return { picture: null };
  if (fields.get("picture") === "own") return { picture: { refused: NOT_IN_IT } };
  if (task === "photos") {
    const example = examples.find(({ name }) => name === fields.get("photo"));
    return example ? { picture: { example: example.name } } : {};
  }
  const digit = integer(fields.get("digit"), 0, 9);
  if (digit !== null) return { picture: { digit } };
  if (TEST_DIGIT.test(fields.get("digit") ?? "")) return { picture: { example: fields.get("digit") } };
  const strokes = decodeStrokes(fields.get("strokes") ?? "", WIDTHS);
  return strokes ? { picture: { strokes } } : {};
}

/** A patch size of a model: the wanted one if it is offered, else the default. */
export const sizeOf = (model, wanted) =>
  model.sizes.some(({ size }) => size === wanted) ? wanted : model.default_patch_size;

// The view of the stage as fields of an address, and back: what is shown of a result, in each section.

export const FEATURE_MODES = ["similarity", "pca", "segments", "norms", "classes"];
export const MOST_COLUMNS = 4;

const MODEL = /^[\w.-]{1,96}(\/[\w.-]{1,96}(@[\w.-]{1,100})?)?$/;
const TITLE = /^[\w .-]{1,60}$/;

/** The fields of a network that a visitor may change. */
const NETWORK_FIELDS = {
  image_size: kinds.anyNumber,
  patch_size: kinds.anyNumber,
  in_channels: kinds.anyNumber,
  num_classes: kinds.anyNumber,
  embed_dim: kinds.anyNumber,
  depth: kinds.anyNumber,
  num_heads: kinds.anyNumber,
  pool: kinds.oneOf("cls", "mean", "all", "cls+mean", "cls+next"),
  class_token: { read: (text) => (["true", "false"].includes(text) ? text === "true" : null) },
  pos_embed: kinds.oneOf("learned", "sincos", "none"),
};

/**
 * The fields of a view: the name in the address, the part of the view and the name there, the value before anybody has
 * chosen one (null where it depends on the result: the last block, the predicted class), and the kind.
 * @type {any[][]}
 */
const FIELDS = [
  ["lesson", "", "lesson", null, kinds.anyNumber],
  ["section", "", "section", "attention", kinds.name],
  ["method", "", "method", "attention", kinds.name],
  ["picture_alone", "", "plain", false, kinds.flag("yes")],
  ["block", "", "block", null, kinds.block],
  ["head", "", "head", -1, kinds.block],
  ["direction", "", "direction", "from", kinds.oneOf("from", "to")],
  ["patch", "", "pinned", null, kinds.patch],
  ["class", "", "label", null, kinds.anyNumber],
  ["against", "", "against", null, kinds.anyNumber],
  ["removed", "", "dropped", null, kinds.patches],
  ["silent", "", "silent", null, kinds.heads],
  ["beat", "", "beat", null, kinds.number(1, 10_000)],
  ["opacity", "", "opacity", 0.8, kinds.percent],
  ["smooth", "", "smooth", false, kinds.flag("yes")],
  ["scale", "", "scale", "shared", kinds.oneOf("shared", "own")],
  ["features", "features", "mode", "similarity", kinds.oneOf(...FEATURE_MODES)],
  ["features_block", "features", "block", null, kinds.block],
  ["segments", "features", "k", 5, kinds.number(2, 12)],
  ["background", "features", "background", false, kinds.flag("removed")],
  ["features_opacity", "features", "opacity", 0.75, kinds.percent],
  ["features_patch", "features", "pinned", null, kinds.placeInPictures],
  ["second", "features", "second", null, { write: ({ example }) => example, read: decodeSecond }],
  ["step", "tour", "step", 0, kinds.place(100)],
  ["step_patch", "tour", "patch", null, kinds.patch],
  ["step_block", "tour", "block", null, kinds.block],
  ["step_head", "tour", "head", 0, kinds.block],
  ["step_filter", "tour", "filter", null, kinds.patch],
  ["step_token", "tour", "fromClassToken", false, kinds.flag("class")],
  ["columns", "", "compare", null, { write: encodeColumns, read: decodeColumns }],
  ["network", "", "network", null, { write: encodeNetwork, read: decodeNetwork }],
  ["training", "", "training", null, kinds.training],
];

/** The names of which one is enough to tell a link: #section=steps is easy to remember. */
const NAMES = ["model", "words", "patch_size", "digit", "strokes", "picture", ...FIELDS.map(([field]) => field)];

const partOf = (view, part) => (part ? view[part] : view);

/**
 * The view that the fields of an address (URLSearchParams) describe; what makes no sense is as at first.
 * @returns {import("./pageState.js").View}
 */
function decodeView(fields) {
  const view = /** @type {any} */ ({ features: {}, tour: {} });
  for (const [field, part, key, first, { read }] of FIELDS) {
    partOf(view, part)[key] = read(fields.get(field) ?? "") ?? first;
  }
  return view;
}

/** The fields of a view by name; null for what is as at first. `numBlocks` is that of the model, if it is known. */
function encodeView(view, numBlocks) {
  const shown = view.block + 1 === numBlocks ? { ...view, block: null } : view;
  const written = FIELDS.map(([field, part, key, first, { write }]) => {
    const value = partOf(shown, part)[key];
    return [field, value === null || value === first ? null : write(value)];
  });
  return Object.fromEntries(written);
}

/** The view before anybody has chosen one. */
export const FIRST_VIEW = decodeView(new URLSearchParams());

function decodeSecond(text) {
  return NAME.test(text) ? { example: text } : null;
}

function encodeColumns(columns) {
  return columns
    .map(({ preset, patchSize, method, label, without }) =>
      [preset, patchSize, method, label ?? (without ? "" : []), without ? "silent" : []].flat().join(":"),
    )
    .join();
}

/** Columns of a comparison that may exist, or null for none. */
function decodeColumns(text) {
  const columns = text.split(",", MOST_COLUMNS).map((column) => {
    const [preset, size, method, label, heads] = column.split(":", 5);
    const patchSize = integer(size, 1, 10_000);
    const isColumn = MODEL.test(preset) && patchSize !== null && NAME.test(method ?? "");
    return isColumn && { preset, patchSize, method, label: integer(label, 0, LARGEST), without: heads === "silent" };
  });
  const found = columns.filter(Boolean);
  return found.length ? found : null;
}

/** A starting point by its title, and the fields that differ from it; null for none. */
function encodeNetwork({ start, fields }) {
  const given = Object.entries(fields).filter(([, value]) => !Number.isNaN(value)); // a field that is being emptied
  return [start, ...given.map(([field, value]) => `${field}:${value}`)].join();
}

function decodeNetwork(text) {
  const [start, ...changes] = text.split(",", 1 + Object.keys(NETWORK_FIELDS).length);
  if (!TITLE.test(start)) return null;
  const given = changes.map((change) => change.split(":", 2)).filter(([field]) => Object.hasOwn(NETWORK_FIELDS, field));
  const read = given.map(([field, value]) => [field, NETWORK_FIELDS[field].read(value)]);
  return { start, fields: Object.fromEntries(read.filter(([, value]) => value !== null)) };
}
