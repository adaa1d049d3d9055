// @ts-check
// Deletion and insertion of every method for one picture and class, one row after the other, with progress.

import { isNew, make, makeButton, setProgress, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { createRequestIds } from "../../../shared/requests.js";
import { formatArea } from "../../format.js";
import { compare, defaultChoices, mapFields } from "../../onDemand.js";
import { beatsAll } from "./findings.js";

/**
 * Builds the table in `panel`. `show(next)` says what can be compared, {result, label, against, name, measure, baseline}, or
 * null; what was found stays as long as that is the same. `run()` compares, or ends that. `onMethod(name)` is called with a method that is chosen in it.
 */
export function createMethodTable(panel, methods, curves, onMethod) {
  const find = (selector) => panel.querySelector(selector);
  const [button, table, status, bar] = ["button", "table", ".table-status", ".progress"].map(find);
  const startRun = createRequestIds();
  let about = /** @type {any} */ (null);
  let isRunning = false;

  async function run() {
    if (isRunning) return stop(english("Cancelled."));
    const isCurrent = startRun();
    isRunning = true;
    setText(button, english("Cancel"));
    const { result, label, against, baseline } = about;
    const names = Object.keys(methods).sort((one, other) => passesOf(one) - passesOf(other));
    const found = /** @type {any[]} */ ([]);
    let randoms = [];
    for (const [i, name] of [...names, ""].entries()) {
      draw(found);
      const method = translate(name ? methods[name].label : english("random orders"));
      setText(status, translate("Computing *{method}* …", { method }));
      const onProgress = (/** @type {number | null} */ progress) =>
        setProgress(bar, true, (i + (progress ?? 0)) / (names.length + 1));
      onProgress(0);
      const reply = name
        ? await curves.ofMap(result, { ...fieldsOf(name), label, against, baseline }, { isCurrent, onProgress })
        : await curves.ofRandomOrders(result, { label, against, baseline }, { isCurrent });
      if (!isCurrent()) return;
      if (reply.error) return stop(reply.error);
      if (name) found.push({ name, reply: reply.result, ...compare(reply.result, []) });
      else randoms = reply.randoms;
    }
    const gain = ({ deletion, insertion }) => insertion.area - deletion.area;
    const compared = found.map(({ name, reply }) => ({ name, ...compare(reply, randoms) }));
    draw(
      compared.sort((one, other) => gain(other) - gain(one)),
      true,
    );
    stop("");
  }

  /** Quick methods come first: their rows are there while slow ones are computed. */
  const passesOf = (/** @type {string} */ name) => Number(Boolean(methods[name].manyPasses));

  const fieldsOf = (method) => mapFields(methods, about.result, { ...defaultChoices(about.result), ...about, method });

  /** A row for each method that was compared; once all are, the best areas are marked, and random orders come last. */
  function draw(found, isDone = false) {
    const cell = (tag, properties, text, remark) =>
      make(tag, properties, text, ...(remark ? [make("small", { textContent: ` ${remark}` })] : []));
    const titles = [english("Method"), english("Deletion ↓"), english("Insertion ↑")];
    const heads = titles.map((title) => cell("th", { scope: "col" }, title));
    const areasOf = (side) => found.map((each) => each[side].area);
    const best = { deletion: Math.min(...areasOf("deletion")), insertion: Math.max(...areasOf("insertion")) };
    const areaCell = (side, { area, ...others }) => {
      const isBest = isDone && formatArea(area) === formatArea(best[side]);
      return cell("td", { className: isBest ? "best" : "" }, formatArea(area), isDone && remarkOf(others));
    };
    const rows = found.map(({ name, deletion, insertion }) => {
      const { label, classSpecific } = methods[name];
      const choose = makeButton(() => onMethod(name), { className: "link" }, label);
      const method = cell("th", { scope: "row" }, choose, classSpecific ? "" : english("whatever the class"));
      return make("tr", {}, method, areaCell("deletion", deletion), areaCell("insertion", insertion));
    });
    if (isDone) {
      const [{ deletion, insertion }] = found;
      const areas = [deletion, insertion].map((side) => cell("td", {}, formatArea(side.random_area)));
      const name = cell("th", { scope: "row" }, english("mean of the random orders"));
      rows.push(make("tr", { className: "random" }, name, ...areas));
    }
    const caption = make("caption");
    const values = { name: about.name, measure: translate(about.measure) };
    setText(caption, translate("Tested on *{name}* ({measure}), every method on the same class", values));
    table.replaceChildren(caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
    table.hidden = false;
  }

  function stop(words) {
    startRun();
    isRunning = false;
    setText(button, english("Compare all methods"));
    setProgress(bar, false);
    setText(status, words);
  }

  function show(next) {
    about = next;
    if (!isNew(table, next && [next.result.run, next.label, next.against, next.baseline])) return;
    stop("");
    table.hidden = true;
    button.disabled = !next;
  }

  return { show, run };
}

function remarkOf(side) {
  if (beatsAll(side)) return "";
  return side.orders_beaten ? english("no clear gain") : english("worse than random");
}
