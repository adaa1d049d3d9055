// Steps 7 and 8: the prediction after each block, and from the tokens to the answer.

import { make } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { formatProbability, relation } from "../../numbers.js";
import { bracketed, moreTerms } from "./patchFigures.js";
import { readBy } from "./texts.js";
import { short } from "./vectors.js";

/** A label, a bar from 0 to 1, and words beside it. */
function barRow(name, label, share, words, isFirst) {
  const bar = make("i");
  bar.style.width = `${100 * Math.max(0, share)}%`;
  const row = make(
    "li",
    {},
    make("small", { textContent: name }),
    make("span", { className: "label", translate: false, textContent: label, title: label }),
    make("span", { className: "track" }, bar),
    make("span", { className: "number", textContent: words }),
  );
  row.classList.toggle("agrees", isFirst);
  return row;
}

/** Step 7: the most likely class after each block, or how similar the output already is to the final one. */
export function depthFigure({ facts, shared, revealed }) {
  const { depth_top: top, depth_similarity: similarity, labels } = shared;
  const values = facts.hasClasses ? top : similarity;
  const rows = [...values].map((value, depth) => {
    const name = depth ? translate("block {block}", { block: depth }) : translate("input");
    if (!facts.hasClasses) return barRow(name, translate("similarity"), value, short(value), depth === facts.blocks);
    const label = labels.depth_class[depth];
    return barRow(name, label, value, formatProbability(value), label === facts.prediction);
  });
  const list = veil(make("ol", { className: "rows" }, ...rows), revealed);
  const words = facts.hasClasses
    ? english("The classifier head was trained on the last block only, so take earlier predictions as a tendency.")
    : english("Cosine similarity of the output after each block to the final output.");
  return [list, make("p", { className: "hint", textContent: words })];
}

/** Step 8: the vector that the head reads, the largest logits and their probabilities. */
export function classesFigure({ facts, shared, revealed, paint }) {
  const { pooled, logits, logsumexp, labels } = shared;
  const vector = paint.vector(readBy(facts), pooled);
  if (!facts.hasClasses) return [vector];
  const probability = (logit) => Math.exp(logit - logsumexp[0]);
  const rows = labels.classes.map((label, i) =>
    barRow(short(logits[i]), label, probability(logits[i]), formatProbability(probability(logits[i])), i === 0),
  );
  const rest = facts.classes - Math.min(2, logits.length);
  const terms = [...logits.slice(0, 2)].map((logit) => `e^${bracketed(logit)}`);
  const more = rest > 0 ? moreTerms(rest) : "";
  const written = `${terms[0]} / (${terms.join(" + ")}${more}) ${relation(formatProbability(probability(logits[0])))}`;
  return [
    vector,
    veil(make("ol", { className: "rows logits" }, ...rows), revealed),
    veil(make("p", { className: "arithmetic", textContent: written }), revealed),
    make("p", {
      className: "hint",
      textContent: english("On the left the logit of each class, on the right its probability."),
    }),
  ];
}

/** Hides an answer until the question is answered; its place stays. */
function veil(node, revealed) {
  node.classList.toggle("veiled", !revealed);
  node.inert = !revealed;
  if (!revealed) node.setAttribute("aria-hidden", "true");
  return node;
}
