// @ts-check
// How it gets there: a small map of each block, the mean of its heads, and what the network would answer after it. On request
// every head, one row each.

import { isNew, make, makeButton, put, rove, setText } from "../../../shared/dom.js";
import { fitInside } from "../../../shared/geometry.js";
import { currentLanguage, english, translate, translateName } from "../../../shared/language.js";
import { pageState } from "../../../shared/pageState.js";
import { createReplyCache, SETTLE } from "../../../shared/requests.js";
import { formatProbability, formatShare, isPooling, isUnsure, queryName } from "../../format.js";
import { peakOf } from "../../heatmapColours.js";
import { paintResult } from "../../picture.js";
import { attentionMap, decodeMaps, earlyOf, mapsOfLevels, overHeads } from "../../result.js";
import { attentionEnd } from "../../scales.js";

const OPACITY = 0.8; // small pictures need more heat than the large one
const LATER = 250; // milliseconds until the answers after each block are asked for: a pass of its own, which must not delay a result
const SIDE = 144; // pixels of a small picture

export const html = `
  <section class="blocks" aria-label="How it gets there">
    <div>
      <div class="scroller"><div class="cells" role="group" aria-label="Every block"></div></div>
      <p class="hint">What it would say after each block. <span>Answers in grey may still change.</span>
        <button type="button" class="link more" aria-expanded="false">All heads</button></p>
    </div>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { request, pickBlock, redraw, stepCode, load, dropping }) {
  const find = (selector) => card.querySelector(selector);
  const [scroller, grid, more] = [".scroller", ".cells", ".more"].map(find);
  const replies = createReplyCache(request, redraw);
  let heads = /** @type {any} */ (null); // what makes heads silent, whose code is fetched when they are first shown
  let isFetched = false;
  let wrapped = /** @type {any[]} */ ([]); // {node, block, head} of each head, while all are shown
  let rows = []; // rows[0] are the blocks, each the mean of its heads; the others are the heads'
  let expanded = false;
  let written = ""; // the run whose answers stand below the blocks
  let isWanted = false; // whether all heads come into sight, once all of them is there

  function build({ numBlocks, numHeads }) {
    grid.style.setProperty("--blocks", numBlocks);
    grid.style.minHeight = "";
    rows = Array.from({ length: expanded ? numHeads + 1 : 1 }, (_, row) =>
      Array.from({ length: numBlocks }, (_, block) => cellOf(block, row - 1)),
    );
    const [blocks, ...others] = rows;
    const labels = others.map((_, h) =>
      make("small", { className: "head-name", textContent: translate("head {head}", { head: h + 1 }) }),
    );
    const answers = make("div", { className: "answers" });
    wrapped = others.flatMap((row, head) =>
      row.map((cell, block) => ({ node: heads ? heads.wrap(cell, block, head) : cell, block, head })),
    );
    const nodes = wrapped.map(({ node }) => node);
    grid.replaceChildren(...blocks, answers, ...labels.flatMap((label) => [label, ...nodes.splice(0, numBlocks)]));
    setText(more, expanded ? english("Hide the heads") : english("All heads"));
    more.setAttribute("aria-expanded", String(expanded));
  }

  function cellOf(block, head) {
    const canvas = make("canvas");
    const cell = makeButton(() => pickBlock(block, head), { className: "cell" }, canvas);
    if (head < 0) cell.dataset.block = block;
    return cell;
  }

  /** `callback(cell, block, row)` for each cell; row 0 are the means. */
  function eachCell(callback) {
    for (const [r, row] of rows.entries()) for (const [b, cell] of row.entries()) callback(cell, b, r);
  }

  /** The maps of the query in all blocks and heads; null until they are there. */
  function mapsOf(result, query) {
    if (query === null) return mapsOfLevels(result.attentionMaps, result.numPatches);
    if (result.traces.size === result.numBlocks) return computed(result, query);
    const decode = ({ maps }) => mapsOfLevels(decodeMaps(maps), result.numPatches);
    return replies.get(result, { kind: "attention_maps", query }, decode, { delay: SETTLE }).value;
  }

  /** What the network would answer after each block, [{label, probability}], without the input's; null until it is there. */
  function answersOf(result) {
    const early = earlyOf(result);
    if (early || !result.predictions.length || !stepCode) return early; // a notebook has no server to ask
    const decode = ({ predictions }) => predictions.slice(1);
    return replies.get(result, { kind: "logit_lens" }, decode, { delay: LATER }).value;
  }

  function draw({ result, whole, method, choices, frame }) {
    if (result.silent.length && isNew(more, [whole.run])) {
      expanded = true;
      isWanted = Boolean(pageState.get()?.view.lesson); // it is what a task is about
    }
    if (expanded) fetchHeads();
    const shape = [result.numBlocks, result.numHeads, expanded, Boolean(heads), currentLanguage()];
    if (isNew(grid, shape)) build(result);
    const query = choices.pinned !== null && result.tokenOf[choices.pinned] >= 0 ? choices.pinned : null;
    const maps = mapsOf(result, query);
    const key = [shape, result.run, result.dropped, query, document.body.className];
    if (maps && isNew(scroller, key)) paint(result, whole, maps, query);
    const answers = frame.answers?.isLive ? earlyOf(result) : answersOf(result);
    if ((answers || !result.predictions.length) && isNew(card, [shape, result.run, answers])) {
      writeAnswers(result, answers);
      written = whole.run;
    }
    find(".answers").classList.toggle("late", !answers);
    find(".answers").classList.toggle("other", written !== whole.run); // of the picture before
    mark(method, choices);
    if (!frame.answers?.isLive) heads?.draw(wrapped, { result, whole, choices, frame }, expanded);
    if (!isWanted || (!heads && stepCode)) return;
    isWanted = false;
    requestAnimationFrame(() => card.scrollIntoView({ block: "nearest" }));
  }

  /** A notebook has no server that runs the network again; without the code, heads are looked at alone. */
  async function fetchHeads() {
    if (isFetched || !stepCode) return;
    isFetched = true;
    const { createHeads } = (await load("heads.js"))["stage/views/blocks/heads.js"];
    heads = createHeads(card, { request, dropping, redraw });
    redraw();
  }

  function paint(result, whole, maps, query) {
    const { numBlocks, numHeads, numPatches } = result;
    card.classList.toggle("of-photo", !result.pixelated);
    const name =
      query === null && isPooling(result, numBlocks - 1)
        ? translate("average of all tokens")
        : queryName(result, query);
    grid.ariaLabel = translate("Every block: attention from the {query}", { query: name });
    eachCell((cell, b, r) => {
      const map = overHeads(result, r - 1, numPatches, (h) => maps[b * numHeads + h]);
      paintCell(cell.firstChild, result, map, attentionEnd(whole, r - 1));
      const values = { block: b + 1, head: r, peak: formatShare(peakOf(map)) };
      cell.title = cell.ariaLabel = r
        ? translate("Block {block}, head {head}: at most {peak}", values)
        : translate("Block {block}: at most {peak}", values);
      if (r) cell.dataset.peak = values.peak;
    });
  }

  /** Below the blocks; an answer that stays for several blocks is written once, across them, in grey until the last one stands, which it never does if that is unsure. */
  function writeAnswers(result, answers) {
    const [first] = result.predictions;
    const host = find(".answers");
    if (!answers) return host.replaceChildren();
    const settled = isUnsure(result) ? Infinity : answers.findLastIndex(({ label }) => label !== first.name) + 1;
    const nodes = answers.map(({ label, probability }, block) => {
      const starts = block === 0 || answers[block - 1].label !== label;
      const length = answers.slice(block).findIndex((one) => one.label !== label);
      const span = length < 0 ? answers.length - block : length;
      const words = translateName(label);
      const isDoubt = block + span === answers.length && isUnsure(result);
      const doubt = isDoubt ? [make("i", {}, "?")] : [];
      const name = make("strong", { translate: false, title: words }, make("span", {}, words, ...doubt));
      name.style.gridColumn = `${block + 1} / span ${span}`;
      const number = make("span", { textContent: formatProbability(probability, first.scores) });
      number.style.gridColumn = `${block + 1}`;
      for (const node of [name, number]) node.classList.toggle("yes", block >= settled);
      return starts ? [name, number] : [number];
    });
    host.replaceChildren(...nodes.flat());
  }

  /** Outlines what the picture shows. */
  function mark(method, { section, plain, features, block, head }) {
    const ofTokens = section === "features";
    const isShown = ofTokens || (!plain && method.uses.includes("block"));
    const shownBlock = ofTokens ? Math.min(features.block ?? Infinity, rows[0].length - 1) : block;
    eachCell((cell, b, r) => {
      const isHead = ofTokens ? r === 0 : r - 1 === head || (!expanded && r === 0);
      put(cell, { ariaPressed: String(isShown && b === shownBlock && isHead) });
    });
    rove(grid, rows[0].length);
  }

  more.addEventListener("click", () => {
    expanded = !expanded;
    isWanted = expanded;
    redraw();
  });
  const show = (result) => {
    if (result) return;
    grid.style.minHeight = `${grid.offsetHeight}px`; // so that nothing below it moves
    grid.replaceChildren();
    for (const host of [grid, scroller, card]) isNew(host, null);
  };
  return { show, draw, isLive: true, retry: replies.retry };
}

/** A small picture under its map, with rubbed squares hatched; one scale for all blocks. */
function paintCell(canvas, result, map, end) {
  const size = fitInside(result.size, [SIDE, SIDE]);
  [canvas.width, canvas.height] = size;
  paintResult(canvas, size, result, {
    map,
    style: { end },
    opacity: OPACITY,
    dropped: new Set(result.dropped),
    hasGrid: false,
  });
}

/** The maps of a patch in all blocks and heads, computed from the traces of all blocks. */
function computed(result, query) {
  return Array.from({ length: result.numBlocks * result.numHeads }, (_, index) => {
    const [block, head] = [Math.floor(index / result.numHeads), index % result.numHeads];
    return attentionMap(result, { block, head, direction: "from", query });
  });
}
