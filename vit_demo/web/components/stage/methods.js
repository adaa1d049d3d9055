// How each explanation method is shown. Python's registry decides which methods there are; a method without an entry here
// is shown with general words. An entry may have:
//   label       on its button; by default the method's title
//   uses        which of block, head, direction and patch the map depends on
//   map         (result, view) => the value of each patch, computed in the browser; else the server computes it
//   subject     (result, view) => the caption
//   sentence    (result, view) => what one is looking at; *stars* make words bold
//   reading     (result, view, patch, value) => what the value of one patch means
//   format      (value) => the value with its unit
// A view is what is shown: {block, head, direction, query, label}; query is a patch, or null for the class token, and
// label the index of a class.

import { attentionMap, hasMap, rolloutMap } from "./attention.js";
import { formatNumber, formatProbability, formatShare } from "./numbers.js";
import { className, defaultQueryName, headName, placeOf, queryName, targetOf } from "./text.js";

/** What a click on a class shows while the heatmap does not depend on the class: the most faithful one (benchmarks/). */
export const CLASS_METHOD = "patch_dropping";

const ENTRIES = {
  attention: {
    uses: ["block", "head", "direction", "patch"],
    map: attentionMap,
    subject: (result, { block, head, query }) =>
      `*${queryName(result, query)}* · block ${block + 1} of ${result.numBlocks} · ${headName(result, head)}`,
    sentence: attentionSentence,
    reading: attentionReading,
    format: formatShare,
  },
  rollout: {
    map: rolloutMap,
    subject: (result) => `*${queryName(result, null)}* · rollout through all ${result.numBlocks} blocks`,
    sentence: (result) =>
      `The attention of *all ${result.numBlocks} blocks*, followed from the ${defaultQueryName(result)} back to the ` +
      "image: how much of each patch can have reached the output along all paths together.",
    reading: (_result, _view, _patch, value) => `*${formatShare(value)}* of the rollout comes from this patch`,
    format: formatShare,
  },
  value_weighted: {
    label: "Value-weighted",
    uses: ["block"],
    subject: (result, { block }) =>
      `*${queryName(result, null)}* · value-weighted attention · block ${block + 1} of ${result.numBlocks}`,
    sentence: (result, { block }) =>
      `What each patch *adds* to the ${defaultQueryName(result)} in block ${block + 1}: attention times the length ` +
      "of the value vector. A patch that gets attention but has little to add stays dark.",
    reading: (_result, _view, _patch, value) => `adds a vector of length *${formatNumber(value)}*`,
  },
  relevance: {
    subject: (result, view) => `for *${className(result, view)}* · relevance through all ${result.numBlocks} blocks`,
    sentence: (result, view) =>
      `Which patches are evidence for *${className(result, view)}*: the attention of all blocks, counted only where ` +
      "more of it would have raised the score of this class.",
    reading: (result, view, _patch, value) => `evidence for *${className(result, view)}*: *${formatNumber(value)}*`,
  },
  attnlrp: {
    subject: (result, view) => `for *${className(result, view)}* · AttnLRP through all ${result.numBlocks} blocks`,
    sentence: (result, view) =>
      `How much each patch *contributed* to the score of *${className(result, view)}*: the score is propagated back ` +
      "through the network, layer by layer.",
    reading: (result, view, _patch, value) =>
      value < 0
        ? `evidence against *${className(result, view)}*: *${formatNumber(-value)}*`
        : `contributes *${formatNumber(value)}* to the score of *${className(result, view)}*`,
  },
  occlusion: {
    subject: (result, view) => `for *${className(result, view)}* · each patch left out once`,
    sentence: (result, view) =>
      `How much the probability of *${className(result, view)}* falls when one patch is left out. A dark patch may still ` +
      "matter: often a neighbour carries the same evidence.",
    reading: occlusionReading,
  },
  patch_dropping: {
    subject: (result, view) => `for *${className(result, view)}* · hundreds of random subsets of the patches`,
    sentence: (result, view) =>
      `How much each patch adds to the score of *${className(result, view)}*, estimated from hundreds of passes on a ` +
      "random *quarter or half* of the patches, with relevance and AttnLRP as hints.",
    reading: (result, view, _patch, value) =>
      `adds *${formatNumber(value)}* standard deviations to the score of ${className(result, view)}`,
  },
};

/**
 * The methods of Python's registry with how each is shown, by name.
 * `registered` is a list of {name, title, description, class_specific, many_passes}.
 */
export function describeMethods(registered) {
  return Object.fromEntries(registered.map((method) => [method.name, describe(method)]));
}

function describe({ name, title, description, class_specific: classSpecific, many_passes: manyPasses }) {
  const about = (result, view) => (classSpecific ? `for *${className(result, view)}* · ` : "");
  return {
    label: title,
    uses: [],
    map: null,
    subject: (result, view) => `${about(result, view)}${title}`,
    sentence: () => description,
    reading: (_result, _view, _patch, value) => `*${formatNumber(value)}*`,
    format: formatNumber,
    ...ENTRIES[name],
    classSpecific,
    manyPasses,
  };
}

/** The fields of a request for the map that is chosen: only those that matter to its method. */
export function mapFields(methods, result, { method, block, head, direction, pinned, label }) {
  const { uses, classSpecific } = methods[method];
  const fields = { method };
  if (uses.includes("block")) fields.block = block;
  if (uses.includes("head")) Object.assign(fields, { head, direction, query: pinned });
  if (classSpecific) fields.label = targetOf(result, label).index;
  return fields;
}

/** Whether these fields describe the map that a method gives by default: the one that randomization is measured on. */
export const isDefaultMap = (result, { block = result.numBlocks - 1, head = -1, query = null, direction = "from" }) =>
  block === result.numBlocks - 1 && head < 0 && query === null && direction === "from";

function attentionSentence(result, { block, head, direction, query }) {
  const where = `block ${block + 1}, ${head < 0 ? `averaged over its ${result.numHeads} heads` : `head ${head + 1}`}`;
  if (query === null && !result.hasClassToken) {
    return `How much attention each patch gets in ${where}, averaged over *all tokens*: this model has no class token.`;
  }
  const token = query === null ? "*class token*" : `*patch at ${placeOf(result, query)}*`;
  if (direction === "to") {
    return `Which patches look at the ${token} in ${where}. The brighter a patch, the more of its attention goes there.`;
  }
  const reason = query === null ? " The class token becomes the prediction after the last block." : "";
  return `Where the ${token} looks in ${where}. The brighter a patch, the more attention it gets.${reason}`;
}

function attentionReading(result, view, patch, value) {
  const amount = `*${formatShare(value)}*`;
  const isItself = view.query === patch;
  if (hasMap(result, view)) return `${amount} of the attention goes to this patch`;
  if (view.direction === "from") return `gives ${amount} of its attention ${isItself ? "to itself" : "here"}`;
  return `gets ${amount} of ${isItself ? "its own attention" : "this patch’s attention"}`;
}

/** The value is a difference of log-probabilities; the two probabilities are easier to read. */
function occlusionReading(result, view, _patch, value) {
  const { label, probability } = targetOf(result, view.label);
  const left = Math.min(1, probability * Math.exp(-value));
  return `without this patch, ${label} has *${formatProbability(left)}* instead of ${formatProbability(probability)}`;
}
