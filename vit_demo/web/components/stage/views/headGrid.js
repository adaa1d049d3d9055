// Every block and head at once: small maps of the class token's attention, one pixel a patch, enlarged by CSS.

import { make, setText } from "../../shared/dom.js";
import { currentLanguage, english, translate } from "../../shared/language.js";
import { classTokenMap } from "../attention.js";
import { heatCanvas, isCoarse } from "../colours.js";
import { ARROW_STEPS } from "../pointing.js";

const HEADS_SHOWN = 4;
const OPACITY = 0.8; // small pictures need more heat than the large one

export const order = 40;
export const offline = true;

export const html = `
  <section class="card head-grid">
    <h2>Every block and head</h2>
    <div class="scroller"><div class="cells" role="group" aria-label="Every block and head"></div></div>
    <button type="button" class="more" hidden></button>
  </section>`;

export function create(card, { pickHead, methods }) {
  const grid = card.querySelector(".cells");
  const more = card.querySelector(".more");
  let cells = []; // cells[head][block]
  let shape = "";
  let marked = "";
  let expanded = false;

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

  function cell(block, head) {
    const button = make("button", { type: "button", className: "cell", tabIndex: -1 }, make("canvas"));
    button.setAttribute("aria-label", translate("Block {block}, head {head}", { block: block + 1, head: head + 1 }));
    button.addEventListener("click", () => pickHead(block, head));
    button.addEventListener("keydown", (event) => move(event, block, head));
    return button;
  }

  /** Arrow keys move over the cells, so that the grid is one stop of the Tab key and not 144. */
  function move(event, block, head) {
    if (!(event.key in ARROW_STEPS)) return;
    event.preventDefault();
    const [down, right] = ARROW_STEPS[event.key];
    const next = cells[head + down]?.[block + right];
    if (next && !next.hidden) next.focus();
  }

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
    cells.forEach((row, h) => {
      row.forEach((button, b) => {
        callback(button, b, h);
      });
    });
  }

  function show(result) {
    if (!result) return;
    const nextShape = `${result.numBlocks} ${result.numHeads} ${currentLanguage()}`;
    if (nextShape !== shape) build(result);
    shape = nextShape;
    grid.style.setProperty("--picture", `url("${result.pictureUrl}")`);
    grid.style.setProperty("--aspect", result.size[0] / result.size[1]);
    grid.classList.toggle("coarse", isCoarse(result));
    grid.classList.toggle("pixelated", Boolean(result.pixelated));
    const style = methods.attention.style(result);
    eachCell((button, b, h) => heatCanvas(classTokenMap(result, b, h), result, OPACITY, button.firstChild, style));
  }

  /** Outlines what the picture shows; the mean of the heads is the whole column. */
  function draw({ method, choices: { block, head } }) {
    const usesBlock = method.uses.includes("block");
    const next = `${shape} ${block} ${head} ${usesBlock}`;
    if (next === marked) return;
    marked = next;
    eachCell((button, b, h) => {
      const isShown = usesBlock && b === block && (head < 0 || h === head);
      button.setAttribute("aria-pressed", String(isShown));
      button.tabIndex = b === block && h === Math.max(0, head) ? 0 : -1;
    });
  }

  more.addEventListener("click", () => {
    expanded = !expanded;
    fold();
  });

  return { show, draw };
}
