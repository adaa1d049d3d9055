// @ts-check
// Steps 4 to 6: one head, all heads, and the MLP, for one token in one block.

import { barRow, make, makeOptions, track } from "../../../shared/dom.js";
import { english, formatDecimals, translate } from "../../../shared/language.js";
import { barOf, formatProbability, formatShare, percent, placeOf, relation, scoreOf } from "../../format.js";
import { heatCanvas } from "../../heatmapColours.js";
import { arithmetic, bracketed, captioned, choiceButton, hint, largest, moreTerms, short } from "./painting.js";
import { readBy } from "./texts.js";
import { lengthOf, patchOfToken } from "./tour.js";

const HEAD_MAP_OPACITY = 0.8;

/** The name of a token: its patch, or what stands before the patches. */
function tokenName(result, token) {
  const patch = patchOfToken(result, token);
  if (patch >= 0) return placeOf(result, patch);
  if (token === 0 && result.hasClassToken) return translate("class token");
  return translate("register {number}", { number: token + (result.hasClassToken ? 0 : 1) });
}

/**
 * Step 4: the tokens with the largest shares, from the product of query and key to the weighted values, once the question
 * about them is answered.
 */
export function headFigure({ result, facts, block, tour, revealed, paint, choose }) {
  const about = [headControls(facts, tour, choose), hint(subjectOf(result, tour))];
  if (!revealed) return about;
  const { query, keys, values, keyed, scores, weights, head_output: output } = block;
  const width = facts.headWidth; // of a value, and where the score is their product, of query and key
  const peak = largest(values, output);
  const rows = [...keyed].map((token, i) => {
    const value = values.subarray(i * width, (i + 1) * width);
    return shareRow(tokenName(result, token), short(scores[token]), weights[token], paint.strip(value, { peak }));
  });
  const rest = weights.length - keyed.length;
  const others = 1 - keyed.reduce((sum, token) => sum + weights[token], 0);
  if (rest > 0)
    rows.push(shareRow(translate("{count} other|{count} others", { count: rest }), "", Math.max(0, others), ""));
  rows.push(shareRow(english("weighted sum"), "", 1, paint.strip(output, { peak }), "total"));
  const score = query ? english("query · key / √d") : english("score");
  const titles = [english("token"), score, english("share"), english("value")].map((title) =>
    cell("columnheader", title),
  );
  const header = make("div", { className: "share-row", role: "row" }, ...titles);
  const ariaLabel = english("The tokens with the largest shares");
  const table = make("div", { className: "shares", role: "table", ariaLabel }, header, ...rows);
  const [first] = keyed;
  return [
    ...about,
    table,
    query
      ? named(translate("score of the first"), writtenScore(query, keys.subarray(0, width), scores[first], width))
      : hint(english("The score is query · key / √d and a number that the network adds for this pair of places.")),
    named(translate("its share"), writtenShare(scores, keyed, weights[first])),
  ];
}

const cell = (role, ...content) => make("div", { role }, ...content);

const named = (name, text) => arithmetic(make("span", {}, `${name}: `), text);

function shareRow(name, score, weight, value, className = "") {
  const number = make("span", { className: "number" }, weight === 1 ? percent(100) : formatShare(weight));
  const share = make("div", { className: "share" }, number, track(weight));
  const cells = [cell("rowheader", name), cell("cell", score), cell("cell", share), cell("cell", value)];
  return make("div", { className: `share-row ${className}`, role: "row" }, ...cells);
}

function writtenScore(query, key, score, width) {
  const indices = [...query.keys()].sort((a, b) => Math.abs(query[b] * key[b]) - Math.abs(query[a] * key[a]));
  const terms = indices.slice(0, 2).map((i) => `${short(query[i])}·${bracketed(key[i])}`);
  return `(${terms.join(" + ")}${moreTerms(width - 2)}) / √${width} ≈ ${short(score)}`;
}

function writtenShare(scores, keyed, weight) {
  const power = (value) => `e^${bracketed(value)}`;
  const terms = [...keyed].slice(0, 2).map((token) => power(scores[token]));
  return `${power(scores[keyed[0]])} / (${terms.join(" + ")}${moreTerms(scores.length - 2)}) ${relation(formatShare(weight))}`;
}

/** Which block and head, and whether the token is the chosen patch's or the class token. */
function headControls(facts, tour, choose) {
  const controls = [
    select("block", english("Block"), facts.blocks, tour.block, (block) => choose({ block })),
    select("head", english("Head"), facts.heads, tour.head, (head) => choose({ head })),
  ];
  if (facts.hasClassToken) {
    const words = english("From the class token");
    const toggle = () => choose({ fromClassToken: !tour.fromClassToken });
    controls.push(choiceButton("from", tour.fromClassToken, toggle, { className: "quiet" }, words));
  }
  return make("div", { className: "choices" }, ...controls);
}

function select(key, title, count, value, onChange) {
  const words = (_, i) => [i, translate("{value} of {all}", { value: i + 1, all: count })];
  const onchange = () => onChange(control.selectedIndex);
  const control = make("select", { onchange }, ...makeOptions(Array.from({ length: count }, words)));
  control.selectedIndex = value;
  control.dataset.key = key;
  return make("label", {}, title, control);
}

/** Step 5: what each head attends to, what they bring side by side, the sum with the token, and what all add to the answer. */
export function headsFigure({ result, facts, block, contributions, drawSum, tour, paint, choose }) {
  const { before, concatenated, attention, between, all_weights: weights } = block;
  const maps = Array.from({ length: facts.heads }, (_, head) => {
    const row = weights.subarray(head * result.numTokens, (head + 1) * result.numTokens);
    const map = Float32Array.from(result.tokenOf, (token) => (token < 0 ? 0 : row[token]));
    const ariaLabel = translate("Head {head}", { head: head + 1 });
    const style = `background: url("${result.pictureUrl}") 0 0 / 100% 100%; aspect-ratio: ${result.size.join(" / ")}`;
    const canvas = heatCanvas({ map, opacity: HEAD_MAP_OPACITY }, result);
    const onChoose = () => choose({ head });
    const properties = { className: "head-map", style, ariaLabel };
    const button = choiceButton(`head ${head}`, head === tour.head, onChoose, properties, canvas);
    return captioned(button, translate("head {head}", { head: head + 1 }));
  });
  return [
    make("div", { className: "head-maps" }, ...maps),
    paint.vector(translate("from all heads"), concatenated, { parts: facts.heads }),
    ...(attention
      ? paint.sum(
          [translate("token"), before],
          [`+ ${facts.mixesHeads ? translate("mixed") : translate("as they are")}`, attention],
          [`= ${translate("new token")}`, between],
        )
      : [hint(english("What attention adds cannot be told apart in this network."))]),
    hint(subjectOf(result, tour)),
    ...(drawSum?.({ facts, contributions, tour, choose }) ?? []),
  ];
}

/** Step 6: the hidden numbers of the MLP, and what it adds to the token. */
export function mlpFigure({ result, facts, block, tour, revealed, paint }) {
  const { between, hidden, mlp, after, attention } = block;
  const nodes = [];
  if (hidden) {
    const active = hidden.reduce((count, value) => count + (value > 0), 0);
    nodes.push(
      paint.vector(translate("inside the MLP"), hidden),
      hint(translate("{active} of these {all} numbers are above zero.", { active, all: facts.hidden })),
    );
  }
  if (!mlp) {
    const unseen = hint(english("What the MLP adds cannot be told apart in this network."));
    return [...nodes, unseen, paint.vector(translate("new token"), after), hint(subjectOf(result, tour))];
  }
  const lengths = translate("Attention adds a vector of length {attention} to this token, the MLP one of {mlp}.", {
    attention: formatDecimals(lengthOf(attention), 2),
    mlp: formatDecimals(lengthOf(mlp), 2),
  });
  return [
    ...nodes,
    ...paint.sum(
      [translate("token"), between],
      [`+ ${translate("from the MLP")}`, mlp],
      [`= ${translate("new token")}`, after],
    ),
    hint(revealed ? lengths : subjectOf(result, tour)),
  ];
}

const subjectOf = (result, { fromClassToken, patch, block }) =>
  fromClassToken
    ? translate("Token: the class token, in block {block}.", { block: block + 1 })
    : translate("Token: patch {place}, in block {block}.", { place: placeOf(result, patch), block: block + 1 });

// Steps 7 and 8: the prediction after each block, and from the tokens to the answer.

/** Step 7: the most likely class after each block, or how similar the output already is to the final one. */
export function depthFigure({ facts, shared, revealed }) {
  const { depth_top: top, depth_similarity: similarity, labels } = shared;
  const values = facts.hasClasses ? top : similarity;
  const rows = [...values].map((value, depth) => {
    const name = depth ? translate("block {block}", { block: depth }) : translate("input");
    if (!facts.hasClasses) return barRow(name, translate("similarity"), value, short(value), depth === facts.blocks);
    const label = labels.depth_class[depth];
    const probability = formatProbability(value, facts.scores);
    return barRow(name, label, barOf(value, facts.scores), probability, label === facts.prediction);
  });
  const list = covered(make("ol", { className: "rows" }, ...rows), revealed);
  const words = facts.hasClasses
    ? english("The classifier head was trained on the last block only, so take earlier predictions as a tendency.")
    : english("Cosine similarity of the output after each block to the final output.");
  return [list, hint(words)];
}

/** Step 8: the vector that the head reads, the largest logits and their probabilities. */
export function classesFigure({ facts, shared, revealed, paint }) {
  const { pooled, logits, logsumexp, labels } = shared;
  const vectors = pooled ? [paint.vector(facts.hasClasses ? readBy(facts) : english("the output"), pooled)] : [];
  if (!facts.hasClasses) return vectors;
  const { scores } = facts;
  const score = (logit) => scoreOf(logit, scores, logsumexp[0]);
  const words = (logit) => formatProbability(score(logit), scores);
  const rows = labels.classes.map((label, i) => {
    const probability = scores === "none" ? "" : words(logits[i]);
    return barRow(short(logits[i]), label, barOf(score(logits[i]), scores), probability, i === 0);
  });
  const terms = [...logits.slice(0, 2)].map((logit) => `e^${bracketed(logit)}`);
  const more = moreTerms(facts.classes - terms.length);
  const formula = {
    softmax: `${terms[0]} / (${terms.join(" + ")}${more})`,
    sigmoid: `1 / (1 + e^${bracketed(-logits[0])})`,
  };
  const list = covered(make("ol", { className: "rows logits" }, ...rows), revealed);
  if (scores === "none") return [...vectors, list];
  const written = `${formula[scores]} ${relation(words(logits[0]))}`;
  return [
    ...vectors,
    list,
    veil(arithmetic(written), revealed),
    hint(english("On the left the logit of each class, on the right its probability.")),
  ];
}

/** A veiled list, and over it why it is. */
function covered(list, revealed) {
  const cover = make("p", { className: "cover", hidden: revealed }, english("First answer the question below"));
  return make("div", { className: "covered" }, veil(list, revealed), cover);
}

/** Hides an answer until the question is answered; its place stays. */
function veil(node, revealed) {
  node.classList.toggle("veiled", !revealed);
  node.inert = !revealed;
  if (!revealed) node.setAttribute("aria-hidden", "true");
  return node;
}
