// @ts-check
// How each explanation method is shown. Python's registry decides which methods there are; a method without an entry here
// is shown with general words. An entry may have:
//   label       on its button; by default the method's title
//   hasQuery    whether the map is about the patch under the pointer
//   map         (result, view) => the value of each patch, computed in the browser; else the server computes it
//   subject     (result, view) => the caption
//   sentence    (result, view) => what one is looking at; *stars* make words bold
//   reading     (result, view, patch, value) => what the value of one patch means
//   format      (value) => the value with its unit
// A view is what is shown: {block, head, direction, query, label, against}; query is a patch, or null for the class token,
// label the index of a class, and against that of the one that it is compared with, or null.

import { english, translate } from "../shared/language.js";
import {
  againstOf,
  attentionReading,
  attentionSentence,
  blockName,
  className,
  formatNumber,
  formatProbability,
  formatShare,
  headName,
  queryName,
  targetOf,
} from "./format.js";
import { attentionMap, rolloutMap } from "./result.js";

const about = (result, view, method) => translate("for *{name}* · {method}", { name: className(result, view), method });

/**
 * An entry of a method whose map is about a class: what is shown of it, the sentence and the reading. `ofScore` is the sentence
 * for a model that gives no probabilities, if it is another.
 */
const ofClass = (what, sentence, reading = evidenceReading, ofScore = sentence) => ({
  subject: (result, view) => about(result, view, translate(what, { blocks: result.numBlocks })),
  sentence: (result, view) => {
    const words = targetOf(result, view.label).scores === "none" ? ofScore : sentence;
    return translate(words, { name: className(result, view) });
  },
  reading,
});

/** Evidence for a class or against it; of two that are compared, for one of them. */
function evidenceReading(result, view, _patch, value) {
  const other = againstOf(result, view);
  const isForOther = other && value < 0;
  const about = isForOther ? { label: other.index, against: targetOf(result, view.label).index } : view;
  const values = { name: className(result, about), value: logits(Math.abs(value)) };
  return value < 0 && !other
    ? translate("evidence against *{name}*: *{value}*", values)
    : translate("evidence for *{name}*: *{value}*", values);
}

const logits = (value) => translate("{value}\u00a0logits", { value: formatNumber(value) });

const ENTRIES = {
  attention: {
    hasQuery: true,
    map: attentionMap,
    subject: (result, { block, head, direction, query }) => {
      const values = { token: queryName(result, query, block) };
      const what = direction === "to" ? translate("To the *{token}*", values) : translate("From the *{token}*", values);
      return `${what} · ${blockName(result, block)}, ${headName(result, head)} · ${translate("Attention")}`;
    },
    sentence: attentionSentence,
    reading: attentionReading,
    format: formatShare,
  },
  rollout: {
    map: rolloutMap,
    subject: (result) =>
      `*${queryName(result, null, result.numBlocks - 1)}* · ${translate("rollout through all {blocks} blocks", { blocks: result.numBlocks })}`,
    sentence: (result) =>
      translate(
        "The attention of *all {blocks} blocks*, followed from the {query} back to the picture: how much of each square could have reached the output along all paths together.",
        { blocks: result.numBlocks, query: queryName(result, null, result.numBlocks - 1) },
      ),
    reading: (_result, _view, _patch, value) =>
      translate("*{share}* of the rollout comes from this square", { share: formatShare(value) }),
    format: formatShare,
  },
  norm_attention: {
    subject: (result, { block }) =>
      `*${queryName(result, null)}* · ${translate("norm-based attention")} · ${blockName(result, block)}`,
    sentence: (result, { block }) =>
      translate(
        "What each square *adds* to the {query} in block {block}: the length of the vector that all heads together bring from it, after the output projection. A square that gets attention but has little to add gets little colour.",
        { block: block + 1, query: queryName(result, null) },
      ),
    reading: (_result, _view, _patch, value) =>
      translate("adds a vector of length *{length}*", { length: formatNumber(value) }),
  },
  relevance: ofClass(
    english("relevance through all {blocks} blocks"),
    english(
      "Which squares are evidence for *{name}*: the attention of all blocks, counted only where more of it would have raised the score of this class.",
    ),
  ),
  attnlrp: ofClass(
    english("AttnLRP through all {blocks} blocks"),
    english(
      "How much each square *contributed* to the score of *{name}*: the score is propagated back through the network, block by block.",
    ),
  ),
  libra_fullgrad: {
    ...ofClass(
      "",
      english(
        "Red squares speak for *{name}*, blue ones against it: what each square brings to the score of {name} in all blocks.",
      ),
    ),
    subject: (result, view) =>
      translate("What speaks for *{name}* · Libra FullGrad+", { name: className(result, view) }),
  },
  grad_cam: ofClass(
    english("Grad-CAM on the tokens before the last block"),
    english(
      "Which squares are evidence for *{name}*: the tokens before the last block, each channel weighted by how much it raises the score of this class.",
    ),
  ),
  legrad: ofClass(
    english("LeGrad, block by block"),
    english(
      "Where more attention would raise the score of *{name}*, as each block’s own tokens give it: the positive gradients at the attention, over all blocks and heads.",
    ),
  ),
  naclip: ofClass(
    english("NACLIP in the last block"),
    english("How much more each square by itself speaks for *{name}* than squares do on average."),
  ),
  integrated_gradients: ofClass(
    english("gradients while the picture fades in from the mean colour"),
    english(
      "How much each square *contributed* to the score of *{name}*: the gradient of the score at its pixels, averaged while the picture fades in from the mean colour.",
    ),
  ),
  occlusion: ofClass(
    english("each square left out once"),
    english(
      "How much less likely *{name}* becomes when one square is left out: 0.7 means half as likely, 2.3 a tenth. A square without colour may still matter: often a neighbour carries the same evidence.",
    ),
    occlusionReading,
    english("How much the score of *{name}* falls when one square is left out."),
  ),
  local_surrogate: ofClass(
    english("hundreds of random subsets of the squares"),
    english(
      "How much each square adds to the score of *{name}*, estimated from hundreds of passes on a random *quarter or half* of the squares, with Libra FullGrad+ as a hint.",
    ),
    (result, view, _patch, value) =>
      translate("adds *{value}* standard deviations to the score of {name}", {
        name: className(result, view),
        value: formatNumber(value),
      }),
  ),
};

/**
 * The methods of Python's registry with how each is shown, by name.
 * `registered` is a list of Method.to_dict() of methods/registry.py, with `many_passes` and `compares_classes`.
 */
export function describeMethods(registered) {
  return Object.fromEntries(registered.map((method) => [method.name, describe(method)]));
}

function describe(method) {
  const { name, title, description, class_specific: classSpecific, floor, signed, unit } = method;
  const entry = {
    label: title,
    hasQuery: false,
    map: null,
    subject: (result, view) => (classSpecific ? about(result, view, translate(title)) : translate(title)),
    sentence: () => translate(description),
    reading: (_result, _view, _patch, value) => `*${formatNumber(value)}*`,
    format: formatNumber,
    ...ENTRIES[name],
  };
  return {
    ...method, // with its `places` in the benchmark of faithfulness, by network and over all ("")
    ...entry,
    written: unit === "logit" ? logits : entry.format, // with its unit, where the value stands alone
    classSpecific,
    comparesClasses: Boolean(method.compares_classes),
    manyPasses: method.many_passes,
    faintReason: floor.reason,
    isShare: floor.per_token,
    uses: [...method.options.flatMap(controlOf), ...(entry.hasQuery ? ["patch"] : [])],
    /** How its maps are coloured; see heatmapColours.js. */
    style: ({ numTokens }) => ({ signed, floor: floor.per_token ? floor.value / numTokens : floor.value }),
  };
}

/** Which control of the page sets an option of a method, if any. */
function controlOf({ name, kind }) {
  if (kind === "block") return ["block"];
  if (kind === "head") return ["head"];
  return name === "direction" ? ["direction"] : [];
}

/** The place of a method in the benchmark of faithfulness for a network; null for one that was not measured. */
export const placeAmong = ({ places }, network) => places?.[network] ?? null;

/** What a click on a class shows while the heatmap does not depend on the class. */
export function classMethod(methods) {
  const offered = Object.keys(methods).filter((name) => methods[name].classSpecific);
  return offered.find((name) => methods[name].recommended) ?? offered[0];
}

/** The value is a difference of log-probabilities; the two probabilities are easier to read. */
function occlusionReading(result, view, patch, value) {
  if (againstOf(result, view)) return evidenceReading(result, view, patch, value);
  const { label, probability, scores } = targetOf(result, view.label);
  const left = scores === "none" ? probability - value : Math.min(1, probability * Math.exp(-value));
  const [before, without] = [probability, left].map((each) => formatProbability(each, scores));
  if (before === without)
    return translate("without this square, {label} keeps *{probability}*", { label, probability: before });
  return translate("without this square, {label} has *{left}* instead of {probability}", {
    label,
    left: without,
    probability: before,
  });
}
