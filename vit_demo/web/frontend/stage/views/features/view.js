// Features: what the tokens of the patches hold, on the visitor's picture and on a second one beside it.

import { loadImage, newId, setProgress, setText } from "../../../shared/dom.js";
import { middlePatch, neighbour } from "../../../shared/geometry.js";
import { createTooltip, setExplainedText } from "../../../shared/glossary/glossary.js";
import { english, translate } from "../../../shared/language.js";
import { pageState } from "../../../shared/pageState.js";
import { createReplyCache, SETTLE } from "../../../shared/requests.js";
import { inkOnPaper } from "../../heatmapColours.js";
import { fitCanvas, listenToPatches } from "../../pictureCanvas.js";
import { createMethodDocs } from "../about/view.js";
import { createFeatureControls, showLegend } from "./controls.js";
import { classesOf, hintsOf, MODES, readingOf, subjectOf } from "./modes.js";
import { paintTokens } from "./patchCanvas.js";
import { createSecondPicture } from "./secondPicture.js";
import { decodeTokens } from "./tokens.js";

export const order = 5;

export const sections = ["features"];

export const html = `
  <div class="features">
    <section class="card tokens" aria-label="Features of the patches">
      <div class="panes">
        <div class="pane"><canvas tabindex="0" role="application"></canvas></div>
        <div class="pane" hidden><canvas tabindex="0" role="application"></canvas></div>
        <p class="empty"></p>
        <div class="progress" aria-hidden="true"><i></i></div>
      </div>
      <div class="reading"><p class="of"></p><p class="at"></p></div>
      <div class="legend"></div>
      <div class="controls">
        <span class="name wide">Show</span><div class="wide" data-feature="mode"></div>
        <label class="name">After block</label>
        <div class="slide"><input type="range" data-feature="block" min="1"><span aria-hidden="true"></span></div>
        <label class="name aside">Opacity</label>
        <div class="slide aside"><input type="range" data-feature="opacity" max="100"><span aria-hidden="true"></span></div>
        <label class="name">Segments</label>
        <div class="slide"><input type="range" data-feature="k" min="2"><span aria-hidden="true"></span></div>
        <span class="name aside">Background</span>
        <div class="aside"><button type="button" class="quiet background" aria-label="Remove the background"
          aria-pressed="false">Remove</button></div>
        <label class="name">Second picture</label>
        <div><select class="second"></select><input type="file" accept="image/*,.heic,.heif,.avif" tabindex="-1" hidden></div>
      </div>
      <p class="hint news" role="status"></p>
      <p class="visually-hidden announcement" aria-live="polite"></p>
    </section>
    <section class="card features-about">
      <h2>What the tokens hold</h2>
      <p class="sentences"></p>
      <p class="hint mouse"></p>
      <p class="hint touch"></p>
      <details class="method-docs">
        <summary>How are these computed?</summary>
        <div class="text" tabindex="0" role="region" aria-label="How the features are computed"></div>
      </details>
    </section>
  </div>`;

export function create(group, { request, change, upload, examples }) {
  const find = (selector) => group.querySelector(selector);
  const tooltip = createTooltip(group);
  const panes = [...group.querySelectorAll(".pane")];
  const canvases = panes.map((pane) => pane.firstElementChild);
  const replies = createReplyCache(request, schedule);
  let result = null;
  let scene = null; // what is painted: {result, tokens, images, block}
  let hovered = null; // {picture, patch}
  let announces = false; // whether the next frame's value is read out
  let frame = 0;

  const docs = createMethodDocs(find(".method-docs"), request);
  docs.setMethod("features");

  const chosen = () => pageState.get().view.features;
  const set = (part) => change({ features: { ...chosen(), ...part } });

  const controls = createFeatureControls(find(".tokens"), set);
  const second = createSecondPicture(find("select"), find("[type=file]"), {
    photos: examples,
    upload,
    exampleNow() {
      const state = pageState.get();
      const { example, digit } = state[state.task].picture ?? {};
      return example ?? (digit === undefined ? null : `digit-${digit}`);
    },
    onChoose(picture) {
      hovered = null;
      set({ second: picture, pinned: chosen().pinned?.picture ? null : chosen().pinned });
    },
    onNews: (sentence) => setText(find(".news"), sentence),
  });
  find("label:has(+ div > select)").htmlFor = find("select").id = newId("second");

  /** Paints with the next frame, without a frame of the other views. */
  function schedule() {
    if (!frame && result) frame = requestAnimationFrame(paint);
  }

  function paint() {
    frame = 0;
    if (!result) return;
    const choices = chosen();
    const block = Math.min(choices.block ?? Infinity, result.numBlocks - 1);
    const mode = choices.mode === "classes" && !result.predictions.length ? "similarity" : choices.mode;
    const other = second.get(choices.second, result);
    const entry = tokensOf(block, other);
    if (entry.value) scene = { result, ...entry.value, block };
    else if (scene?.result !== result) scene = null;
    const mostSegments = scene ? scene.tokens.mostSegments : Math.min(12, result.numPatches);
    const k = Math.min(choices.k, mostSegments);
    const limits = { numBlocks: result.numBlocks, mostSegments, hasClasses: result.predictions.length > 0 };
    controls.update({ ...choices, mode, block, k }, limits);
    second.show(choices.second, result);
    find(".panes").classList.toggle("pair", Boolean(other));
    panes[1].hidden = !other;
    setProgress(find(".progress"), entry.isSlow && entry.isLoading, entry.progress);
    if (scene) paintScene(mode, k);
    else paintPlain();
    if (entry.error) setText(find(".at"), entry.error);
    for (const [way, words] of Object.entries(hintsOf(mode))) setText(find(`.hint.${way}`), words);
  }

  /** The reply about a block, alone or together with a second picture. */
  function tokensOf(block, other) {
    const { picture, pixelated } = result;
    async function decode(reply) {
      const url = reply.pictures[1]?.image;
      const image = url ? await loadImage(url) : null;
      return { tokens: decodeTokens(reply), images: [picture, image && pixelated ? inkOnPaper(image) : image] };
    }
    const fields = { kind: "tokens", block, other: other?.source };
    return replies.get(result, fields, decode, { delay: scene?.result === result ? SETTLE : 0 });
  }

  /** The picture alone, until its tokens are here. */
  function paintPlain() {
    paintOne(0, { ...result, dropped: new Set(result.dropped) }, result.picture);
    clearWords();
    showLegend(find(".legend"), { chips: [] }, {});
  }

  function clearWords() {
    for (const part of [".of", ".at", ".sentences"]) setText(find(part), "");
  }

  function paintOne(index, picture, image, options) {
    const size = fitCanvas(canvases[index], panes[index], picture.size);
    paintTokens(canvases[index], size, picture, { image, pixelated: result.pixelated, ...options });
  }

  function paintScene(mode, k) {
    const { tokens, images, block } = scene;
    const query = queryOf(tokens);
    const token = tokenAt(tokens, query);
    const { background, opacity } = chosen();
    const shown = MODES[mode].show(tokens, { k, background, token });
    const colours = shown.colours(opacity, result.pixelated);
    const labels = mode === "classes" ? colours.map((_, i) => classesOf(tokens, i)[0].name) : null;
    tokens.pictures.forEach((picture, index) => {
      if (panes[index].hidden) return;
      const outlined = outlinesOf(tokens, picture, index, mode, query);
      const { segments } = shown;
      paintOne(index, picture, images[index], { colours, outlined, labels, segments });
    });
    const words = subjectOf(mode, tokens, { block, k, query }, result);
    const reading = hovered ? readingOf(mode, tokens, tokenAt(tokens, hovered), shown) : "";
    setText(find(".of"), words);
    setText(find(".at"), reading);
    setExplainedText(find(".sentences"), MODES[mode].sentence(tokens, { block, k }, result), tooltip);
    showLegend(find(".legend"), MODES[mode].legend(shown), { opacity, paper: result.pixelated });
    const spoken = translate(
      "The picture under the colours of its patches: {subject}. Arrow keys choose a patch, Escape leaves it.",
      { subject: words.replaceAll("*", "") },
    );
    for (const canvas of canvases) canvas.setAttribute("aria-label", spoken);
    if (announces) setText(find(".announcement"), `${words}. ${translate(reading)}`.replaceAll("*", ""));
    announces = false;
  }

  /** [patch, line width] of what is outlined in one picture. */
  function outlinesOf(tokens, picture, index, mode, query) {
    const outlined = [];
    if (mode === "norms") {
      picture.tokenOf.forEach((token, patch) => {
        if (tokens.outliers.has(token)) outlined.push([patch, 2]);
      });
    }
    if (hovered?.picture === index) outlined.push([hovered.patch, 1]);
    if (mode === "similarity" && query.picture === index) outlined.push([query.patch, 2.5]);
    return outlined;
  }

  /** The patch that all others are compared with. */
  function queryOf(tokens) {
    const [first] = tokens.pictures;
    const middle = { picture: 0, patch: middlePatch(first) };
    const any = { picture: 0, patch: first.tokenOf.findIndex((token) => token >= 0) };
    return [chosen().pinned, hovered, middle, any].find((place) => place && tokenAt(tokens, place) >= 0);
  }

  const tokenAt = ({ pictures }, { picture, patch }) => pictures[picture]?.tokenOf[patch] ?? -1;
  const isComparing = () => chosen().mode === "similarity";
  const isSame = (one, other) => one?.picture === other?.picture && one?.patch === other?.patch;

  function hover(place) {
    if (isSame(place, hovered)) return;
    hovered = place;
    schedule();
  }

  function pin(pinned) {
    announces = true;
    set({ pinned });
  }

  canvases.forEach((canvas, picture) => {
    const grid = () => (scene ? (scene.tokens.pictures[picture] ?? null) : null);
    listenToPatches(canvas, grid, {
      hover: (patch) => hover(patch === null ? null : { picture, patch }),
      click(patch) {
        hovered = { picture, patch };
        if (isComparing()) pin(isSame(chosen().pinned, hovered) ? null : hovered);
        else schedule();
      },
      move(step) {
        const from = [isComparing() ? chosen().pinned : null, hovered].find((place) => place?.picture === picture);
        hovered = { picture, patch: from ? neighbour(from.patch, step, grid()) : middlePatch(grid()) };
        if (isComparing()) pin(hovered);
        announces = true;
        schedule();
      },
      leave() {
        hovered = null;
        pin(null);
      },
    });
  });

  new ResizeObserver(schedule).observe(find(".panes"));

  function showResult(next) {
    const isSameGrid = next && result && next.rows === result.rows && next.columns === result.columns;
    if (!isSameGrid) hovered = null;
    if (next) return;
    result = scene = null;
    setText(find(".empty"), english("Draw a digit or choose a photo."));
    clearWords();
  }

  function retry() {
    replies.retry();
    docs.retry();
  }

  function draw(drawing) {
    result = drawing.result;
    setText(find(".empty"), "");
    paint();
  }

  return { show: showResult, draw, retry };
}
