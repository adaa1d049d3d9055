// @ts-check
// What the visitor has chosen, and what of it can be shown.

import { FIRST_VIEW, VIEW_FIELDS } from "../shared/link.js";
import { againstOf } from "./format.js";
import { hasMap } from "./result.js";

export const firstChoices = () => ({
  ...FIRST_VIEW,
  hovered: null, // a patch
  dropping: false, // whether a click drops a patch
  // Whether the map is about the patch under the pointer; else pointing reads the map. A finger must scroll, too.
  follows: globalThis.matchMedia?.("(hover: hover)").matches ?? true,
});

/** Whether a choice is a step of the browser's history; sliders, numbers and the pointer change the step they are in. */
export function isStep(part, { features, tour, network }) {
  if (["section", "method", "head", "direction", "label", "against", "compare"].some((name) => name in part))
    return true;
  const differs = (name, next, before) => next && next[name] !== before?.[name];
  const ofFeatures = ["mode", "second"].some((name) => differs(name, part.features, features));
  return Boolean(ofFeatures || differs("step", part.tour, tour) || differs("start", part.network, network));
}

/** Choices outlive a result as long as they mean the same for the next one. */
export function keepChoices(choices, before, after) {
  const sameNetwork = before.numBlocks === after.numBlocks && before.numHeads === after.numHeads;
  if (before.pixelated !== after.pixelated) choices.dropping = false; // the other tab
  const sameGrid = before.rows === after.rows && before.columns === after.columns;
  if (!sameNetwork) Object.assign(choices, { block: after.numBlocks - 1, head: -1 });
  if (!sameGrid)
    Object.assign(choices, { pinned: null, hovered: null, features: { ...choices.features, pinned: null } });
  for (const each of ["label", "against"]) {
    const named = ({ predictions }) => predictions?.find(({ index }) => index === choices[each])?.label;
    if (named(before) !== named(after)) choices[each] = null; // another model's class of the same number
  }
}

/** Replaces choices that a result does not have; they may come from an address. */
export function validChoices(choices, methods, sections, result) {
  const { numBlocks, numHeads, numPatches, predictions } = result;
  if (!sections.isOffered(choices.section)) choices.section = FIRST_VIEW.section;
  if (!(choices.block !== null && choices.block < numBlocks)) choices.block = numBlocks - 1;
  if (choices.head >= numHeads) choices.head = -1;
  if (choices.pinned >= numPatches) choices.pinned = null;
  if (choices.hovered >= numPatches) choices.hovered = null;
  if (!predictions.some(({ index }) => index === choices.label)) choices.label = null;
  if (!againstOf(result, choices)) choices.against = null;
  const method = Object.hasOwn(methods, choices.method) ? methods[choices.method] : null;
  if (!method || (method.classSpecific && !predictions.length)) choices.method = FIRST_VIEW.method;
}

/** The part of some choices that belongs to the page's state. */
export const viewIn = (choices) =>
  Object.fromEntries(VIEW_FIELDS.filter((name) => name in choices).map((name) => [name, choices[name]]));

/** What a method can show of the choices now: until a block's trace is here, its class token. */
export function viewOf(result, { comparesClasses, uses }, choices) {
  const { block, head, direction, dropping, follows, pinned, hovered, label } = choices;
  const patch = dropping || !uses.includes("patch") ? null : (pinned ?? (follows ? hovered : null));
  const query = patch === null || result.tokenOf[patch] < 0 ? null : patch; // a dropped patch has no attention
  const view = { block, head, direction, query, label, against: comparesClasses ? choices.against : null };
  const isComplete = hasMap(result, view) || result.traces.has(block);
  return isComplete ? { ...view, isComplete } : { ...view, query: null, direction: "from", isComplete };
}
