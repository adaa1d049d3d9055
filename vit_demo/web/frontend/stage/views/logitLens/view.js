// The logit lens: the prediction before the first block and after each, requested when it is opened.

import { make, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { formatProbability } from "../../format.js";

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
  const replies = new WeakMap(); // result -> the server's reply
  let current = null;

  async function load() {
    const result = current;
    if (!panel.open || !result?.predictions.length) return;
    if (!replies.has(result)) {
      const isCurrent = () => result === current && panel.open;
      const reply = await request({ kind: "logit_lens", source: result.source }, { isCurrent });
      if (!reply) return;
      if (reply.result) replies.set(result, reply); // an error is not kept: the next time is another try
      setText(panel.querySelector(".error"), reply.error ?? "");
    }
    const predictions = replies.get(result)?.result.predictions ?? [];
    list.replaceChildren(...predictions.map((prediction, block) => row(prediction, block, result)));
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

function row({ label, probability }, block, { predictions }) {
  const bar = make("i");
  bar.style.setProperty("--probability", probability);
  const item = make(
    "li",
    {},
    make("small", { textContent: block ? translate("block {block}", { block }) : english("input") }),
    make("span", { className: "label", translate: false, textContent: label, title: label }),
    make("div", { className: "track" }, bar),
    make("span", { className: "number", textContent: formatProbability(probability) }),
  );
  item.classList.toggle("agrees", label === predictions[0].label);
  return item;
}
