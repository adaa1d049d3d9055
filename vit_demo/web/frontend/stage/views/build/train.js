// Training the network that is built: what is chosen, what is seen while it learns, and what can be done with it then.

import {
  choice,
  copyText,
  loadImage,
  make,
  makeButton,
  makeOptions,
  setProgress,
  setText,
} from "../../../shared/dom.js";
import { english, formatDecimals, formatInteger, languageChange, translate } from "../../../shared/language.js";
import { menuModels, pageState, shownResult } from "../../../shared/pageState.js";
import { percent } from "../../format.js";
import { heatCanvas, inkOnPaper } from "../../heatmapColours.js";
import { FIRST_SECTION } from "../../sections.js";
import { lineChart } from "../faithfulness/findings.js";
import { NUM_DIGITS, RATES, trainingCode, trainingProblemOf } from "./network.js";

export const html = `
  <div class="train">
    <h3>Train it</h3>
    <p class="intro">On 5,000 handwritten digits, from random weights, on one core of the server. It never sees the 1,000
      digits that tell how many it gets right. Guessing gets 10 %.</p>
    <div class="settings">
      <div><span>Time</span><div class="seconds"></div></div>
      <label><span>Training digits</span><select name="num_digits"></select></label>
      <label><span>Learning rate</span><select name="learning_rate"></select></label>
      <label class="check"><input type="checkbox" name="shuffle_labels"><span>Shuffle the labels</span></label>
    </div>
    <div class="actions">
      <button type="button" class="primary begin">Train it</button>
      <button type="button" class="quiet cancel" hidden>Cancel</button>
      <span class="note" role="status"></span>
    </div>
    <div class="actions linked" hidden>
      <button type="button" class="quiet again">Train it again</button>
      <span class="hint"></span>
    </div>
    <div class="progress" hidden><i></i></div>
    <div class="live" hidden>
      <dl class="totals">
        <div><dt>Right of 1,000 new digits</dt><dd data-train="accuracy">–</dd></div>
        <div><dt>Loss</dt><dd data-train="loss">–</dd></div>
        <div><dt>Steps</dt><dd data-train="steps">–</dd></div>
      </dl>
      <div class="watch">
        <figure class="digit"><div class="ink"></div><figcaption></figcaption></figure>
        <div class="charts"></div>
      </div>
      <div class="after" hidden>
        <div class="actions">
          <button type="button" class="primary look-into">Look into it</button>
          <button type="button" class="quiet continue">Continue</button>
          <button type="button" class="quiet copy-training">Copy as Python</button>
          <button type="button" class="quiet download">Download</button>
        </div>
        <p class="hint">The server keeps this network for an hour.</p>
        <div class="mistakes"></div>
      </div>
    </div>
  </div>`;

const SECONDS = [10, 30, 60];
const GUESSING = 0.1;
const LINKED = english(
  "The server keeps a network for an hour. This one was trained in {steps} steps with seed {seed}, which on the same machine gives the same network again.",
);
const OVER = new Set(["done", "ended"]);

/**
 * `show(config, patchSize, problem, choices, training)` tells which network there is, what was chosen for it, and how that of
 * a link was trained.
 */
export function createTraining(host, { change, request, startingPoints }) {
  const find = (selector) => host.querySelector(selector);
  const { defaults, limits } = startingPoints;
  const chosen = { seconds: 30 };
  let network = /** @type {any} */ (null); // the configuration that can be trained, or null
  let hindrance = ""; // why it cannot be
  let choices = null; // what the visitor chose for it in Build
  let linked = /** @type {any} */ (null); // how the network of a link was trained: {steps, seed, ...}
  let current = null; // the run that is shown: {name, network, choices, fields, last}
  let before = /** @type {any} */ (null); // the run before it
  let drawing = ""; // the last one that was on the stage, whichever tab is open

  const seconds = choice(
    find(".seconds"),
    english("Seconds"),
    SECONDS.map((value) => [value, translate("{number} s", { number: value })]),
    (value) => {
      chosen.seconds = value;
      seconds.set(value);
    },
  );
  seconds.set(chosen.seconds);
  find("[name=num_digits]").append(...makeOptions(NUM_DIGITS.map((value) => [value, formatInteger(value)])));
  find("[name=learning_rate]").append(...makeOptions(RATES.map((value) => [value, String(value)])));

  /** Begins a run with what is chosen and `more`, such as {from}, a trained network, and shows it until it is over. */
  async function begin(more = {}) {
    const fields = {
      config: network,
      seconds: chosen.seconds,
      num_digits: Number(find("[name=num_digits]").value),
      learning_rate: Number(find("[name=learning_rate]").value),
      shuffle_labels: find("[name=shuffle_labels]").checked,
      ...more,
    };
    const run = { name: null, network, choices, fields, last: null, picture: null };
    if (current?.last?.step) before = current;
    current = run;
    setText(find(".note"), english("Waiting for a free core …"));
    draw();
    if (innerWidth <= 600) find(".actions").scrollIntoView({ block: "start" }); // what is seen of it is below
    const source = digitSource();
    if (source.digit) run.picture = await loadImage(source.digit).catch(() => null);
    let next = /** @type {any} */ ({ begin: fields, source });
    while (current === run) {
      const reply = await request({ kind: "train", ...next });
      if (current !== run) return;
      if (reply.error) {
        current = null;
        setText(find(".note"), reply.error);
        draw();
        return;
      }
      run.last = reply.result;
      run.name = reply.result.run;
      draw();
      if (OVER.has(reply.result.state)) return;
      next = { run: run.name, ...(run.isCancelled && { cancel: true }) };
    }
  }

  /** The picture of the open tab as the server takes it, or an example. */
  function digitSource() {
    const { picture } = pageState.get()?.digits ?? {};
    if (drawing) return { digit: drawing };
    return { example: `digit-${picture?.digit ?? 7}` };
  }

  function draw() {
    const last = current?.last;
    const isOver = !current || (last && OVER.has(last.state));
    find(".begin").disabled = !network || !isOver;
    find(".cancel").hidden = isOver;
    find(".linked").hidden = !linked || Boolean(current) || !network;
    if (linked)
      setText(find(".linked .hint"), translate(LINKED, { steps: formatInteger(linked.steps), seed: linked.seed }));
    setProgress(find(".progress"), !isOver, last?.steps ? last.step / last.steps : null);
    find(".live").hidden = !last?.step;
    if (isOver && hindrance) setText(find(".note"), hindrance);
    else if (last) setText(find(".note"), noteOf(last, current.isCancelled));
    if (!last?.step) return;
    const right = last.accuracy.at(-1);
    find("[data-train=accuracy]").textContent = right ? percent(100 * right[1], 1) : "–";
    find("[data-train=loss]").textContent = formatDecimals(last.loss.at(-1)[1], 3);
    find("[data-train=steps]").textContent = last.steps
      ? `${formatInteger(last.step)} / ${formatInteger(last.steps)}`
      : formatInteger(last.step);
    drawDigit(last.look);
    drawCharts(last);
    find(".after").hidden = last.state !== "done";
    if (last.state === "done") drawMistakes(last.mistakes);
  }

  function drawDigit(look) {
    find(".digit").hidden = !look || !current.picture;
    if (find(".digit").hidden) return;
    const grid = { rows: look.map.length, columns: look.map[0].length, pixelated: true };
    find(".ink").replaceChildren(
      inkOnPaper(current.picture),
      heatCanvas(Float32Array.from(look.map.flat()), grid, 0.7),
    );
    const values = { label: look.label, probability: percent(100 * look.probability) };
    setText(find(".digit figcaption"), translate("*{label}*, {probability}: where it looks in its last block", values));
  }

  function drawCharts(last) {
    const runs = before ? [last, before.last] : [last];
    const all = Math.max(...runs.map(({ step, steps }) => steps || step));
    const ends = [translate("0 steps"), translate("{number} steps", { number: formatInteger(all) })];
    const words = before && [translate("the run before"), ...differences(before, current)].join(", ");
    const chart = (title, pointsOf, format, guesses = []) => {
      const lines = runs.map(pointsOf).map((points) => ({
        places: points.map(([at]) => at / all),
        curve: points.map(([, value]) => value),
      }));
      const other = before && { ...lines[1], words };
      const randoms = guesses.map((value) => lines[0].places.map(() => value));
      const legend = [translate("this network"), ...guesses.map(() => translate("guessing"))];
      return lineChart({ title, ...lines[0], other, randoms, ends, legend, format });
    };
    const lossOf = ({ loss }) => loss;
    const accuracyOf = ({ accuracy }) => [[0, GUESSING], ...accuracy];
    const asShare = (value) => percent(100 * value);
    find(".charts").replaceChildren(
      chart(translate("Loss"), lossOf, (value) => formatDecimals(value, 1)),
      chart(translate("Right of 1,000 new digits"), accuracyOf, asShare, [GUESSING]),
    );
  }

  function drawMistakes(mistakes) {
    const pictures = mistakes.map(({ example, label, predicted, digit }) => {
      const words = translate("{label} taken for {predicted}", { label, predicted });
      const picture = make("img", { src: digit, alt: "" });
      return makeButton(
        () => lookInto({ example }),
        { className: "mistake" },
        picture,
        make("span", { textContent: words }),
      );
    });
    const heading = make("b", { textContent: translate("Digits that it gets wrong: choose one to look into it") });
    find(".mistakes").replaceChildren(...(pictures.length ? [heading, make("div", {}, ...pictures)] : []));
  }

  /**
   * Puts the trained network, and the one before the training if the server still has it, into the menu of models, and shows
   * the first on the stage, with a picture if one is given.
   */
  async function lookInto(picture = null) {
    const { choices: built, fields, last } = current;
    const names = [last.model, last.before];
    const replies = await Promise.all(names.map((name) => request({ kind: "model", name })));
    if (replies[0].error) return setText(find(".note"), replies[0].error);
    const here = replies.flatMap(({ result }) => result ?? []);
    for (const entry of here) menuModels.latest().set(entry.name, { ...entry, on_machine: true });
    const { name, default_patch_size: patchSize } = replies[0].result;
    pageState.chooseTask("digits", { preset: name, patchSize, ...(picture && { picture }) });
    menuModels.publish(menuModels.latest());
    const { num_digits, learning_rate, shuffle_labels } = fields;
    const training = { steps: last.steps, seed: last.seed, num_digits, learning_rate, shuffle_labels };
    change({ section: FIRST_SECTION, network: built, training: fields.from ? null : training });
    scrollTo({ top: 0 }); // this button is far below what it shows
  }

  async function download() {
    const reply = await request({ kind: "train", download: current.last.model });
    if (reply.error) return setText(find(".note"), reply.error);
    const href = `data:application/zip;base64,${reply.result.zip}`;
    make("a", { href, download: "vit_demo-digits.zip" }).click();
    setText(find(".note"), english("Saved *vit_demo-digits.zip*: unpack it, and explore a picture with its folder."));
  }

  find(".begin").addEventListener("click", () => begin());
  find(".again").addEventListener("click", () => begin(linked));
  find(".continue").addEventListener("click", () => begin({ from: current.last.model }));
  find(".cancel").addEventListener("click", () => {
    current.isCancelled = true;
  });
  find(".look-into").addEventListener("click", () => lookInto());
  find(".download").addEventListener("click", download);
  find(".copy-training").addEventListener("click", async () => {
    const copied = await copyText(trainingCode(current, defaults));
    setText(find(".note"), copied ? english("Copied.") : english("The code could not be copied."));
  });
  languageChange.subscribe(host, draw);
  const remember = (result) => {
    drawing = result?.source.digit ?? drawing;
  };
  shownResult.subscribe(host, remember);
  remember(shownResult.latest());

  function show(config, patchSize, problem, ofBuild, training) {
    linked = training;
    choices = ofBuild;
    const wanted = { ...config, patch_size: patchSize, pos_embed_grid: null };
    hindrance = problem ? "" : trainingProblemOf(wanted, patchSize, limits);
    network = problem || hindrance ? null : wanted;
    if (!current) setText(find(".note"), hindrance);
    draw();
  }

  return { show };
}

function noteOf({ state, step, steps, seconds, seed }, isCancelled) {
  if (state === "waiting") return english("Waiting for a free core …");
  if (state === "running") {
    if (!steps || !step || !seconds) return english("It learns …");
    const left = Math.ceil((seconds * (steps - step)) / step);
    return translate("It learns: {left} s left.", { left });
  }
  if (state === "ended")
    return isCancelled
      ? english("Cancelled.")
      : english("The server ended it, because it did not hear from this page in time.");
  const values = { steps: formatInteger(steps), seconds: formatDecimals(seconds, 1), seed };
  return translate("Done: {steps} steps in {seconds} s, seed {seed}.", values);
}

/** What was different about a run, as fields of Python. */
function differences(run, other) {
  const [fields, others] = [run, other].map(({ network, fields: { config, ...rest } }) => ({ ...network, ...rest }));
  const changed = Object.keys(fields).filter((name) => name !== "from" && fields[name] !== others[name]);
  return changed.map((name) => `${name}=${fields[name]}`);
}
