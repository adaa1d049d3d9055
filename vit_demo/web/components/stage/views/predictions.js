// The prediction: always five rows, so that nothing below them moves; each shows the evidence for its class.

import { make, setText } from "../../shared/dom.js";
import { formatProbability } from "../numbers.js";
import { targetOf } from "../text.js";

const ROWS = 5;
const INVITATION = "Click a class to see the evidence for it.";
const NO_CLASSES = "This model has no classifier head: it predicts no class, and no heatmap can be about one.";

export const order = 10;
export const offline = true;

export const sections = ["attention", "features"];

export const html = `
  <section class="card predictions">
    <h2>Prediction</h2>
    <ol class="bars"></ol>
    <p class="note"></p>
    <p class="timing grid"></p>
    <p class="timing pass"></p>
    <p class="visually-hidden spoken" aria-live="polite"></p>
  </section>`;

export function create(card, { pickClass }) {
  const find = (selector) => card.querySelector(selector);
  let predictions = [];
  const rows = Array.from({ length: ROWS }, (_, i) => {
    const label = make("span", { className: "label" });
    const number = make("span", { className: "number" });
    const bar = make("i");
    const face = make("button", { type: "button" }, label, number, make("span", { className: "track" }, bar));
    face.addEventListener("click", () => pickClass(predictions[i].index));
    return { item: make("li", {}, face), face, label, number, bar };
  });
  find(".bars").append(...rows.map((row) => row.item));

  /** Shows a result, or empty rows for null; `whole` is the same result with no patch dropped. */
  function show(result, whole) {
    predictions = result ? result.predictions : [];
    rows.forEach((row, i) => {
      const prediction = predictions[i];
      row.item.classList.toggle("first", i === 0 && Boolean(prediction));
      row.face.disabled = !prediction;
      row.label.textContent = row.label.title = prediction ? prediction.label : "";
      row.number.textContent = prediction ? formatProbability(prediction.probability) : "";
      row.bar.style.width = prediction ? `max(2px, ${100 * prediction.probability}%)` : "0";
    });
    const note = result ? noteOf(result, whole) : "";
    setText(find(".note"), note || (result ? INVITATION : ""));
    find(".note").classList.toggle("subdued", !note);
    setText(find(".grid"), result ? tokensOf(result) : "");
    setText(find(".pass"), result ? `${Math.max(1, Math.round(result.milliseconds))} ms on ${result.device}` : "");
    const [first] = predictions;
    const spoken = first ? `Prediction: ${first.label}, ${(100 * first.probability).toFixed(1)} percent. ` : "";
    setText(find(".spoken"), spoken + note.replaceAll("*", ""));
    if (!result) mark(null);
  }

  /** Marks the class that the heatmap is about, or none. */
  function mark(index) {
    rows.forEach((row, i) => {
      row.face.setAttribute("aria-pressed", String(predictions[i]?.index === index));
    });
  }

  const draw = ({ result, method, view }) => mark(method.classSpecific ? targetOf(result, view.label).index : null);
  return { show, draw };
}

/** The grid of this picture, which depends on the shape of a photo that keeps its aspect ratio, and its tokens. */
const tokensOf = ({ rows, columns, numTokens }) => `${rows} × ${columns} patches, ${numTokens} tokens in all`;

/** A remark on a prediction; none in most cases. */
function noteOf({ predictions, dropped, note }, whole) {
  if (!predictions.length) return NO_CLASSES;
  if (!dropped.length) return note;
  const patches = dropped.length === 1 ? "one patch" : `${dropped.length} patches`;
  if (whole.dropped.length) return `Without ${patches}.`;
  const [before] = whole.predictions;
  return `Without ${patches}. With all patches: *${before.label}* at ${formatProbability(before.probability)}.`;
}
