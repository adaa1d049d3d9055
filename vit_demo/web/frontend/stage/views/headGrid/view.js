// Every block and head at once: small maps of what the query attends to, one pixel a patch, enlarged by CSS.

import { make, makeButton, rove, segmentChoice, setText } from "../../../shared/dom.js";
import { currentLanguage, english, translate } from "../../../shared/language.js";
import { createReplyCache, SETTLE } from "../../../shared/requests.js";
import { formatShare, isPooling, queryName } from "../../format.js";
import { heatCanvas, peakOf } from "../../heatmapColours.js";
import { attentionMap, decodeMaps, mapsOfLevels } from "../../result.js";

const HEADS_SHOWN = 4;
const OPACITY = 0.8; // small pictures need more heat than the large one

export const order = 40;
export const offline = true;

export const html = `
  <section class="card head-grid">
    <h2>Every block and head</h2>
    <div class="cells-head"><p class="about-cells"></p><div class="scaling"></div></div>
    <div class="scroller"><div class="cells" role="group" aria-label="Every block and head"></div></div>
    <button type="button" class="more" hidden></button>
  </section>`;

/** How the cells are coloured: [name, words]. */
const SCALES = [
  ["one", english("One scale")],
  ["own", english("Each its own")],
];

export function create(card, { request, pickHead, methods }) {
  const grid = card.querySelector(".cells");
  const [more, scroller] = [".more", ".scroller"].map((selector) => card.querySelector(selector));
  let cells = []; // cells[head][block]
  let shape = "";
  let marked = "";
  let expanded = false;
  let scale = SCALES[0][0];
  let shown = null; // {result, query}: what the cells are about
  const replies = createReplyCache(request, paint);

  const scaling = segmentChoice(card.querySelector(".scaling"), english("Scale of the cells"), SCALES, (chosen) => {
    scale = chosen;
    paint();
  });
  scaling.set(scale);

  function build({ numBlocks, numHeads }) {
    const numbers = Array.from({ length: numBlocks }, (_, b) => make("small", { textContent: b + 1 }));
    grid.replaceChildren(make("small", { textContent: english("block") }), ...numbers);
    grid.style.setProperty("--blocks", numBlocks);
    cells = Array.from({ length: numHeads }, (_, h) => {
      const row = Array.from({ length: numBlocks }, (_, b) => cell(b, h));
      grid.append(make("small", { textContent: translate("head {head}", { head: h + 1 }) }), ...row);
      return row;
    });
    expanded = false;
    fold();
  }

  const cell = (block, head) =>
    makeButton(() => pickHead(block, head), { className: "cell" }, make("canvas"), make("span"));

  function fold() {
    const labels = [...grid.querySelectorAll("small")].slice(-cells.length);
    cells.forEach((row, h) => {
      for (const node of [labels[h], ...row]) node.hidden = h >= HEADS_SHOWN && !expanded;
    });
    more.hidden = cells.length <= HEADS_SHOWN;
    setText(
      more,
      expanded ? english("Show fewer heads") : translate("Show all {heads} heads", { heads: cells.length }),
    );
    more.setAttribute("aria-expanded", String(expanded));
  }

  function eachCell(callback) {
    for (const [h, row] of cells.entries()) {
      for (const [b, button] of row.entries()) callback(button, b, h);
    }
  }

  function show(result) {
    if (!result) return;
    const nextShape = `${result.numBlocks} ${result.numHeads} ${currentLanguage()}`;
    if (nextShape !== shape) build(result);
    shape = nextShape;
    grid.style.setProperty("--picture", `url("${result.pictureUrl}")`);
    grid.style.setProperty("--aspect", result.size[0] / result.size[1]);
    grid.classList.toggle("pixelated", Boolean(result.pixelated));
    const isKnown = shown?.result === result;
    shown = { result, query: isKnown ? shown.query : null };
    paint();
  }

  /** The maps of the query in all blocks and heads, as the `value` of an entry of the cache; null until they are there. */
  function mapsOf({ result, query }) {
    if (query === null) return { value: mapsOfLevels(result.attentionMaps, result.numPatches) };
    if (result.traces.size === result.numBlocks) return { value: computed(result, query) };
    const decode = ({ maps }) => mapsOfLevels(decodeMaps(maps), result.numPatches);
    return replies.get(result, { kind: "attention_maps", query }, decode, { delay: SETTLE });
  }

  /** Colours the cells: on one scale, they can be compared. */
  function paint() {
    if (!shown || !cells.length) return;
    const { result, query } = shown;
    const { value: maps, error } = mapsOf(shown);
    card.classList.toggle("stale", !maps);
    const name =
      query === null && isPooling(result, result.numBlocks - 1)
        ? translate("average of all tokens, in the last block the query of attention pooling")
        : queryName(result, query);
    if (!maps)
      return setText(card.querySelector(".about-cells"), error || translate("*{query}* is loading.", { query: name }));
    const peaks = maps.map(peakOf);
    const end = Math.max(...peaks);
    const about = { query: name, peak: formatShare(end) };
    const words =
      scale === "one"
        ? translate(
            "Attention from the *{query}*; the number is the largest share that a patch gets. All cells share one scale, up to {peak}.",
            about,
          )
        : translate(
            "Attention from the *{query}*; the number is the largest share that a patch gets. Each cell is scaled to its own.",
            about,
          );
    setText(card.querySelector(".about-cells"), words);
    const style = scale === "one" ? { floor: end } : methods.attention.style(result);
    eachCell((button, b, h) => {
      const index = b * result.numHeads + h;
      const peak = formatShare(peaks[index]);
      heatCanvas(maps[index], result, OPACITY, style, button.firstChild);
      button.lastChild.textContent = peak;
      const place = { block: b + 1, head: h + 1, peak };
      button.setAttribute("aria-label", translate("Block {block}, head {head}: at most {peak}", place));
    });
  }

  /** Outlines what the picture shows; the mean of the heads is the whole column. */
  function draw({ result, method, choices: { block, head, pinned } }) {
    const query = pinned !== null && result.tokenOf[pinned] >= 0 ? pinned : null;
    if (shown.result !== result || shown.query !== query) {
      shown = { result, query };
      paint();
    }
    const usesBlock = method.uses.includes("block");
    const next = `${shape} ${block} ${head} ${usesBlock}`;
    if (next === marked) return;
    marked = next;
    eachCell((button, b, h) => {
      const isShown = usesBlock && b === block && (head < 0 || h === head);
      button.setAttribute("aria-pressed", String(isShown));
    });
    rove(grid, cells[0].length);
    // On a phone the last blocks are beside the screen.
    const shownCell = cells[Math.max(0, head)][block];
    scroller.scrollLeft = shownCell.offsetLeft + shownCell.offsetWidth - scroller.clientWidth;
  }

  more.addEventListener("click", () => {
    expanded = !expanded;
    fold();
  });

  return { show, draw, retry: replies.retry };
}

/** The maps of a patch in all blocks and heads, computed from the traces of all blocks. */
function computed(result, query) {
  return Array.from({ length: result.numBlocks * result.numHeads }, (_, index) => {
    const [block, head] = [Math.floor(index / result.numHeads), index % result.numHeads];
    return attentionMap(result, { block, head, direction: "from", query });
  });
}
