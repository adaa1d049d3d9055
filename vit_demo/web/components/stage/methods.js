// How each explanation method is shown. Python's registry decides which methods there are; a method without an entry here
// is shown with general words. An entry may have:
//   label       on its button; by default the method's title
//   hasQuery    whether the map is about the patch under the pointer
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

const ENTRIES = {
  attention: {
    hasQuery: true,
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
    subject: (result, { block }) =>
      `*${queryName(result, null)}* · value-weighted attention · block ${block + 1} of ${result.numBlocks}`,
    sentence: (result, { block }) =>
      `What each patch *adds* to the ${defaultQueryName(result)} in block ${block + 1}: attention times the length ` +
      "of the value vector. A patch that gets attention but has little to add gets little colour.",
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
      `How much the probability of *${className(result, view)}* falls when one patch is left out. A patch without colour may still ` +
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

/** What a map costs, in words; the keys are those of the registry. */
const COSTS = {
  trace: "no extra pass",
  forward: "one extra pass",
  backward: "one extra pass and its gradient",
  "many passes": "many passes, some seconds",
};

/**
 * The methods of Python's registry with how each is shown, by name.
 * `registered` is a list of Method.to_dict() of methods/registry.py, with `many_passes`.
 */
export function describeMethods(registered) {
  return Object.fromEntries(registered.map((method) => [method.name, describe(method)]));
}

function describe(method) {
  const { name, title, description, class_specific: classSpecific, floor, signed, unit } = method;
  const about = (result, view) => (classSpecific ? `for *${className(result, view)}* · ` : "");
  const entry = {
    label: title,
    hasQuery: false,
    map: null,
    subject: (result, view) => `${about(result, view)}${title}`,
    sentence: () => description,
    reading: (_result, _view, _patch, value) => `*${formatNumber(value)}*`,
    format: formatNumber,
    ...ENTRIES[name],
  };
  return {
    ...entry,
    classSpecific,
    unit,
    manyPasses: method.many_passes,
    recommended: method.recommended,
    cost: COSTS[method.cost] ?? method.cost,
    faintReason: floor.reason,
    uses: [...method.options.flatMap(controlOf), ...(entry.hasQuery ? ["patch"] : [])],
    /** How its maps are coloured; see colours.js. */
    style: ({ numTokens }) => ({ signed, floor: floor.per_token ? floor.value / numTokens : floor.value }),
  };
}

/** Which control of the page sets an option of a method, if any. */
function controlOf({ name, kind }) {
  if (kind === "layer") return ["block"];
  if (kind === "head") return ["head"];
  return name === "direction" ? ["direction"] : [];
}

/** The names of the methods that are offered first, under plain words. */
export const recommendedMethods = (methods) => Object.keys(methods).filter((name) => methods[name].recommended);

/** What a click on a class shows while the heatmap does not depend on the class. */
export function classMethod(methods) {
  const offered = Object.keys(methods).filter((name) => methods[name].classSpecific);
  return offered.find((name) => methods[name].recommended) ?? offered[0];
}

/** The fields of a request for the map that is chosen: only those that matter to its method. */
export function mapFields(methods, result, { method, block, head, direction, pinned, label }) {
  const { uses, classSpecific } = methods[method];
  const fields = { method };
  if (uses.includes("block")) fields.block = block;
  if (uses.includes("head")) fields.head = head;
  if (uses.includes("direction")) fields.direction = direction;
  if (uses.includes("patch")) fields.query = pinned;
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
    return `Which patches look at the ${token} in ${where}. The stronger its colour, the more of a patch's attention goes there.`;
  }
  const reason = query === null ? " The class token becomes the prediction after the last block." : "";
  return `Where the ${token} looks in ${where}. The stronger its colour, the more attention a patch gets.${reason}`;
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
