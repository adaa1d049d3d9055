// One column of a comparison: its choices, its picture, and what is known about it.

import { make, setProgress, setText } from "../../../shared/dom.js";
import { middlePatch, neighbour } from "../../../shared/geometry.js";
import { english, formatCount, translate } from "../../../shared/language.js";
import { testedClass } from "../../methods.js";
import { formatArea, formatProbability } from "../../numbers.js";
import { fitCanvas, paintResult } from "../../picture.js";
import { followPatches } from "../../pointing.js";
import { placeOf, targetOf } from "../../text.js";
import { attentionBytes, formatBytes } from "./columns.js";

const OPACITY = 0.8;
const NONE = new Set();

const HTML = `
  <div class="choices">
    <label>Model <select data-compare="preset"></select></label>
    <label>Patch size <select data-compare="patchSize"></select></label>
    <label>Method <select data-compare="method"></select></label>
    <label>Class <select data-compare="label"></select></label>
  </div>
  <div class="pane">
    <canvas tabindex="0" role="application"></canvas>
    <p class="error" role="status"></p>
    <div class="progress" aria-hidden="true"><i></i></div>
  </div>
  <p class="at"></p>
  <dl></dl>
  <button type="button" class="quiet remove">Remove</button>`;

/** `onChange(part)` gets a choice, `onHover(patch, result)` a patch or null, `onRemove()` a click on "Remove". */
export function createColumn(methods, { onChange, onHover, onRemove }) {
  const element = make("section", { className: "column", innerHTML: HTML });
  const find = (selector) => element.querySelector(selector);
  const [canvas, pane] = [find("canvas"), find(".pane")];
  const selects = Object.fromEntries([...element.querySelectorAll("select")].map((one) => [one.dataset.compare, one]));
  let shown = null; // what `show` was called with

  for (const [name, select] of Object.entries(selects)) {
    select.addEventListener("change", () => onChange({ [name]: JSON.parse(select.value) }));
  }
  find(".remove").addEventListener("click", onRemove);
  const hover = (patch) => onHover(patch, shown?.result ?? null);
  followPatches(canvas, () => shown?.result ?? null, {
    hover,
    click: hover,
    press() {},
    leave: () => hover(null),
    move(step) {
      const { result, hovered } = shown;
      hover(hovered === null ? middlePatch(result) : neighbour(hovered, step, result));
    },
  });

  /**
   * Shows a column: `choices` (see columns.js), `number` from 1, `models` of its menu, `result` or null, `map` or null, the
   * `end` of the colour scale, the `hovered` patch or null, `areas` {deletion, insertion} or null, `error`, and `progress`:
   * null if nothing is computed, else {share}.
   */
  function show(next) {
    shown = next;
    const { choices, number, models, result, error, progress, canRemove } = next;
    element.setAttribute("aria-label", translate("Column {number}", { number }));
    fill(
      selects.preset,
      models.map(({ name, title }) => [name, title]),
      choices.preset,
    );
    const sizes = models.find(({ name }) => name === choices.preset)?.sizes ?? [{ size: choices.patchSize }];
    fill(
      selects.patchSize,
      sizes.map(({ size }) => [size, `${size} px`]),
      choices.patchSize,
    );
    fill(
      selects.method,
      Object.entries(methods).map(([name, { label }]) => [name, label]),
      choices.method,
    );
    const classes = (result?.predictions ?? []).map(({ index, label }) => [index, label]);
    classes.sort(([, one], [, other]) => one.localeCompare(other));
    fill(selects.label, [[null, translate("predicted class")], ...classes], choices.label);
    selects.label.disabled = !methods[choices.method].classSpecific;
    selects.label.title = selects.label.disabled ? sameForEvery(methods[choices.method]) : "";
    find(".remove").hidden = !canRemove;
    setText(find(".error"), error);
    setProgress(find(".progress"), Boolean(progress), progress?.share ?? null);
    element.classList.toggle("pending", Boolean(progress));
    paint();
    describe();
  }

  function paint() {
    const { result, map, end, hovered, choices } = shown;
    canvas.style.visibility = result ? "" : "hidden";
    if (!result) return;
    const style = { ...methods[choices.method].style(result), floor: end };
    const size = fitCanvas(canvas, pane, result.size);
    paintResult(canvas, size, result, { map, style, opacity: OPACITY, queried: null, hovered, dropped: NONE });
  }

  function describe() {
    const { result, map, hovered, choices, areas, number } = shown;
    const method = methods[choices.method];
    const first = result?.predictions[0];
    const rows = result
      ? [
          [
            english("Prediction"),
            first ? `${first.label}, ${formatProbability(first.probability)}` : translate("no classes"),
          ],
          [english("Grid"), `${result.rows} × ${result.columns}`],
          [english("Tokens"), `${result.numTokens}`],
          [english("Operations"), formatCount(result.operations)],
          [english("Attention of a block"), formatBytes(attentionBytes(result))],
          ...(first ? [[english("Tested on"), testedClass(result, method, choices.label).label]] : []),
          [english("Deletion ↓"), areas ? formatArea(areas.deletion) : "–"],
          [english("Insertion ↑"), areas ? formatArea(areas.insertion) : "–"],
        ]
      : [];
    const lines = rows.flatMap(([term, value]) => [
      make("dt", { textContent: term }),
      make("dd", { textContent: value, title: value }),
    ]);
    find("dl").replaceChildren(...lines);
    const isRead = result && map && hovered !== null;
    setText(find(".at"), isRead ? `${placeOf(result, hovered)}: *${method.format(map[hovered])}*` : "");
    const target = method.classSpecific && first ? ` (${targetOf(result, choices.label).label})` : "";
    const words = translate("Column {number}: {method}. Arrow keys read its patches.", {
      number,
      method: translate(method.label) + target,
    });
    canvas.setAttribute("aria-label", words);
  }

  return { element, show, repaint: () => shown && paint() };
}

const sameForEvery = ({ label }) => translate("{method} is the same for every class", { method: translate(label) });

/** Offers [value, words] in a select, touching the page only where something is new. */
function fill(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) {
    select.dataset.key = key;
    select.replaceChildren(
      ...options.map(([each, textContent]) => make("option", { value: JSON.stringify(each), textContent })),
    );
  }
  select.value = JSON.stringify(value);
}
