// @ts-check
// What happens in "Build", fetched when it is first opened: a visitor trains a network, and changes its shape, whose size the
// server counts.

import { copyText, make, makeOptions, newId, setText, track } from "../../../shared/dom.js";
import { english, formatCount, formatInteger, languageChange, translate } from "../../../shared/language.js";
import { pause, SETTLE } from "../../../shared/requests.js";
import { formatBytes } from "../../format.js";
import { NUMBERS, networkOf, problemOf, pythonCode } from "./network.js";
import { createTraining, html as trainingHtml } from "./train.js";

const html = `
    ${trainingHtml}
    <details class="change">
      <summary>Change the network</summary>
      <p class="lead">Change a number and see what it costs; the counts follow from the shape alone.</p>
      <div class="columns">
        <form class="fields" autocomplete="off">
          <h3>Training</h3>
          <div class="field"><label><span>Time<small>seconds</small></span><select name="seconds"></select></label></div>
          <div class="field"><label><span>Training digits</span><select name="num_digits"></select></label></div>
          <div class="field"><label><span>Learning rate</span><select name="learning_rate"></select></label></div>
          <label class="check"><input type="checkbox" name="shuffle_labels">Shuffle the labels</label>
          <h3>Network</h3>
        </form>
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
    </details>`;

/** @type {[string, string, (value: number) => string][]} */
const TOTALS = [
  ["parameters", english("Parameters"), formatCount],
  ["operations", english("Operations"), formatCount],
  ["tokens", english("Tokens"), formatCount],
  ["attention_bytes", english("Attention weights"), formatBytes],
];

const STAGES = {
  picture: english("Picture"),
  patch_embed: english("Patch embedding"),
  tokens: english("Class token and positions"),
  positions: english("Positions"),
  attention: english("Attention"),
  mlp: "MLP",
  norm: english("Norm and pooling"),
  pooling: english("Pooling"),
  head: english("Classifier head"),
};
const INNER = {
  qkv: english("queries, keys, values, each"),
  weights: english("attention weights"),
  hidden: english("hidden"),
};

export function createBuild(card, { change, request, startingPoints }) {
  card.insertAdjacentHTML("beforeend", html);
  const find = (selector) => card.querySelector(selector);
  const { defaults, networks } = startingPoints;
  const first = { start: networks[0].title, fields: {} };
  const trainer = createTraining(card, { change, request, startingPoints });
  const form = createForm(find(".fields"), networks, choose);
  let shown = /** @type {any} */ (null);
  let training = null; // how that of a link was trained
  let counted = ""; // the network whose size is known or awaited
  let size = /** @type {any} */ (null); // its size, or null

  /** Shows a visitor's choice at once; its size follows. */
  function choose(network) {
    if (!size) counted = ""; // what failed is asked again
    show(network);
    change({ network, training: null });
  }

  function draw({ choices }) {
    const network = networks.some(({ title }) => title === choices.network?.start) ? choices.network : first;
    if (network !== shown || choices.training !== training) show(network, choices.training);
    if (choices.section === "build") count(); // without a picture all sections are drawn
  }

  function show(network, linked = null) {
    shown = network;
    training = linked;
    const { config, patchSize } = networkOf(network, startingPoints);
    const problem = problemOf(config, patchSize);
    form.show(network, { config, patchSize }, problem);
    if (network !== first) find(".change").open = true; // of a link, or the visitor's
    card.classList.toggle("invalid", Boolean(problem));
    find(".copy").disabled = Boolean(problem);
    setText(find(".code .news"), "");
    const known = keyOf(config, patchSize) === counted ? size : null;
    const hindrance = problem ? "fields" : known?.hindrance;
    trainer.show(config, patchSize, hindrance, network === first ? null : network, training);
    if (problem) return;
    find("pre").textContent = pythonCode(config, patchSize, defaults);
    if (known) showSize(config.depth);
  }

  /** Asks the server for the size of the network, unless it was asked. */
  async function count() {
    const { config, patchSize } = networkOf(shown, startingPoints);
    const asked = keyOf(config, patchSize);
    if (asked === counted || problemOf(config, patchSize)) return;
    counted = asked;
    size = null;
    const isCurrent = () => counted === asked;
    await pause(SETTLE);
    const reply = isCurrent() ? await request({ kind: "network", config, patch_size: patchSize }, { isCurrent }) : null;
    if (!isCurrent()) return;
    if (!reply) counted = ""; // the picture has changed meanwhile
    size = reply?.result ?? null;
    show(shown, training);
    if (reply?.error) setText(find(".code .news"), reply.error);
  }

  function showSize(depth) {
    const totals = TOTALS.map(([name, title, format]) => {
      const value = make("dd", { title: formatInteger(size[name]) }, format(size[name]));
      return make("div", {}, make("dt", {}, title), value);
    });
    find(".totals").replaceChildren(...totals);
    find(".stages").replaceChildren(...size.stages.map((stage) => stageRow(stage, depth, size)));
  }

  find(".copy").addEventListener("click", async () => {
    const copied = await copyText(find("pre").textContent);
    if (!copied) getSelection()?.selectAllChildren(find("pre"));
    setText(find(".code .news"), copied ? english("Copied.") : english("The code is selected: press Ctrl+C."));
  });
  find(".fields").addEventListener("submit", (event) => event.preventDefault());
  show(first);
  languageChange.subscribe(card, () => show(shown, training));

  return { draw };
}

const keyOf = (config, patchSize) => JSON.stringify([config, patchSize]);

function stageRow({ name, shape, parameters, operations, inner }, depth, totals) {
  const small = (...words) => make("small", {}, ...words);
  const shapes = [
    ["", shape],
    ...Object.entries(inner).map(([what, inside]) => [`${translate(INNER[what])} `, inside]),
  ];
  const written = shapes.map(([what, of]) => small(what, make("code", {}, `[${of.join(", ")}]`)));
  const isRepeated = depth > 1 && Object.keys(inner).length > 0;
  const heading = make("b", {}, STAGES[name], small(isRepeated ? ` × ${depth}` : ""));
  const share = (words, value, total) =>
    value ? make("div", { title: formatInteger(value) }, small(words), track(value / total)) : make("div");
  return make(
    "li",
    {},
    make("div", { className: "stage-name" }, heading, ...written),
    share(translate("{number} parameters", { number: formatCount(parameters) }), parameters, totals.parameters),
    share(translate("{number} operations", { number: formatCount(operations) }), operations, totals.operations),
  );
}

// The form of the section Build: a starting point, and the fields of the configuration that a visitor may change.

const POOLS = {
  cls: english("the class token"),
  mean: english("the mean of the patches"),
  all: english("the mean of all tokens"),
  "cls+mean": english("class token and mean, side by side"),
  "cls+next": english("class token and the token after it"),
};
const YES_NO = { true: english("yes"), false: english("no") };
const POSITIONS = { learned: english("learned"), sincos: english("sines and cosines"), none: english("none") };
/** @type {[string, string, Record<string, string>][]} */
const CHOICES = [
  ["pool", english("The classifier reads"), POOLS],
  ["class_token", english("Class token"), YES_NO],
  ["pos_embed", english("Positions"), POSITIONS],
];

/**
 * Fills a form. `onChange(network)` is called with {start, fields}: the title of a starting point, and the fields by name
 * that the visitor has changed. `show(network, {config, patchSize}, problem)` writes them into the fields, and what is wrong
 * with one of them below it.
 */
function createForm(form, networks, onChange) {
  let current = /** @type {any} */ (null); // the network that is shown
  const set = (name, value) => onChange({ ...current, fields: { ...current.fields, [name]: value } });
  const start = make("select", { onchange: () => onChange({ start: start.value, fields: {} }) }, ...groups(networks));
  const inputs = NUMBERS.map(([name, , , , max]) => {
    const oninput = ({ target }) => set(name, target.valueAsNumber);
    return make("input", { type: "number", inputMode: "numeric", name, min: 0, max, oninput });
  });
  const selects = CHOICES.map(([name, , options]) => {
    const onchange = ({ target: { value } }) => set(name, name === "class_token" ? value === "true" : value);
    return make("select", { name, onchange }, ...makeOptions(Object.entries(options)));
  });
  form.append(
    field(start, english("Start from")),
    ...NUMBERS.map(([, title, unit], i) => field(inputs[i], title, unit)),
    ...CHOICES.map(([, title], i) => field(selects[i], title)),
  );

  const message = make("p", { className: "problem", id: newId("problem") });
  message.setAttribute("role", "alert");

  function show(network, { config, patchSize }, problem) {
    current = network;
    const [name, words] = problem ?? ["", ""];
    for (const control of [...inputs, ...selects]) {
      control.ariaInvalid = null;
      control.removeAttribute("aria-describedby");
      if (control.name !== name) continue;
      control.ariaInvalid = "true";
      control.setAttribute("aria-describedby", message.id);
      control.closest(".field").append(message);
    }
    setText(message, words);
    start.value = network.start;
    for (const input of inputs) {
      const value = input.name === "patch_size" ? patchSize : config[input.name];
      // A field that is being emptied stays empty.
      if (!Number.isNaN(value) && input.valueAsNumber !== value) input.value = value;
    }
    for (const select of selects) select.value = String(config[select.name]);
  }

  return { show };
}

const groups = (networks) =>
  [...new Set(networks.map(({ group }) => group))].map((label) => {
    const titles = networks.filter(({ group }) => group === label).map(({ title }) => [title, title]);
    return make("optgroup", { label }, ...makeOptions(titles));
  });

const field = (control, title, unit = "") =>
  make("div", { className: "field" }, make("label", {}, make("span", {}, title, make("small", {}, unit)), control));
