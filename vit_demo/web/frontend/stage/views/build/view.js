// "Build": a visitor chooses the shape of a Vision Transformer and sees its size at once.

import { copyText } from "../../../shared/clipboard.js";
import { make, setText } from "../../../shared/dom.js";
import { english, formatCount, formatInteger, languageChange, translate } from "../../../shared/language.js";
import { createForm } from "./form.js";
import { networkOf, problemOf, stagesOf, totalsOf } from "./network.js";
import { formatBytes, formatShape } from "./numbers.js";
import { pythonCode } from "./python.js";

export const order = 80;

export const sections = ["build"];

export const html = `
  <section class="card build">
    <h2>Build a Vision Transformer</h2>
    <p class="intro">Start from a network you know, change a number, and see what it costs. Nothing is trained here: the
      counts follow from the shape alone.</p>
    <div class="columns">
      <div>
        <form class="fields" autocomplete="off"></form>
        <p class="problem" role="alert"></p>
      </div>
      <div class="outcome">
        <dl class="totals"></dl>
        <ol class="stages"></ol>
        <p class="hint">Operations are the multiply-accumulates of one forward pass with one picture, in matrix products and
          convolutions; a count of floating-point operations is twice as large. Attention weights are those of one block in
          float32; the fused kernel used here computes them in pieces and never stores them all.</p>
        <div class="code">
          <button type="button" class="quiet copy">Copy as Python</button>
          <span class="news" role="status"></span>
          <pre tabindex="0" aria-label="The network as Python code"></pre>
        </div>
      </div>
    </div>
  </section>`;

const TOTALS = [
  ["parameters", english("Parameters"), formatCount],
  ["operations", english("Operations"), formatCount],
  ["tokens", english("Tokens"), formatCount],
  ["attentionBytes", english("Attention weights"), formatBytes],
];

export function create(card, { change, startingPoints }) {
  const find = (selector) => card.querySelector(selector);
  const { defaults, networks } = startingPoints;
  const first = { start: networks[0].title, fields: {} };
  const form = createForm(find(".fields"), networks, choose);
  const totals = TOTALS.map(([name, title, format]) => {
    const value = make("dd");
    find(".totals").append(make("div", {}, make("dt", { textContent: title }), value));
    return { name, value, format };
  });
  let shown = null;

  /** Shows a visitor's choice at once: there may be no picture, and then no frame is drawn. */
  function choose(network) {
    show(network);
    change({ network });
  }

  function draw({ choices }) {
    const network = networks.some(({ title }) => title === choices.network?.start) ? choices.network : first;
    if (network !== shown) show(network);
  }

  function show(network) {
    shown = network;
    const { config, patchSize } = networkOf(network, startingPoints);
    form.show(network, { config, patchSize });
    const problem = problemOf(config, patchSize);
    setText(find(".problem"), problem);
    card.classList.toggle("invalid", Boolean(problem));
    find(".copy").disabled = Boolean(problem);
    setText(find(".code .news"), "");
    if (problem) return;
    const found = totalsOf(config, patchSize);
    for (const { name, value, format } of totals) {
      setText(value, format(found[name]));
      value.title = formatInteger(found[name]);
    }
    const stages = stagesOf(config, patchSize);
    find(".stages").replaceChildren(...stages.map((stage) => stageRow(stage, found)));
    find("pre").textContent = pythonCode(config, patchSize, defaults);
  }

  find(".copy").addEventListener("click", async () => {
    const copied = await copyText(find("pre").textContent);
    if (!copied) getSelection().selectAllChildren(find("pre"));
    setText(find(".code .news"), copied ? english("Copied.") : english("The code is selected: press Ctrl+C."));
  });
  find(".fields").addEventListener("submit", (event) => event.preventDefault());
  show(first);
  languageChange.follow(card, () => show(shown));

  return { draw, drawEmpty: draw };
}

function stageRow({ name, shape, parameters, operations, inner, times }, totals) {
  const heading = make("b", { textContent: name });
  if (times > 1) heading.append(make("small", { textContent: ` × ${times}` }));
  const shapes = make("span", { className: "shapes" }, make("code", { textContent: formatShape(shape) }));
  for (const [what, inside] of inner) {
    shapes.append(make("small", {}, what, " ", make("code", { textContent: formatShape(inside) })));
  }
  return make(
    "li",
    {},
    make("div", { className: "stage-name" }, heading, shapes),
    share(translate("{number} parameters", { number: formatCount(parameters) }), parameters, totals.parameters),
    share(translate("{number} operations", { number: formatCount(operations) }), operations, totals.operations),
  );
}

/** A count with a bar for its share of the total; empty for none. */
function share(words, value, total) {
  if (!value) return make("div", { className: "share" });
  const bar = make("i");
  bar.style.width = `${(100 * value) / total}%`;
  const number = make("span", { className: "number", textContent: words });
  number.title = formatInteger(value);
  return make("div", { className: "share" }, number, make("span", { className: "track" }, bar));
}
