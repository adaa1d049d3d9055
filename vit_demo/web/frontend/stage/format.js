// @ts-check
// Numbers, names and maps of attention in words.

import { cellOf } from "../shared/geometry.js";
import {
  english,
  formatCount,
  formatDecimals,
  formatInteger,
  formatSignificant,
  translate,
} from "../shared/language.js";

/** A percentage with so many decimals. */
export const percent = (value, digits = 0) => translate("{number}\u00a0%", { number: formatDecimals(value, digits) });

/** A probability: one decimal, and never a rounded 0 or 100; a number where the model gives none. */
export function formatProbability(value, scores = "softmax") {
  if (scores === "none") return formatNumber(value);
  if (value < 0.001) return `<${percent(0.1, 1)}`;
  if (value < 1 && value >= 0.9995) return `>${percent(99.9, 1)}`;
  return percent(100 * value, 1);
}

/** The probability of a prediction of a result. */
export const probabilityOf = ({ probability, scores }) => formatProbability(probability, scores);

/** Whether the network is unsure of its answer: of any that is less likely than all others together. */
export const isUnsure = ({ confident, predictions: [first] }) =>
  first?.scores === "softmax" && (!confident || first.probability < 0.5);

/** What a logit becomes; see scores.py. */
export function scoreOf(logit, scores, logsumexp) {
  if (scores === "none") return logit;
  return scores === "sigmoid" ? 1 / (1 + Math.exp(-logit)) : Math.exp(logit - logsumexp);
}

/** How much of a bar a score fills. */
export const barOf = (value, scores) => (scores === "none" ? 0 : value);

/** The result of a formula whose numbers are rounded: "≈ 12.3 %", "> 99.9 %". */
export const relation = (text) => (/^[<>]/.test(text) ? `${text[0]} ${text.slice(1)}` : `≈ ${text}`);

/** A share of attention, which is small on fine grids: two decimals below 1 %. */
export function formatShare(value) {
  if (value > 0 && value < 0.0001) return `<${percent(0.01, 2)}`;
  return percent(100 * value, value < 0.01 ? 2 : 1);
}

const SMALLEST = 1e-6;

/** A number without a unit: two or three significant digits. */
export function formatNumber(value) {
  const size = Math.abs(value);
  if (size > 0 && size < SMALLEST) return `${value < 0 ? ">−" : "<"}${formatDecimals(SMALLEST, 6)}`;
  return value === 0 ? "0" : formatSignificant(value, size < 1 ? 2 : 3);
}

/** Bytes in kB, MB or GB. */
export const formatBytes = (value) => (value < 10_000 ? `${formatInteger(value)}\u00a0B` : `${formatCount(value)}B`);

/** An area under a curve; areas are compared with each other, so all have two decimals. */
export const formatArea = (value) => formatDecimals(value, 2);

// How the page names tokens, heads and classes.

/** Whether the map of a block without a chosen patch is that of the query by which the head reads the last tokens. */
export const isPooling = ({ hasClassToken, pool, numBlocks }, block) =>
  !hasClassToken && pool === "attention" && block === numBlocks - 1;

/** Without a class token nothing stands for the whole image, so the mean of all tokens does. */
export function defaultQueryName(result, block) {
  if (isPooling(result, block)) return translate("query of attention pooling");
  return result.hasClassToken ? translate("class token") : translate("average of all tokens");
}

export function placeOf(grid, patch) {
  const [row, column] = cellOf(patch, grid).map((index) => index + 1);
  return translate("row {row}, column {column}", { row, column });
}

export const queryName = (result, query, block) =>
  query === null ? defaultQueryName(result, block) : translate("square in {place}", { place: placeOf(result, query) });

export const blockName = ({ numBlocks }, block) =>
  translate("block {block} of {blocks}", { block: block + 1, blocks: numBlocks });

export const headName = ({ numHeads }, head) =>
  head < 0
    ? translate("mean of {count} head|mean of {count} heads", { count: numHeads })
    : translate("head {head}", { head: head + 1 });

/** The class that a heatmap is about: the chosen one if the model has it, else the predicted one. */
export const targetOf = ({ predictions }, label) => predictions.find(({ index }) => index === label) ?? predictions[0];

/** The other class that it is compared with, if one is chosen. */
export function againstOf(result, { label, against = undefined }) {
  const other = result.predictions.find(({ index }) => index === against);
  return other === targetOf(result, label) ? undefined : other;
}

/** What a heatmap is evidence for: a class, or a class rather than another. */
export function className(result, view) {
  const { label: name } = targetOf(result, view.label);
  const other = againstOf(result, view);
  return other ? translate("{name} rather than {other}", { name, other: other.label }) : name;
}

// What a map of attention shows, in words.

/** The sentence under a map of attention. */
export function attentionSentence(result, { block, head, direction, query }) {
  const where =
    head < 0
      ? translate("block {block}, averaged over its {count} head|block {block}, averaged over its {count} heads", {
          block: block + 1,
          count: result.numHeads,
        })
      : translate("block {block}, head {head}", { block: block + 1, head: head + 1 });
  if (query === null && isPooling(result, block)) {
    return english(
      "What the *query of attention pooling* attends to after the last block: this model has no class token, and its output is read from the tokens in these shares.",
    );
  }
  if (query === null && !result.hasClassToken) {
    return translate(
      "How much attention each square gets in {where}, averaged over *all tokens*: this model has no class token.",
      { where },
    );
  }
  const values = { where, token: queryName(result, query, block) };
  return direction === "to"
    ? translate(
        "What attends to the *{token}* in {where}: the deeper a square’s colour, the more of its own attention.",
        values,
      )
    : translate("What the *{token}* attends to in {where}. All tokens’ shares add up to 100\u00a0%.", values);
}

/** What its value at a patch means. */
export function attentionReading(_result, view, patch, value) {
  const values = { share: formatShare(value) };
  if (view.query === patch) return translate("keeps *{share}* for itself", values);
  return view.direction === "from"
    ? translate("gets *{share}* of the attention", values)
    : translate("gives *{share}* of its attention", values);
}
