// Steps 4 to 6: one head, all heads, and the MLP, for one token in one block.

import { make } from "../../shared/dom.js";
import { heatCanvas } from "../colours.js";
import { formatShare } from "../numbers.js";
import { placeOf } from "../text.js";
import { bracketed } from "./patchFigures.js";
import { lengthOf, patchOfToken } from "./tour.js";
import { largest, short } from "./vectors.js";

const HEAD_MAP_OPACITY = 0.8;

/** The name of a token: its patch, or what stands before the patches. */
export function tokenName(result, token) {
  const patch = patchOfToken(result, token);
  if (patch >= 0) return placeOf(result, patch);
  if (token === 0 && result.hasClassToken) return "class token";
  return `register ${token + (result.hasClassToken ? 0 : 1)}`;
}

/** Step 4: the tokens with the largest shares, from the product of query and key to the weighted values. */
export function headFigure({ result, facts, block, tour, paint, choose }) {
  const { query, keys, values, keyed, scores, weights, head_output: output } = block;
  const width = facts.headWidth;
  const peak = largest(values, output);
  const rows = [...keyed].map((token, i) => {
    const value = values.subarray(i * width, (i + 1) * width);
    return shareRow(tokenName(result, token), short(scores[token]), weights[token], paint.strip(value, { peak }));
  });
  const rest = weights.length - keyed.length;
  const others = 1 - keyed.reduce((sum, token) => sum + weights[token], 0);
  if (rest > 0) rows.push(shareRow(`${rest} others`, "", Math.max(0, others), ""));
  rows.push(shareRow("taken in all", "", 1, paint.strip(output, { peak }), "total"));
  const titles = ["token", "query · key / √d", "share", "value"].map((title) => cell("columnheader", title));
  const header = make("div", { className: "share-row", role: "row" }, ...titles);
  const table = make("div", { className: "shares", role: "table" }, header, ...rows);
  table.setAttribute("aria-label", "The tokens with the largest shares");
  const [first] = keyed;
  return [
    headControls(facts, tour, choose),
    table,
    arithmetic("score of the first", writtenScore(query, keys.subarray(0, width), scores[first], width)),
    arithmetic("its share", writtenShare(scores, keyed, weights[first])),
  ];
}

const cell = (role, ...content) => make("div", { role }, ...content);

const arithmetic = (name, text) =>
  make("p", { className: "arithmetic" }, make("span", { textContent: `${name}: ` }), text);

function shareRow(name, score, weight, value, className = "") {
  const bar = make("i");
  bar.style.width = `${100 * weight}%`;
  const number = make("span", { className: "number", textContent: weight === 1 ? "100 %" : formatShare(weight) });
  const share = make("div", { className: "share" }, number, make("span", { className: "track" }, bar));
  const cells = [cell("rowheader", name), cell("cell", score), cell("cell", share), cell("cell", value)];
  return make("div", { className: `share-row ${className}`, role: "row" }, ...cells);
}

/** The product of query and key, from its two largest terms. */
function writtenScore(query, key, score, width) {
  const indices = [...query.keys()].sort((a, b) => Math.abs(query[b] * key[b]) - Math.abs(query[a] * key[a]));
  const terms = indices.slice(0, 2).map((i) => `${short(query[i])}·${bracketed(key[i])}`);
  const more = width > 2 ? ` + … (${width - 2} more)` : "";
  return `(${terms.join(" + ")}${more}) / √${width} = ${short(score)}`;
}

function writtenShare(scores, keyed, weight) {
  const power = (value) => `e^${bracketed(value)}`;
  const terms = [...keyed].slice(0, 2).map((token) => power(scores[token]));
  const more = scores.length > 2 ? ` + … (${scores.length - 2} more)` : "";
  return `${power(scores[keyed[0]])} / (${terms.join(" + ")}${more}) = ${formatShare(weight)}`;
}

/** Which block and head, and whether the token is the chosen patch's or the class token. */
function headControls(facts, tour, choose) {
  const controls = [
    select("block", "Block", facts.blocks, tour.block, (block) => choose({ block })),
    select("head", "Head", facts.heads, tour.head, (head) => choose({ head })),
  ];
  if (facts.hasClassToken) {
    const button = make("button", { type: "button", className: "quiet", textContent: "From the class token" });
    button.dataset.key = "from";
    button.setAttribute("aria-pressed", String(tour.fromClassToken));
    button.addEventListener("click", () => choose({ fromClassToken: !tour.fromClassToken }));
    controls.push(button);
  }
  return make("div", { className: "choices" }, ...controls);
}

function select(key, title, count, value, onChange) {
  const options = Array.from({ length: count }, (_, i) =>
    make("option", { value: i, textContent: `${i + 1} of ${count}` }),
  );
  const control = make("select", {}, ...options);
  control.selectedIndex = value;
  control.dataset.key = key;
  control.addEventListener("change", () => onChange(control.selectedIndex));
  return make("label", {}, title, control);
}

/** Step 5: what each head attends to, what they bring side by side, and the sum with the token. */
export function headsFigure({ result, facts, block, tour, paint, choose }) {
  const { before, concatenated, attention, between, all_weights: weights } = block;
  const maps = Array.from({ length: facts.heads }, (_, head) => {
    const row = weights.subarray(head * result.numTokens, (head + 1) * result.numTokens);
    const map = Float32Array.from(result.tokenOf, (token) => (token < 0 ? 0 : row[token]));
    const button = make("button", { type: "button", className: "head-map" }, heatCanvas(map, result, HEAD_MAP_OPACITY));
    button.style.background = `url("${result.image}") 0 0 / 100% 100%`;
    button.style.aspectRatio = String(result.size[0] / result.size[1]);
    button.dataset.key = `head ${head}`;
    button.setAttribute("aria-label", `Head ${head + 1}`);
    button.setAttribute("aria-pressed", String(head === tour.head));
    button.addEventListener("click", () => choose({ head }));
    return make("figure", {}, button, make("figcaption", { textContent: `head ${head + 1}` }));
  });
  return [
    make("div", { className: "head-maps" }, ...maps),
    paint.vector("from all heads", concatenated, { parts: facts.heads }),
    ...residual(paint, before, attention, between, facts.mixesHeads ? "+ mixed" : "+ as they are"),
    make("p", { className: "hint", textContent: `Token: ${subjectOf(result, tour)}, in block ${tour.block + 1}.` }),
  ];
}

/** The token, what is added to it, and the sum, with the arithmetic of the number that changes most. */
function residual(paint, before, added, after, name) {
  const peak = largest(before, added, after);
  const most = added.reduce((best, v, i) => (Math.abs(v) > Math.abs(added[best]) ? i : best), 0);
  const sum = `number ${most + 1}: ${short(before[most])} + ${bracketed(added[most])} = ${short(after[most])}`;
  return [
    paint.vector("token", before, { peak, mark: most }),
    paint.vector(name, added, { peak, mark: most }),
    paint.vector("= new token", after, { peak, mark: most }),
    make("p", { className: "arithmetic", textContent: sum }),
  ];
}

/** Step 6: the hidden numbers of the MLP, and what it adds to the token. */
export function mlpFigure({ result, facts, block, tour, revealed, paint }) {
  const { between, hidden, mlp, after, attention } = block;
  const active = hidden.reduce((count, value) => count + (value > 0), 0);
  const lengths = `Length of what is added: attention ${lengthOf(attention).toFixed(2)}, MLP ${lengthOf(mlp).toFixed(2)}.`;
  return [
    paint.vector("inside the MLP", hidden),
    make("p", { className: "hint", textContent: `${active} of these ${facts.hidden} numbers are above zero.` }),
    ...residual(paint, between, mlp, after, "+ from the MLP"),
    make("p", {
      className: "hint",
      textContent: revealed ? lengths : `Token: ${subjectOf(result, tour)}, in block ${tour.block + 1}.`,
    }),
  ];
}

const subjectOf = (result, { fromClassToken, patch }) =>
  fromClassToken ? "the class token" : `patch ${placeOf(result, patch)}`;
