// Every block and head at once: small maps of the class token, one pixel a patch, enlarged by CSS.

const HEADS_SHOWN = 4;
const OPACITY = 0.8; // small pictures need more heat than the large one

function createStrip(pick) {
  const grid = find(".cells");
  const more = find(".more");
  let cells = []; // cells[head][block]
  let shape = "";
  let marked = "";
  let expanded = false;

  function build({ blocks, heads }) {
    const numbers = Array.from({ length: blocks }, (_, b) => make("small", { textContent: b + 1 }));
    grid.replaceChildren(make("small", { textContent: "block" }), ...numbers);
    grid.style.setProperty("--blocks", blocks);
    cells = Array.from({ length: heads }, (_, h) => {
      const row = Array.from({ length: blocks }, (_, b) => {
        const cell = make("button", { type: "button", className: "cell", tabIndex: -1 }, make("canvas"));
        cell.setAttribute("aria-label", `Block ${b + 1}, head ${h + 1}`);
        cell.addEventListener("click", () => pick(b, h));
        cell.addEventListener("keydown", (event) => step(event, b, h));
        return cell;
      });
      grid.append(make("small", { textContent: `head ${h + 1}` }), ...row);
      return row;
    });
    expanded = false;
    fold();
  }

  function fold() {
    const labels = [...grid.querySelectorAll("small")].slice(-cells.length);
    cells.forEach((row, h) => [labels[h], ...row].forEach((node) => (node.hidden = h >= HEADS_SHOWN && !expanded)));
    more.hidden = cells.length <= HEADS_SHOWN;
    more.textContent = expanded ? "Show fewer heads" : `Show all ${cells.length} heads`;
    more.setAttribute("aria-expanded", String(expanded));
  }

  /** Arrow keys walk over the cells, so that the strip is one stop of the Tab key and not 144. */
  function step(event, block, head) {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    const [down, right] = STEPS[event.key];
    const next = cells[head + down]?.[block + right];
    if (next && !next.hidden) next.focus();
  }

  function draw(result) {
    const nextShape = `${result.blocks} ${result.heads}`;
    if (nextShape !== shape) build(result);
    shape = nextShape;
    grid.style.setProperty("--picture", `url("${result.image}")`);
    grid.style.setProperty("--aspect", result.size[0] / result.size[1]);
    grid.classList.toggle("coarse", isCoarse(result));
    grid.classList.toggle("pixelated", Boolean(result.pixelated));
    cells.forEach((row, h) =>
      row.forEach((cell, b) => {
        heatCanvas(summaryMap(result, b, h), result.rows, result.columns, OPACITY, cell.firstChild);
      }));
  }

  /** Outlines what the picture shows; the mean of the heads is the whole column. */
  function mark({ block, head }, asks) {
    const next = `${shape} ${block} ${head} ${asks}`;
    if (next === marked) return;
    marked = next;
    cells.forEach((row, h) =>
      row.forEach((cell, b) => {
        const current = asks && b === block && (head < 0 || h === head);
        cell.setAttribute("aria-pressed", String(current));
        cell.tabIndex = b === block && h === Math.max(0, head) ? 0 : -1;
      }));
  }

  more.addEventListener("click", () => {
    expanded = !expanded;
    fold();
  });

  return { draw, mark };
}
