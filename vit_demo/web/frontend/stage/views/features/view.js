// @ts-check
// What the tokens of the patches hold: colours on the picture, and on a second one beside its settings in the drawer.

import {
  isNew,
  loadImage,
  make,
  makeOptions,
  onFiles,
  put,
  segmentChoice,
  setText,
  slider,
} from "../../../shared/dom.js";
import { middlePatch } from "../../../shared/geometry.js";
import { currentLanguage, english, translate } from "../../../shared/language.js";
import { pageState } from "../../../shared/pageState.js";
import { createReplyCache, createRequestIds, SETTLE, sendPhoto } from "../../../shared/requests.js";
import { placeOf } from "../../format.js";
import { inkOnPaper } from "../../heatmapColours.js";
import { fitCanvas, listenToPatches, paintPatches } from "../../picture.js";
import { keptPlace } from "../../stage.js";
import { classesOf, MODES, readingOf, subjectOf } from "./modes.js";
import { bordersOf, decodeTokens, layerOf } from "./tokens.js";

const LONGEST_LABEL = 2; // characters of a class that is written into its patches

/** Whether two results are of one picture on one grid, whatever is rubbed out of it. */
const isSamePicture = (...results) =>
  new Set(results.map(({ source }) => JSON.stringify({ ...source, dropped: [], silent: [] }))).size === 1;

/** @type {import("../contract.d.ts").Create} */
export function create(host, { request, change, redraw, upload, examples }) {
  const find = (selector) => host.querySelector(selector);
  const [box, canvas] = [find(".second-view"), find(".second-view canvas")];
  const replies = createReplyCache(request, redraw);
  let scene = /** @type {any} */ (null); // what is shown: {result, tokens, images, block}
  let beside = /** @type {any} */ (null); // how the second picture is painted: {grid, options, pixelated}
  let pointed = /** @type {any} */ (null); // a patch of the second picture

  const chosen = () => pageState.get().view.features;
  const set = (part) => change({ features: { ...chosen(), ...part } });
  const k = slider(find("[data-feature=k]"), String, (value) => set({ k: value }));
  const background = segmentChoice(
    find(".background"),
    english("Background"),
    [
      [false, english("shown")],
      [true, english("hidden")],
    ],
    (value) => set({ background: value }),
  );
  const second = createSecondPicture(find(".second"), find(".second + input"), {
    photos: examples,
    upload,
    exampleNow() {
      const state = pageState.get();
      const { example, digit } = state[state.task].picture ?? {};
      return example ?? (digit === undefined ? null : `digit-${digit}`);
    },
    onChoose(picture) {
      pointed = null;
      set({ second: picture, pinned: chosen().pinned?.picture ? null : chosen().pinned });
    },
    onNews: (sentence) => setText(find(".drawer .news"), sentence),
  });

  /** The reply about a block, alone or together with a second picture. */
  function tokensOf(result, block, other) {
    async function decode(reply) {
      const url = reply.pictures[1]?.image;
      const image = url ? await loadImage(url) : null;
      const images = [result.picture, image && result.pixelated ? inkOnPaper(image) : image];
      return { tokens: decodeTokens(reply), images };
    }
    const fields = { kind: "tokens", block, other: other?.source };
    return replies.get(result, fields, decode, { delay: scene?.result === result ? SETTLE : 0 });
  }

  /**
   * What the picture shows in the section "features", as `paintPatches` takes it, with its words: {sentence, subject, reading},
   * `legend`, `opacity` and `value`; null in other sections.
   */
  function picture(result, choices) {
    const isOpen = choices.section === "features";
    if (!isOpen) return leave();
    const { features } = choices;
    const block = Math.min(features.block ?? Infinity, result.numBlocks - 1);
    const mode = features.mode === "classes" && !result.predictions.length ? "similarity" : features.mode;
    const other = second.get(features.second, result);
    const entry = tokensOf(result, block, other);
    if (entry.value) scene = { result, ...entry.value, block };
    else if (scene && !isSamePicture(scene.result, result)) scene = null;
    const mostSegments = scene ? scene.tokens.mostSegments : Math.min(12, result.numPatches);
    const segments = Math.min(features.k, mostSegments);
    k.set(segments, mostSegments);
    k.enable(mode === "segments");
    background.set(features.background);
    background.enable(mode === "pca");
    second.show(features.second, result);
    put(box, { hidden: !other || !scene || scene.tokens.pictures.length < 2 });
    const subject = english("The tokens are loading.");
    if (!scene) return { sentence: "", subject, reading: entry.error, legend: {}, opacity: 1 };
    return shown(mode, segments, choices, entry.error);
  }

  function leave() {
    replies.release("tokens");
    scene = beside = null;
    put(box, { hidden: true });
    return null;
  }

  function shown(mode, segments, choices, error) {
    const { result, tokens, images, block } = scene;
    const { features, hovered } = choices;
    const at = pointed === null ? { picture: 0, patch: hovered } : { picture: 1, patch: pointed };
    const pointer = at.patch === null ? null : at;
    const query = queryOf(tokens, features.pinned, choices.verb === "look" ? pointer : null);
    const drawn = MODES[mode].show(tokens, {
      k: segments,
      background: features.background,
      token: tokenAt(tokens, query),
    });
    const colours = drawn.colours(features.opacity);
    const names = mode === "classes" ? colours.map((_, i) => classesOf(tokens, i)[0].name) : null;
    const optionsOf = (grid, index) => ({
      layer: layerOf(grid, colours),
      borders: drawn.segments ? bordersOf(grid, drawn.segments) : [],
      labels: names ? labelsOf(grid, names) : [],
      outlined: outlinesOf(tokens, grid, index, mode, query, pointer),
    });
    if (!box.hidden) {
      const [, grid] = tokens.pictures;
      beside = { grid, pixelated: result.pixelated, image: images[1], options: optionsOf(grid, 1) };
      paintSecond();
    }
    const words = subjectOf(mode, tokens, { block, k: segments, query }, result);
    const reading = pointer ? readingOf(mode, tokens, tokenAt(tokens, pointer), drawn) : "";
    return {
      ...optionsOf(tokens.pictures[0], 0),
      sentence: MODES[mode].sentence(tokens, { block, k: segments }, result),
      subject: words,
      reading: error || (reading && `${placeOf(tokens.pictures[at.picture], at.patch)}: ${translate(reading)}`),
      legend: MODES[mode].legend(drawn),
      opacity: features.opacity,
    };
  }

  function paintSecond() {
    if (box.hidden || !beside) return;
    const { grid, image, pixelated, options } = beside;
    paintPatches(canvas, fitCanvas(canvas, grid.size), grid, { image, pixelated, dropped: grid.dropped, ...options });
  }

  function outlinesOf(tokens, grid, index, mode, query, pointer) {
    const outlined = [];
    if (mode === "norms") {
      grid.tokenOf.forEach((token, patch) => {
        if (tokens.outliers.has(token)) outlined.push([patch, 2]);
      });
    }
    if (pointer?.picture === index) outlined.push([pointer.patch, 1]);
    if (mode === "similarity" && query.picture === index) outlined.push([query.patch, 2.5]);
    return outlined;
  }

  /** The patch that all others are compared with. */
  function queryOf(tokens, pinned, pointer) {
    const [first] = tokens.pictures;
    const middle = { picture: 0, patch: middlePatch(first) };
    const any = { picture: 0, patch: first.tokenOf.findIndex((token) => token >= 0) };
    return [pinned, pointer, middle].find((place) => place && tokenAt(tokens, place) >= 0) ?? any;
  }

  const tokenAt = ({ pictures }, { picture: index, patch }) => pictures[index]?.tokenOf[patch] ?? -1;

  function point(patch) {
    if (patch === pointed) return;
    pointed = patch;
    redraw();
  }

  const keep = (patch) => change(keptPlace(patch, 1));

  listenToPatches(canvas, () => beside?.grid ?? null, {
    hover: point,
    click: keep,
    at: () => pointed,
    press: () => pointed !== null && keep(pointed),
    leave: () => point(null),
  });
  new ResizeObserver(paintSecond).observe(box);

  const modes = Object.entries(MODES).map(([mode, { title, use }]) => [mode, title, use]);
  return { picture, modes, retry: replies.retry };
}

const labelsOf = ({ tokenOf }, names) =>
  Array.from(tokenOf, (token, patch) => [patch, token < 0 ? "" : names[token]]).filter(
    ([, name]) => name && name.length <= LONGEST_LABEL,
  );

// The second picture: an example, a photo of the visitor's own, or the picture on the stage, kept for the next.

const NONE = "";
const KEEP = "keep";
const FILE = "file";
const NUM_DIGITS = 10;

/** The examples of a task as [name, title]. */
export const examplesOf = (isDrawing, photos) =>
  isDrawing
    ? Array.from({ length: NUM_DIGITS }, (_, digit) => [`digit-${digit}`, translate("Digit {digit}", { digit })])
    : photos.map(({ name, title }) => [name, title]);

/**
 * Starts the menu of second pictures. `photos` are the example photos, {name, title}; `upload(file)` resolves to {path};
 * `exampleNow()` is the name of the example on the stage, if it is one; `onChoose(second)` gets null, {example} or {own}, an
 * id; `onNews(sentence)` what becomes of an upload.
 *
 * `get(second, result)` returns what a choice means beside a result, {source}, or null if it means nothing there, as a
 * photo does beside a drawing. `show(second, result)` shows it in the menu.
 */
export function createSecondPicture(select, input, { photos, upload, exampleNow, onChoose, onNews }) {
  const owned = []; // {id, name, source, isDrawing}
  const startUpload = createRequestIds(); // a later choice replaces a photo that is still being uploaded
  let shown = /** @type {any} */ (null); // the result that the menu is for
  let second = /** @type {any} */ (null);

  function own(source, name) {
    const entry = { id: `own-${owned.length}`, name, source, isDrawing: shown.pixelated };
    owned.push(entry);
    onChoose({ own: entry.id });
  }

  async function take(file) {
    if (!file) return;
    const isCurrent = startUpload();
    onNews(english("Uploading …"));
    const sent = await sendPhoto(upload, file);
    if (!isCurrent()) return;
    onNews(sent.error ?? "");
    if (sent.path && shown && !shown.pixelated) own({ upload: sent.path }, file.name.slice(0, 100));
  }

  select.addEventListener("change", () => {
    const { value } = select;
    startUpload();
    onNews("");
    if (value === KEEP) keep();
    else if (value === FILE) input.click();
    else if (value === NONE) onChoose(null);
    else onChoose(owned.some(({ id }) => id === value) ? { own: value } : { example: value });
    select.value = optionFor(second); // until the choice is drawn
  });
  onFiles(input, take);

  function keep() {
    const { source } = shown;
    const known = owned.find((entry) => entry.source === source);
    const example = exampleNow();
    if (example) onChoose({ example });
    else if (known) onChoose({ own: known.id });
    else own(source, shown.pixelated ? english("Your drawing") : english("Your photo"));
  }

  const optionFor = (choice) => choice?.example ?? choice?.own ?? NONE;

  function get(choice, result) {
    if (choice?.own) {
      const entry = owned.find(({ id }) => id === choice.own);
      return entry?.isDrawing === result.pixelated ? entry : null;
    }
    const name = choice?.example;
    const isOffered = examplesOf(result.pixelated, photos).some(([each]) => each === name);
    return isOffered ? { source: { example: name } } : null;
  }

  function show(choice, result) {
    shown = result;
    second = get(choice, result) && choice;
    const entries = owned.filter(({ isDrawing }) => isDrawing === result.pixelated);
    const options = [
      [NONE, english("None")],
      [KEEP, english("This one, beside the next")],
      ...(result.pixelated ? [] : [[FILE, english("A photo of your own …")]]),
      ...entries.map(({ id, name }) => [id, name]),
    ];
    if (isNew(select, [options, result.pixelated, currentLanguage()])) {
      const examples = makeOptions(examplesOf(result.pixelated, photos));
      select.replaceChildren(...makeOptions(options), make("optgroup", { label: english("Examples") }, ...examples));
    }
    select.value = optionFor(second);
  }

  return { get, show };
}
