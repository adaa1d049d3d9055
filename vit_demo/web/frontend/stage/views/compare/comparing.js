// @ts-check
// What happens in "Compare", fetched when it is first opened: the same picture in two to four columns, under other patch sizes, models, methods or classes.

import { setText } from "../../../shared/dom.js";
import { samePlace } from "../../../shared/geometry.js";
import { english, translate } from "../../../shared/language.js";
import { MOST_COLUMNS } from "../../../shared/link.js";
import { menuModels } from "../../../shared/pageState.js";
import { formatNumber } from "../../format.js";
import { defaultChoices, mapFields } from "../../onDemand.js";
import { decodeFloat32, openResult } from "../../result.js";
import { createColumn, FEWEST, firstColumns, offeredColumns, scaleEnds, sourceOf, withModel } from "./column.js";

/** Makes what happens in the section `card`. */
export function createComparing(card, { request, methods, curves, change }) {
  const find = (selector) => card.querySelector(selector);
  let whole = /** @type {any} */ (null); // the result that the stage shows
  let silent = []; // the heads that are silent on the stage
  let columns = []; // {choices, view, result, map, areas, error, progress, token}
  let hovered = /** @type {any} */ (null); // {patch, result}
  let chosen = /** @type {any} */ (null); // the columns of the page's state, as in column.js; null for the first ones
  let isOpen = false;
  let frame = 0;

  function schedule() {
    if (!frame) frame = requestAnimationFrame(render);
  }

  function render() {
    frame = 0;
    const maps = columns.filter(({ map }) => map).map((column) => describe(column));
    const ends = scaleEnds(maps);
    columns.forEach((column, i) => {
      const { choices, result } = column;
      const end = (ends.get(methods[choices.method].unit) ?? 0) * (result ? perOf(methods[choices.method], result) : 1);
      column.view.show({
        ...column,
        silent,
        number: i + 1,
        models: offered(choices),
        end,
        hovered: hovered && result ? samePlace(hovered.patch, hovered.result, result) : null,
        canRemove: columns.length > FEWEST,
      });
    });
    find(".add").disabled = !columns.length || columns.length >= MOST_COLUMNS;
    find(".measure").disabled = !columns.length || columns.some(({ result, progress }) => !result || progress);
    const words = maps.map(({ unit, style, format }) => {
      const end = format(ends.get(unit));
      const values = { low: style.signed ? `−${end}` : 0, end, unit: translate(unit) };
      return [unit, translate("colours from *{low}* to *{end}*: {unit}", values)];
    });
    const nothing = english("Draw a digit or choose a photo.");
    setText(find(".scales"), whole ? [...new Map(/** @type {any} */ (words)).values()].join(" · ") : nothing);
  }

  function describe({ choices: { method }, map, result }) {
    const { unit, style, format, isShare } = methods[method];
    const times = (value) => translate("{times} times as much as if spread evenly", { times: formatNumber(value) });
    const per = perOf(methods[method], result);
    return { unit, map, style: style(result), per, format: isShare ? times : format };
  }

  /** The models for the visitor's picture; one that is chosen is always among them. */
  function offered({ preset }) {
    const models = menuModels.latest();
    const task = models.get(whole.source.preset)?.task;
    const isOffered = (model) => model.name === preset || (model.on_machine && model.task === task);
    return [...models.values()].filter(isOffered);
  }

  function addColumn(choices) {
    const column = { choices, result: null, map: null, areas: null, error: "", progress: null, token: null };
    column.view = createColumn(methods, {
      onChange: (part) => choose(column, part),
      onHover(patch, result) {
        hovered = patch === null ? null : { patch, result };
        schedule();
      },
      onRemove() {
        removeColumn(column);
        publish();
      },
    });
    columns.push(column);
    find(".columns").append(column.view.element);
    load(column);
  }

  function removeColumn(column) {
    column.token = null;
    columns = columns.filter((each) => each !== column);
    column.view.element.remove();
    schedule();
  }

  function choose(column, part) {
    const model = menuModels.latest().get(part.preset);
    column.choices = model ? withModel(column.choices, model) : { ...column.choices, ...part };
    load(column);
    publish();
  }

  /** Makes the columns part of the page's state, and so of its address. */
  function publish() {
    chosen = columns.map(({ choices }) => choices);
    change({ compare: chosen });
  }

  /** Changes a column by what `work(options)` resolves to, unless something else is computed for it meanwhile. */
  async function compute(column, work) {
    const token = {};
    const isCurrent = () => column.token === token;
    const onProgress = (share) => {
      column.progress = { share };
      schedule();
    };
    Object.assign(column, { token, error: "" });
    onProgress(null);
    const found = await work({ isCurrent, onProgress });
    if (!isCurrent()) return;
    Object.assign(column, found, { progress: null });
    schedule();
  }

  /** Loads a column's result, if it is another one, and its map; what was shown stays until then. */
  function load(column) {
    column.areas = null;
    return compute(column, async (options) => {
      const result = await resultOf(column, options);
      if (result.error || !options.isCurrent()) return { error: result.error };
      const hasClass = result.predictions.some(({ index }) => index === column.choices.label);
      if (!hasClass) column.choices = { ...column.choices, label: null }; // another model's, or of another picture
      const map = await mapOf(column.choices, result, options);
      return map.error ? { error: map.error } : { result, map };
    });
  }

  async function resultOf({ choices, result }, options) {
    const source = sourceOf(whole.source, choices, silent);
    const isSame = (one) =>
      one?.source.preset === choices.preset &&
      one.source.patch_size === choices.patchSize &&
      String(one.silent) === String(source.silent);
    if (isSame(result)) return result;
    const known = [whole, ...columns.map((column) => column.result)].find(isSame);
    if (known) return known;
    const reply = await request({ kind: "result", source }, options);
    if (!reply?.result) return { error: reply?.error ?? "" };
    return reply.result.empty ? { error: reply.result.message } : openResult(reply.result);
  }

  async function mapOf(choices, result, options) {
    const { classSpecific, map } = methods[choices.method];
    if (classSpecific && !result.predictions.length) {
      return { error: english("This model has no classes: choose another method.") };
    }
    const view = { ...choices, ...defaultChoices(result) };
    if (map) return map(result, view);
    const fields = mapFields(methods, result, view);
    const reply = await request({ kind: "map", source: result.source, ...fields }, options);
    return reply?.result ? decodeFloat32(reply.result.map) : { error: reply?.error ?? "" };
  }

  const measure = (column) =>
    compute(column, async (options) => {
      const { choices, result } = column;
      const fields = mapFields(methods, result, { ...choices, ...defaultChoices(result) });
      const reply = await curves.ofMap(result, { ...fields, baseline: "mean" }, options);
      if (!reply?.result) return { areas: null, error: reply?.error ?? "" };
      const { deletion, insertion } = reply.result;
      return { areas: { deletion: deletion.area, insertion: insertion.area } };
    });

  /** Begins again with the picture on the stage; columns that the visitor has chosen are kept for a new picture. */
  function begin() {
    if (!isOpen || !whole || !menuModels.latest().size) return;
    const { preset } = whole.source;
    const { sizes = [] } = menuModels.latest().get(preset) ?? {};
    const all = sizes.map(({ size }) => size);
    const next = offeredColumns(chosen, offered({ preset }), methods) ?? firstColumns(whole.source, all, "attention");
    for (const column of [...columns]) removeColumn(column);
    hovered = null;
    for (const choices of next) addColumn(choices);
  }

  function show(shown, result) {
    const isAsBefore = String(shown?.silent ?? "") === String(silent);
    silent = shown?.silent ?? [];
    if (result === whole && !isAsBefore) for (const column of columns) if (column.choices.without) load(column);
    if (result === whole) return schedule();
    whole = result ?? null;
    if (whole) begin();
    else for (const column of [...columns]) removeColumn(column);
    schedule();
  }

  /** Called for each frame while the section is open. */
  function draw({ choices: { compare } }) {
    if (isOpen && JSON.stringify(compare) === JSON.stringify(chosen)) return;
    isOpen = true;
    chosen = compare;
    begin();
  }

  find(".add").addEventListener("click", () => {
    addColumn({ ...columns.at(-1).choices });
    publish();
  });
  find(".reset").addEventListener("click", () => {
    change({ compare: null });
    chosen = null;
    begin();
  });
  find(".measure").addEventListener("click", () => columns.map(measure));
  new ResizeObserver(schedule).observe(card);
  menuModels.subscribe(card, begin); // the stage may be first
  return { show, draw };
}

/** In what a map is measured so that maps of different grids can share a scale: for shares, in even ones. */
const perOf = ({ isShare }, { numTokens }) => (isShare ? 1 / numTokens : 1);
