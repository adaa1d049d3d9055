// Keep: the picture under its heatmap, its numbers, and code that computes it again.

import { copyText } from "../../shared/clipboard.js";
import { make, setText } from "../../shared/dom.js";
import { english, translate } from "../../shared/language.js";
import { commandOf, pythonOf, valuesOf } from "../keep/description.js";
import { npz } from "../keep/npz.js";
import { pngOf, reportOf, svgOf } from "../keep/pictures.js";

export const order = 55;

export const offline = true;

export const html = `
  <section class="card keep">
    <h2>Keep</h2>
    <div class="buttons">
      <button type="button" class="quiet" data-keep="png">PNG</button>
      <button type="button" class="quiet" data-keep="svg">SVG</button>
      <button type="button" class="quiet" data-keep="report">HTML report</button>
      <button type="button" class="quiet" data-keep="json">JSON</button>
      <button type="button" class="quiet" data-keep="npz">NPZ</button>
      <button type="button" class="quiet" data-keep="input">Input picture</button>
      <button type="button" class="quiet" data-keep="python">Copy as Python</button>
      <button type="button" class="quiet" data-keep="command">Copy as command</button>
    </div>
    <p class="hint" role="status"></p>
  </section>`;

const LIFETIME = 60_000; // milliseconds that a browser gets to save a file
const HINT = english("JSON and NPZ hold the map’s exact values; JSON also names the method, the class and the model.");
const NO_COMMAND = english("The command line cannot drop patches: copy the Python code instead.");

export function create(card, { methods, curves }) {
  const hint = card.querySelector("[role=status]");
  const buttons = [...card.querySelectorAll("button")];
  let kept = null; // the map on the stage, with all that describes it

  const actions = {
    png: async () => save(await pngOf(kept), "png"),
    svg: () => save(svgOf(kept), "svg", "image/svg+xml"),
    report: () => save(reportOf(kept, pythonOf(kept)), "html", "text/html"),
    json: () => save(`${JSON.stringify(valuesOf(kept), null, 1)}\n`, "json", "application/json"),
    npz: () => save(npz(arraysOf(kept)), "npz", "application/octet-stream"),
    input: () => saveAs(kept.result.image, nameOfInput(kept)),
    python: () => copy(pythonOf(kept), english("Python code copied.")),
    command: () => {
      const command = commandOf(kept);
      if (command) copy(command, english("Command copied."));
      else setText(hint, NO_COMMAND);
    },
  };

  function save(content, extension, type) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const { preset, patch_size: size } = kept.result.source;
    const url = URL.createObjectURL(blob);
    saveAs(url, `${kept.name}-${preset.replaceAll("/", "-")}-${size}.${extension}`);
    setTimeout(() => URL.revokeObjectURL(url), LIFETIME);
  }

  function saveAs(url, name) {
    make("a", { href: url, download: name }).click();
    setText(hint, translate("Saved *{name}*.", { name }));
  }

  async function copy(text, copied) {
    setText(hint, (await copyText(text)) ? copied : english("The browser did not allow copying."));
  }

  for (const button of buttons) button.addEventListener("click", () => kept && actions[button.dataset.keep]());

  function draw({ result, method, view, map, choices }) {
    const name = Object.keys(methods).find((each) => methods[each] === method);
    const style = method.style(result);
    const shown = { result, method, name, methods, curves, view, map, style, opacity: choices.opacity };
    kept = map ? { ...shown, dropped: new Set(result.dropped) } : null;
    for (const button of buttons) button.disabled = !kept;
  }

  function show(result) {
    setText(hint, HINT);
    if (result) return;
    kept = null;
    for (const button of buttons) button.disabled = true;
  }

  return { draw, show };
}

/** The arrays of a .npz file. */
function arraysOf({ result, map }) {
  const probabilities = Float32Array.from(result.predictions, ({ probability }) => probability);
  return {
    map: { values: map, shape: [result.rows, result.columns] },
    probabilities: { values: probabilities, shape: [probabilities.length] },
  };
}

const nameOfInput = ({ result }) => (result.pixelated ? "drawing.png" : "input.webp");
