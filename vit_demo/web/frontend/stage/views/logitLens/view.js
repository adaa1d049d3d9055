// The logit lens: the prediction before the first block and after each, requested when it is opened.

import { barRow, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { createReplyCache } from "../../../shared/requests.js";
import { barOf, formatProbability } from "../../format.js";

export const order = 50;

export const html = `
  <details class="card logit-lens">
    <summary><h2>Prediction after each block (logit lens)</h2></summary>
    <p class="error"></p>
    <ol></ol>
    <p class="hint">The classifier head reads the tokens after each block as if it were the last. It was trained on the last
      block only, so take earlier predictions as a tendency.</p>
  </details>`;

export function create(panel, { request }) {
  const list = panel.querySelector("ol");
  const replies = createReplyCache(request, load);
  let current = null;

  function load() {
    if (!panel.open || !current?.predictions.length) return replies.release("logit_lens");
    const { value, error, isLoading } = replies.get(current, { kind: "logit_lens" }, ({ predictions }) => predictions);
    if (isLoading) return;
    setText(panel.querySelector(".error"), error);
    list.replaceChildren(...(value ?? []).map((prediction, block) => row(prediction, block, current)));
  }

  function show(result) {
    current = result;
    panel.hidden = Boolean(result && !result.predictions.length);
    if (!result) list.replaceChildren();
    load();
  }

  panel.addEventListener("toggle", load);
  return { show };
}

function row({ label, probability }, block, { predictions: [{ name, scores }] }) {
  const about = block ? translate("block {block}", { block }) : english("input");
  return barRow(about, label, barOf(probability, scores), formatProbability(probability, scores), label === name);
}
