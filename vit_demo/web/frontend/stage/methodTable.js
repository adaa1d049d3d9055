// Deletion and insertion of every method for one picture and class, one row after the other, with progress.

import { make, setProgress, setText } from "../shared/dom.js";
import { english, translate } from "../shared/language.js";
import { mapFields } from "./methods.js";
import { formatArea } from "./numbers.js";

/** The choices under which each method is compared: its default map. */
const defaults = ({ numBlocks }) => ({ block: numBlocks - 1, head: -1, direction: "from", pinned: null });

/**
 * Builds the table in `panel`. `show(next)` says what can be compared, {result, label, className, baseline}, or null;
 * what was found stays as long as that is the same.
 */
export function createMethodTable(panel, methods, curves) {
  const find = (selector) => panel.querySelector(selector);
  const [button, table, status, bar] = ["button", "table", ".table-status", ".progress"].map(find);
  let about = null;
  let key = "";
  let running = null; // a token of the comparison that is computed

  async function run() {
    if (running) return stop(english("Cancelled."));
    const request = {};
    running = request;
    const { result, label, baseline } = about;
    const names = Object.keys(methods);
    const body = start();
    const isCurrent = () => running === request;
    for (const [i, name] of ["", ...names].entries()) {
      const method = translate(name ? methods[name].label : english("random orders"));
      setText(status, translate("Computing *{method}* …", { method }));
      const onProgress = (progress) => setProgress(bar, true, (i + (progress ?? 0)) / (names.length + 1));
      onProgress(0);
      const reply = name
        ? await curves.ofMap(result, { ...fieldsOf(name), label, baseline }, { isCurrent, onProgress })
        : await curves.ofRandomOrders(result, { label, baseline }, { isCurrent });
      if (!isCurrent()) return;
      if (reply.error) return stop(reply.error);
      if (name) body.append(row(methods[name], reply.result, body.randoms));
      else body.randoms = reply.randoms;
    }
    body.append(randomRow(body.randoms));
    markBest(body);
    stop("");
  }

  const fieldsOf = (method) =>
    mapFields(methods, about.result, { ...defaults(about.result), method, label: about.label });

  function start() {
    const heads = [english("Method"), english("Deletion ↓"), english("Insertion ↑")].map((textContent) =>
      make("th", { textContent, scope: "col" }),
    );
    const body = make("tbody");
    const caption = make("caption");
    setText(caption, translate("Tested on *{name}*, every method on the same class", { name: about.className }));
    table.replaceChildren(caption, make("thead", {}, make("tr", {}, ...heads)), body);
    table.hidden = false;
    button.textContent = english("Cancel");
    return body;
  }

  function stop(words) {
    running = null;
    button.textContent = english("Compare all methods");
    setProgress(bar, false);
    setText(status, words);
  }

  function show(next) {
    about = next;
    const nextKey = next ? `${next.result.run} ${next.label} ${next.baseline}` : "";
    if (nextKey === key) return;
    key = nextKey;
    stop("");
    table.hidden = true;
    button.disabled = !next;
  }

  button.addEventListener("click", run);
  return { show };
}

const meanArea = (randoms, side) => randoms.reduce((sum, random) => sum + random[side].area, 0) / randoms.length;

function row({ label, classSpecific }, found, randoms) {
  const name = make("th", { scope: "row", textContent: label });
  if (!classSpecific) name.append(make("small", { textContent: ` ${english("same for every class")}` }));
  const cells = ["deletion", "insertion"].map((side) => {
    const { area } = found[side];
    const random = meanArea(randoms, side);
    const isBetter = side === "deletion" ? area < random : area > random;
    return cell(area, isBetter ? "" : english("no better than random"));
  });
  return make("tr", {}, name, ...cells);
}

function cell(area, remark) {
  const node = make("td", { textContent: formatArea(area) });
  node.dataset.area = area;
  if (remark) node.append(make("small", { textContent: ` ${remark}` }));
  return node;
}

function randomRow(randoms) {
  const cells = ["deletion", "insertion"].map((side) =>
    make("td", { textContent: formatArea(meanArea(randoms, side)) }),
  );
  const name = make("th", { scope: "row", textContent: english("mean of the random orders") });
  return make("tr", { className: "random" }, name, ...cells);
}

/** Marks the lowest area of deletion and the highest of insertion. */
function markBest(body) {
  const rows = [...body.querySelectorAll("tr:not(.random)")];
  [Math.min, Math.max].forEach((best, column) => {
    const cells = rows.map((each) => each.querySelectorAll("td")[column]);
    const bestArea = formatArea(best(...cells.map((each) => Number(each.dataset.area))));
    for (const each of cells) each.classList.toggle("best", formatArea(Number(each.dataset.area)) === bestArea);
  });
}
