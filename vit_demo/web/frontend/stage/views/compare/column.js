// @ts-check
// One column of a comparison: its choices, its picture, and what is known about it.

import { definitions, fillSelect, make, setProgress, setText } from "../../../shared/dom.js";
import { currentLanguage, english, formatCount, translate } from "../../../shared/language.js";
import { withWords } from "../../../shared/pageState.js";
import { formatArea, formatBytes, placeOf, probabilityOf, targetOf } from "../../format.js";
import { scaleEnd } from "../../heatmapColours.js";
import { measureOf, testedClass } from "../../onDemand.js";
import { fitCanvas, listenToPatches, paintResult } from "../../picture.js";

const OPACITY = 0.8;

const HTML = `
  <div class="choices">
    <label>Model <select data-compare="preset"></select></label>
    <label>Patch size <select data-compare="patchSize"></select></label>
    <label>Method <select data-compare="method"></select></label>
    <label>Class <select data-compare="label"></select></label>
    <label>Silent heads <select data-compare="without"></select></label>
  </div>
  <div class="pane">
    <canvas tabindex="0" role="application"></canvas>
    <p class="error" role="status"></p>
    <div class="progress" aria-hidden="true"><i></i></div>
  </div>
  <p class="at"></p>
  <dl></dl>
  <button type="button" class="quiet remove">Delete this column</button>`;

/** `onChange(part)` gets a choice, `onHover(patch, result)` a patch or null, `onRemove()` a click on "Remove". */
export function createColumn(methods, { onChange, onHover, onRemove }) {
  const element = make("section", { className: "column", innerHTML: HTML });
  const find = (selector) => element.querySelector(selector);
  const canvas = find("canvas");
  const selects = Object.fromEntries([...element.querySelectorAll("select")].map((one) => [one.dataset.compare, one]));
  let shown = /** @type {any} */ (null); // what `show` was called with

  for (const [name, select] of Object.entries(selects)) {
    select.addEventListener("change", () => onChange({ [name]: JSON.parse(select.value) }));
  }
  find(".remove").addEventListener("click", onRemove);
  const hover = (patch) => onHover(patch, shown?.result ?? null);
  listenToPatches(canvas, () => shown?.result ?? null, {
    hover,
    click: hover,
    leave: () => hover(null),
    at: () => shown.hovered,
  });

  /**
   * Shows a column: `choices` {preset, patchSize, method, label, without}, the heads that are `silent` on the stage, `number`
   * from 1, `models` of its menu, `result`, `map`, the `end` of the colour scale, the `hovered` patch, `areas` {deletion, insertion}, `error`, and `progress`: {share}
   * while something is computed. What is not there is null.
   */
  function show(next) {
    shown = next;
    const { choices, silent, number, models, result, error, progress, canRemove } = next;
    element.setAttribute("aria-label", translate("Column {number}", { number }));
    const sizes = models.find(({ name }) => name === choices.preset)?.sizes ?? [{ size: choices.patchSize }];
    const lists = {
      preset: models.map(({ name, title }) => [name, title]),
      patchSize: sizes.map(({ size }) => [size, `${size} px`]),
      method: Object.entries(methods).map(([name, { label }]) => [name, label]),
      without: [
        [false, english("none")],
        [true, translate("1 head|{count} heads", { count: silent.length })],
      ],
    };
    for (const [name, list] of Object.entries(lists)) fillSelect(selects[name], list, () => list, choices[name]);
    const predictions = result?.predictions ?? [];
    const classes = () => {
      const all = predictions.map(({ index, label }) => [index, label]);
      return [[null, translate("predicted class")], ...all.sort(([, one], [, other]) => one.localeCompare(other))];
    };
    fillSelect(selects.label, [predictions, currentLanguage()], classes, choices.label);
    selects.label.disabled = !methods[choices.method].classSpecific;
    selects.label.title = selects.label.disabled ? sameForEvery(methods[choices.method]) : "";
    selects.without.parentElement.hidden = !silent.length;
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
    const style = { ...methods[choices.method].style(result), end };
    paintResult(canvas, fitCanvas(canvas, result.size), result, { map, style, opacity: OPACITY, hovered });
  }

  function describe() {
    const { result, map, hovered, choices, areas, number } = shown;
    const method = methods[choices.method];
    const first = result?.predictions[0];
    const tested = first && testedClass(result, method, choices.label);
    // Areas of probabilities and of logits are not comparable.
    const written = (area) => `${formatArea(area)} (${translate(measureOf(result, { label: tested.index }))})`;
    const rows = result
      ? [
          [english("Prediction"), first ? `${first.label}, ${probabilityOf(first)}` : translate("no classes")],
          [english("Grid"), `${result.rows} × ${result.columns}`],
          [english("Tokens"), `${result.numTokens}`],
          [english("Operations"), formatCount(result.operations)],
          [english("Attention of a block"), formatBytes(attentionBytes(result))],
          ...(first ? [[english("Tested on"), tested.label]] : []),
          [english("Deletion ↓"), areas ? written(areas.deletion) : "–"],
          [english("Insertion ↑"), areas ? written(areas.insertion) : "–"],
        ]
      : [];
    find("dl").replaceChildren(...definitions(rows));
    const isRead = result && map && hovered !== null;
    setText(find(".at"), isRead ? `${placeOf(result, hovered)}: *${method.written(map[hovered])}*` : "");
    const target = method.classSpecific && first ? ` (${targetOf(result, choices.label).label})` : "";
    const words = translate("Column {number}: {method}. Arrow keys read its patches.", {
      number,
      method: translate(method.label) + target,
    });
    canvas.setAttribute("aria-label", words);
  }

  return { element, show };
}

const sameForEvery = ({ label }) => translate("{method} does not depend on the class", { method: translate(label) });

// The columns of a comparison: {preset, patchSize, method, label, without}; label is the index of a class, null for the predicted
// one, `without` whether those heads are silent that are on the stage.

export const FEWEST = 2;

/** The columns to begin with: the picture on the stage, and the same model at its nearest other patch sizes. */
export function firstColumns({ preset, patch_size: current }, sizes, method) {
  const distance = (size) => Math.abs(Math.log(size / current)); // of 2, 4 and 14, 2 is nearest to 4
  const nearest = sizes.filter((size) => size !== current).sort((a, b) => distance(a) - distance(b));
  const others = globalThis.innerWidth <= 600 ? 1 : 2; // what fits side by side
  const shown = [current, ...nearest.slice(0, others)].sort((a, b) => a - b);
  return shown.map((patchSize) => ({ preset, patchSize, method, label: null, without: false }));
}

/**
 * The columns that a visitor or a link chose, as far as their models, sizes and methods exist; null for fewer than two.
 * `models` are those of the picture on the stage.
 */
export function offeredColumns(chosen, models, methods) {
  const exists = ({ preset, patchSize, method }) =>
    Object.hasOwn(methods, method) &&
    models.find(({ name }) => name === preset)?.sizes.some(({ size }) => size === patchSize);
  const columns = (chosen ?? []).filter(exists);
  return columns.length < FEWEST ? null : columns;
}

/** What a request about a column repeats: the same picture in another model, at another patch size, or without heads. */
export const sourceOf = ({ words, ...source }, { preset, patchSize: patch_size, without }, silent) =>
  withWords({ ...source, preset, patch_size, dropped: [], silent: without ? silent : [] }, words);

/** Another model for a column, at the same patch size if it has that; a class of one model is none of another. */
export function withModel(column, { name, sizes, default_patch_size: usual }) {
  const hasSize = sizes.some(({ size }) => size === column.patchSize);
  return { ...column, preset: name, patchSize: hasSize ? column.patchSize : usual, label: null };
}

/**
 * One end of the colour scale for all maps with the same unit: a Map from the unit; `maps` is a list of {unit, map, style,
 * per}. Each map is measured in its own `per`: an even share for shares, which are smaller where there are more patches.
 */
export function scaleEnds(maps) {
  const ends = new Map();
  for (const { unit, map, style, per } of maps) {
    ends.set(unit, Math.max(ends.get(unit) ?? 0, scaleEnd(map, style) / per));
  }
  return ends;
}

/** Bytes of one block's attention weights in float32, were they stored. */
export const attentionBytes = ({ numHeads, numTokens }) => 4 * numHeads * numTokens ** 2;
