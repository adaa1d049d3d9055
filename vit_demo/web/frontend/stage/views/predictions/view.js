// @ts-check
// The answer: always five bars, so that nothing below them moves; a click on one shows what speaks for its class. All other
// classes of the model are in a list that can be searched.

import { constants } from "../../../shared/constants.js";
import { make, makeButton, setText } from "../../../shared/dom.js";
import { english, plain, translate } from "../../../shared/language.js";
import { barOf, probabilityOf, targetOf } from "../../format.js";

const MOST_LISTED = 200; // of a list that is searched; more would only be scrolled past

const NO_CLASSES = english("This model has no classifier head: it predicts no class, and no heatmap can be about one.");

export const html = `
  <div class="predictions">
    <ol class="bars"></ol>
    <p class="note"></p>
    <details class="all-classes" hidden>
      <summary></summary>
      <div class="panel">
        <input type="search" autocomplete="off" spellcheck="false">
        <p class="found" role="status"></p>
        <ul></ul>
      </div>
    </details>
    <p class="visually-hidden spoken-answer" aria-live="polite"></p>
  </div>`;

export function create(card, { pickClass }) {
  const find = (selector) => card.querySelector(selector);
  let predictions = [];
  const rows = Array.from({ length: constants.numClasses }, (_, i) => {
    const label = make("span", { className: "label", translate: false });
    const number = make("span", { className: "number" });
    const [bar, before] = [make("i"), make("b", { hidden: true })];
    const track = make("span", { className: "track" }, bar, before);
    const face = makeButton(() => pickClass(predictions[i].index), {}, label, number, track);
    return { item: make("li", {}, face), face, label, number, bar, before };
  });
  find(".bars").append(...rows.map((row) => row.item));
  const [panel, search, list] = [".all-classes", ".all-classes input", ".all-classes ul"].map(find);
  let chosen = /** @type {any} */ (null); // index of the class that the heatmap is about, or null

  /** Lists the classes whose name contains what is typed. */
  function fillList() {
    if (!panel.open) return;
    const wanted = search.value.trim().toLowerCase();
    const found = predictions.filter(({ label }) => label.toLowerCase().includes(wanted));
    list.replaceChildren(
      ...found.slice(0, MOST_LISTED).map((prediction) => {
        const { index, label } = prediction;
        const name = make("span", { textContent: label, translate: false });
        const share = make("span", { className: "number" }, probabilityOf(prediction));
        const ariaPressed = String(index === chosen);
        const face = makeButton(() => pickClass(index), { ariaPressed }, name, share);
        return make("li", {}, face);
      }),
    );
    const values = { count: found.length };
    setText(find(".found"), wanted ? translate("{count} class found|{count} classes found", values) : "");
  }

  panel.addEventListener("toggle", fillList);
  search.addEventListener("input", fillList);
  card.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") panel.open = false;
  });

  /** Shows a result, or empty rows for null; `whole` is the same result with no patch rubbed out. */
  function show(result, whole) {
    predictions = result ? result.predictions : [];
    const isWhole = !result || result.dropped.length === whole.dropped.length;
    rows.forEach((row, i) => {
      const prediction = predictions[i];
      row.item.classList.toggle("first", i === 0 && Boolean(prediction));
      row.item.style.visibility = result && !prediction ? "hidden" : ""; // a model may have fewer classes than rows
      row.face.disabled = !prediction;
      row.label.textContent = row.label.title = prediction ? prediction.label : "";
      row.number.textContent = prediction ? probabilityOf(prediction) : "";
      const share = prediction ? barOf(prediction.probability, prediction.scores) : 0;
      row.bar.style.width = share ? `max(2px, ${100 * share}%)` : "0";
      row.before.hidden = isWhole || !prediction;
      if (row.before.hidden) return;
      const before = whole.predictions.find(({ index }) => index === prediction.index);
      row.before.style.left = `${100 * barOf(before.probability, before.scores)}%`;
      row.before.title = translate("{probability} with all squares", { probability: probabilityOf(before) });
    });
    const first = predictions[0];
    const isOther = !isWhole && Boolean(first) && first.index !== whole.predictions[0].index;
    card.classList.toggle("changed", isOther);
    const note = result ? noteOf(result, whole, isWhole) : "";
    setText(find(".note"), note);
    panel.hidden = predictions.length <= constants.numClasses;
    search.setAttribute("aria-label", translate("Search the classes"));
    search.placeholder = translate("Search the classes");
    fillList();
    const spoken = () =>
      translate("Prediction: {label}, {percentage}.", { label: first.label, percentage: probabilityOf(first) });
    setText(find(".spoken-answer"), `${first ? spoken() : ""} ${plain(translate(note))}`.trim());
    if (!result) mark(null);
  }

  /** Marks the class that the heatmap is about, or none. */
  function mark(index) {
    const isOther = index !== null && predictions.slice(0, constants.numClasses).every((one) => one.index !== index);
    const target = isOther && predictions.find((one) => one.index === index);
    const summary = target
      ? translate("Shown: *{label}*, {probability}", { label: target.label, probability: probabilityOf(target) })
      : translate("All {count} classes", { count: predictions.length });
    setText(panel.firstElementChild, summary);
    panel.classList.toggle("chosen", Boolean(target));
    if (index !== chosen) {
      chosen = index;
      fillList();
    }
    rows.forEach((row, i) => {
      row.face.setAttribute("aria-pressed", String(predictions[i]?.index === index));
    });
  }

  const draw = ({ result, method, view, choices, tokens }) =>
    mark(method.classSpecific && !choices.plain && !tokens ? targetOf(result, view.label).index : null);
  return { show, draw };
}

/** A remark on a prediction; none in most cases. */
function noteOf({ predictions, note }, { predictions: [first] }, isWhole) {
  if (!predictions.length) return NO_CLASSES;
  if (isWhole) return note;
  return translate("The mark shows each bar with all squares: *{label}* at {probability}.", {
    label: first.label,
    probability: probabilityOf(first),
  });
}
