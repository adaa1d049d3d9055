// The prediction: always five rows, so that nothing below them moves; each shows the evidence for its class. All other
// classes of the model are in a list that can be searched.

import { make, makeButton, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { probabilityOf, targetOf } from "../../format.js";

const MOST_LISTED = 200; // of a list that is searched; more would only be scrolled past

const ROWS = 5;
const INVITATION = english("Choose a class to see its evidence.");
const NO_CLASSES = english("This model has no classifier head: it predicts no class, and no heatmap can be about one.");

export const order = 10;
export const offline = true;

export const sections = ["attention", "features"];

export const html = `
  <section class="card predictions">
    <h2>Prediction</h2>
    <ol class="bars"></ol>
    <details class="all-classes" hidden>
      <summary></summary>
      <input type="search" autocomplete="off" spellcheck="false">
      <p class="found" role="status"></p>
      <ul></ul>
    </details>
    <p class="note"></p>
    <p class="timing grid"></p>
    <p class="timing pass"></p>
    <p class="visually-hidden spoken" aria-live="polite"></p>
  </section>`;

export function create(card, { pickClass }) {
  const find = (selector) => card.querySelector(selector);
  let predictions = [];
  const rows = Array.from({ length: ROWS }, (_, i) => {
    const label = make("span", { className: "label", translate: false });
    const number = make("span", { className: "number" });
    const bar = make("i");
    const track = make("span", { className: "track" }, bar);
    const face = makeButton(() => pickClass(predictions[i].index), {}, label, number, track);
    return { item: make("li", {}, face), face, label, number, bar };
  });
  find(".bars").append(...rows.map((row) => row.item));
  const [panel, search, list] = [".all-classes", ".all-classes input", ".all-classes ul"].map(find);
  let chosen = null; // index of the class that the heatmap is about, or null

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
        return make(
          "li",
          {},
          makeButton(() => pickClass(index), { ariaPressed }, name, share),
        );
      }),
    );
    const values = { count: found.length };
    setText(find(".found"), wanted ? translate("{count} class found|{count} classes found", values) : "");
  }

  panel.addEventListener("toggle", fillList);
  search.addEventListener("input", fillList);

  /** Shows a result, or empty rows for null; `whole` is the same result with no patch dropped. */
  function show(result, whole) {
    predictions = result ? result.predictions : [];
    rows.forEach((row, i) => {
      const prediction = predictions[i];
      row.item.classList.toggle("first", i === 0 && Boolean(prediction));
      row.item.style.visibility = result && !prediction ? "hidden" : ""; // a model may have fewer classes than rows
      row.face.disabled = !prediction;
      row.label.textContent = row.label.title = prediction ? prediction.label : "";
      row.number.textContent = prediction ? probabilityOf(prediction) : "";
      const isShare = prediction && prediction.scores !== "none";
      row.bar.style.width = isShare ? `max(2px, ${100 * prediction.probability}%)` : "0";
    });
    const note = result ? noteOf(result, whole) : "";
    setText(find(".note"), note || (result ? INVITATION : ""));
    find(".note").classList.toggle("subdued", !note);
    panel.hidden = predictions.length <= ROWS;
    search.setAttribute("aria-label", translate("Search the classes"));
    search.placeholder = translate("Search the classes");
    fillList();
    setText(find(".grid"), result ? tokensOf(result) : "");
    setText(find(".pass"), result ? timeOf(result) : "");
    const [first] = predictions;
    const spoken = () =>
      translate("Prediction: {label}, {percentage}.", { label: first.label, percentage: probabilityOf(first) });
    setText(find(".spoken"), `${first ? spoken() : ""} ${translate(note).replaceAll("*", "")}`.trim());
    if (!result) mark(null);
  }

  /** Marks the class that the heatmap is about, or none. */
  function mark(index) {
    const isOther = index !== null && predictions.slice(0, ROWS).every((one) => one.index !== index);
    const target = isOther && predictions.find((one) => one.index === index);
    const summary = target
      ? translate("Heatmap for *{label}*, {probability}", { label: target.label, probability: probabilityOf(target) })
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

  const draw = ({ result, method, view }) => mark(method.classSpecific ? targetOf(result, view.label).index : null);
  return { show, draw };
}

/** The grid of this picture, which depends on the shape of a photo that keeps its aspect ratio, and its tokens. */
const tokensOf = ({ rows, columns, numTokens: tokens }) =>
  translate("{rows} × {columns} patches, {tokens} tokens in all", { rows, columns, tokens });

const timeOf = ({ milliseconds, device }) =>
  translate("{time} ms for this picture on {device}", {
    time: Math.max(1, Math.round(milliseconds)),
    device: translate(device),
  });

/** A remark on a prediction; none in most cases. */
function noteOf({ predictions, dropped, note }, whole) {
  if (!predictions.length) return NO_CLASSES;
  if (!dropped.length) return note;
  const without = translate("Without one patch.|Without {count} patches.", { count: dropped.length });
  if (whole.dropped.length) return without;
  const [first] = whole.predictions;
  const values = { label: first.label, probability: probabilityOf(first) };
  return `${without} ${translate("With all patches: *{label}* at {probability}.", values)}`;
}
