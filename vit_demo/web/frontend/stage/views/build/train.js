// @ts-check
// Training the network that is built: what is seen while it learns, and what can be done with it then.

import { copyText, loadImage, make, makeButton, makeOptions, setProgress, setText } from "../../../shared/dom.js";
import { english, formatDecimals, formatInteger, languageChange, translate } from "../../../shared/language.js";
import { menuModels, pageState, shownResult } from "../../../shared/pageState.js";
import { percent } from "../../format.js";
import { heatCanvas, inkOnPaper } from "../../heatmapColours.js";
import { FIRST_SECTION } from "../../sections.js";
import { lineChart } from "../faithfulness/findings.js";
import { NUM_DIGITS, RATES, trainingCode } from "./network.js";

export const html = `
  <div class="train">
    <h2>Train one yourself</h2>
    <p class="lead">A network starts from random numbers and learns to read 5,000 handwritten digits while you watch.</p>
    <div class="deeds">
      <button type="button" class="primary begin">Train it</button>
      <div>
        <button type="button" class="quiet cancel">Cancel</button>
        <button type="button" class="primary look-into">Look into it</button>
      </div>
      <p class="note" role="status"></p>
      <div class="progress"><i></i></div>
    </div>
    <div class="live">
      <figure class="digit"><div class="ink"></div><figcaption></figcaption></figure>
      <div class="measure"><b data-train="accuracy"></b><div></div></div>
      <div class="measure"><b data-train="loss"></b><div></div></div>
      <div class="mistakes">
        <h3>What it gets wrong</h3>
        <div></div>
        <p class="after">
          <button type="button" class="link continue">Continue</button>
          <button type="button" class="link copy-training">Copy as Python</button>
          <button type="button" class="link download">Download</button>
          <span>The server keeps this network for an hour.</span>
        </p>
      </div>
    </div>
  </div>`;

const SETTINGS = { seconds: [30, 10, 60], num_digits: NUM_DIGITS, learning_rate: RATES }; // defaults first
const GUESSING = 0.1; // right
const GUESSED = Math.log(10); // the loss
const STRONG = 0.3; // a share of the attention in the deepest colour, so that what is even is faint
const SHOWN_MISTAKES = 8;
const LINKED = english(
  "The server keeps a network for an hour. This one was trained in {steps} steps with seed {seed}, which on the same machine gives the same network again.",
);
const UP_TO = english("It takes up to {seconds} seconds.");
const SHORT = 0.7; // of the seconds that were chosen
const WHY_SHORT = english("The server was busy, so there were fewer steps.");
const HINDRANCES = {
  fields: english("A number of the network does not fit: see below."),
  task: english("Only networks for digits can be trained here: 28 pixels, 1 channel, 10 classes."),
  size: english(
    "Too large to be trained here: at most {parameters} parameters, {operations} operations, {tokens} tokens and {depth} blocks.",
  ),
};
const OVER = new Set(["done", "ended"]);
const NOT_BEGUN = { step: 0, steps: 0, loss: [], accuracy: [], mistakes: [], look: null };

/**
 * `show(config, patchSize, hindrance, choices, training)` tells which network there is, which of `HINDRANCES` it has, what was
 * chosen for it, and how that of a link was trained.
 */
export function createTraining(host, { change, request, startingPoints }) {
  const find = (selector) => host.querySelector(selector);
  const { defaults, limits } = startingPoints;
  let network = null; // the configuration that can be trained, or null
  let hindrance = ""; // why it cannot be
  let choices = null; // what the visitor chose for it in Build
  let linked = /** @type {any} */ (null); // how the network of a link was trained: {steps, seed, ...}
  let current = /** @type {any} */ (null); // the run that is shown: {network, choices, fields, last, paper}
  let before = /** @type {any} */ (null); // the run before it
  let news = ""; // what is said instead of how the run goes
  let drawing = ""; // the last digit that was on the stage, whichever tab is open
  let paper = /** @type {HTMLCanvasElement | null} */ (null); // that digit

  for (const [name, values] of Object.entries(SETTINGS)) {
    const words = (value) => (Number.isInteger(value) ? formatInteger(value) : String(value));
    find(`[name=${name}]`).append(...makeOptions(values.map((value) => [value, words(value)])));
  }
  const chosen = (name) => Number(find(`[name=${name}]`).value);

  /** Begins a run with what is chosen and `more`, such as {from}, a trained network, and shows it until it is over. */
  async function begin(more = {}) {
    const fields = {
      config: network,
      ...Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, chosen(name)])),
      shuffle_labels: find("[name=shuffle_labels]").checked,
      ...more,
    };
    const run = /** @type {any} */ ({ network, choices, fields, last: null, paper });
    if (current?.last?.step) before = current;
    current = run;
    news = "";
    draw();
    // The drawing, or an example.
    const { picture } = pageState.get()?.digits ?? {};
    const source = drawing ? { digit: drawing } : { example: `digit-${picture?.digit ?? 8}` };
    let next = /** @type {any} */ ({ begin: fields, source });
    while (current === run) {
      const reply = await request({ kind: "train", ...next });
      if (current !== run) return;
      if (reply.error) {
        current = null;
        return say(reply.error);
      }
      run.last = reply.result;
      draw();
      if (OVER.has(reply.result.state)) return;
      next = { run: reply.result.run, ...(run.isCancelled && { cancel: true }) };
    }
  }

  function say(words) {
    news = words;
    draw();
  }

  function draw() {
    const last = current?.last ?? NOT_BEGUN;
    const isDone = last.state === "done";
    const isRunning = Boolean(current) && !OVER.has(last.state);
    find(".begin").disabled = !network || isRunning;
    find(".begin").className = isDone ? "quiet begin" : "primary begin";
    setText(find(".begin"), linked && !current ? english("Train it again") : english("Train it"));
    for (const part of [".look-into", ".after"]) find(part).classList.toggle("absent", !isDone);
    find(".cancel").classList.toggle("absent", !isRunning);
    setProgress(
      find(".train .progress"),
      isRunning && last.state !== "waiting",
      /** @type {any} */ (last.steps ? last.step / last.steps : null),
    );
    setText(find(".train .note"), news || noteOf(last, isRunning));
    const right = last.accuracy.at(-1);
    find("[data-train=accuracy]").textContent = right ? percent(100 * right[1], 1) : "–";
    find("[data-train=loss]").textContent = last.step ? formatDecimals(last.loss.at(-1)[1], 3) : "–";
    drawDigit(last.look);
    drawCharts(last);
    drawMistakes(isDone, last.mistakes);
  }

  function noteOf({ state, step, steps, seconds, seed, wait }, isRunning) {
    if (!isRunning && hindrance) return hindrance;
    if (!current && linked) return translate(LINKED, { steps: formatInteger(linked.steps), seed: linked.seed });
    if (!current) return translate(UP_TO, { seconds: chosen("seconds") });
    const values = { steps: formatInteger(step), seconds: formatDecimals(seconds ?? 0, 1), seed };
    if (state === "done") {
      const isShort = !current.fields.steps && seconds < SHORT * current.fields.seconds;
      const done = translate("Done: {steps} steps in {seconds} s, seed {seed}.", values);
      return isShort ? `${done} ${translate(WHY_SHORT)}` : done;
    }
    const left = state === "running" && step && Math.ceil((seconds * (steps - step)) / step);
    if (left && steps) return translate("It learns: {left} s left.", { left });
    if (state === "running" && step) return translate("It learns: {steps} steps so far.", values);
    if (isRunning && !state) return english("It begins …");
    if (isRunning && wait) return translate("Waiting for a free core: about {wait} s.", { wait });
    if (isRunning) return state === "running" ? english("It learns …") : english("Waiting for a free core …");
    if (current.isCancelled) return english("Cancelled.");
    return english("The server ended it, because it did not hear from this page in time.");
  }

  function drawDigit(look) {
    const shown = current ? current.paper : paper;
    const layers = shown ? [shown] : [];
    if (look) {
      const grid = { rows: look.map.length, columns: look.map[0].length, pixelated: true };
      layers.push(
        heatCanvas({ map: Float32Array.from(look.map.flat()), opacity: 0.8, style: { floor: STRONG } }, grid),
      );
    }
    find(".ink").replaceChildren(...layers);
    const values = { label: look?.label, probability: percent(100 * (look?.probability ?? 0)) };
    const words = translate("It says *{label}*, {probability}. Colour is where it looks last.", values);
    setText(
      find(".digit figcaption"),
      look ? words : english("Watch what it looks at in this digit, and what it says."),
    );
  }

  function drawCharts(last) {
    const earlier = current && before;
    const runs = earlier ? [last, earlier.last] : [last];
    const all = Math.max(1, ...runs.map(({ step, steps }) => steps || step));
    const ends = [translate("0 steps"), all > 1 ? translate("{number} steps", { number: formatInteger(all) }) : ""];
    const words = earlier && [translate("the run before"), ...differences(earlier, current)].join(", ");
    const chart = (title, pointsOf, format, least, guesses) => {
      const lines = runs.map(pointsOf).map((points) => ({
        places: points.map(([at]) => at / all),
        curve: points.map(([, value]) => value),
      }));
      const other = earlier && { ...lines[1], words };
      const randoms = guesses.map((value) => lines[0].places.map(() => value));
      const legend = [translate("this network"), ...guesses.map(() => translate("guessing"))];
      return lineChart({ title, ...lines[0], other, randoms, ends, legend, format, least });
    };
    const accuracyOf = ({ accuracy }) => [[0, GUESSING], ...accuracy];
    const lossOf = ({ loss }) => (loss.length ? loss : [[0, GUESSED]]);
    const asShare = (value) => percent(100 * value);
    const asLoss = (value) => formatDecimals(value, 1);
    const [right, wrong] = host.querySelectorAll(".measure > div");
    right.replaceChildren(chart(translate("Right of 1,000 new digits"), accuracyOf, asShare, 1, [GUESSING]));
    wrong.replaceChildren(chart(translate("Loss: how wrong it is"), lossOf, asLoss, GUESSED, []));
  }

  /** Before it is done there is room for them. */
  function drawMistakes(isDone, mistakes) {
    const faces = Array.from({ length: SHOWN_MISTAKES }, (_, i) => {
      const { example, label, predicted, digit } = mistakes[i] ?? {};
      if (!isDone || !digit) return make("span", { className: "mistake" });
      const words = translate("{label} taken for {predicted}", { label, predicted });
      const picture = make("img", { src: digit, alt: "" });
      return makeButton(
        () => lookInto({ picture: { example } }),
        { className: "mistake" },
        picture,
        make("small", {}, words),
      );
    });
    find(".mistakes > div").replaceChildren(...faces);
  }

  /**
   * Puts the trained network, and the one before the training if the server still has it, into the menu of models, and shows
   * the first on the stage, with {picture} if one is given.
   */
  async function lookInto(picture = {}) {
    const { choices: built, fields, last } = current;
    const names = [last.model, last.before];
    const replies = await Promise.all(names.map((name) => request({ kind: "model", name })));
    if (replies[0].error) return say(replies[0].error);
    const here = replies.flatMap(({ result }) => result ?? []);
    for (const entry of here) menuModels.latest().set(entry.name, { ...entry, on_machine: true });
    const { name, default_patch_size: patchSize } = replies[0].result;
    pageState.chooseTask("digits", { preset: name, patchSize, ...picture });
    menuModels.publish(menuModels.latest());
    const { num_digits, learning_rate, shuffle_labels } = fields;
    const training = { steps: last.steps, seed: last.seed, num_digits, learning_rate, shuffle_labels };
    change({ section: FIRST_SECTION, network: built, training: fields.from ? null : training });
    scrollTo({ top: 0 }); // to the picture
  }

  async function download() {
    const reply = await request({ kind: "train", download: current.last.model });
    if (reply.error) return say(reply.error);
    const href = `data:application/zip;base64,${reply.result.zip}`;
    make("a", { href, download: "vit_demo-digits.zip" }).click();
    say(english("Saved *vit_demo-digits.zip*: unpack it, and explore a picture with its folder."));
  }

  find("[name=seconds]").addEventListener("change", draw);
  find(".begin").addEventListener("click", () => begin(current ? {} : (linked ?? {})));
  find(".continue").addEventListener("click", () => begin({ from: current.last.model }));
  find(".cancel").addEventListener("click", () => {
    current.isCancelled = true;
  });
  find(".look-into").addEventListener("click", () => lookInto());
  find(".download").addEventListener("click", download);
  find(".copy-training").addEventListener("click", async () => {
    const copied = await copyText(trainingCode(current, defaults));
    say(copied ? english("Copied.") : english("The code could not be copied."));
  });
  languageChange.subscribe(host, draw);

  async function remember(result) {
    if (!result?.source.digit || result.source.digit === drawing) return;
    drawing = result.source.digit;
    const shown = await loadImage(drawing).then(inkOnPaper, () => null);
    if (result.source.digit !== drawing) return;
    paper = shown;
    draw();
  }
  shownResult.subscribe(host, remember);
  remember(shownResult.latest());

  function show(config, patchSize, why, ofBuild, training) {
    linked = training;
    choices = ofBuild;
    const most = Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, formatInteger(value)]));
    hindrance = why ? translate(HINDRANCES[why], most) : "";
    network = why ? null : { ...config, patch_size: patchSize, pos_embed_grid: null };
    draw();
  }

  return { show };
}

/** What was different about a run, as fields of Python. */
function differences(run, other) {
  const [fields, others] = [run, other].map(({ network, fields: { config, ...rest } }) => ({ ...network, ...rest }));
  const changed = Object.keys(fields).filter((name) => name !== "from" && fields[name] !== others[name]);
  return changed.map((name) => `${name}=${fields[name]}`);
}
