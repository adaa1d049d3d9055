// @ts-check
// What the visitor has chosen, which is the page's view and what no link holds of it, and what of it can be shown.

import { samePlace } from "../shared/geometry.js";
import { FIRST_VIEW } from "../shared/link.js";
import { againstOf } from "./format.js";
import { hasMap } from "./result.js";

/** What no link holds. */
export const firstPointing = () => ({
  hovered: null, // a patch
  verb: "draw", // what one does with the picture: "draw", "rub" patches out, "look" from the patch under the pointer
});

/** What the choices are valid for before the first result. */
export const FIRST_GUESS = { numBlocks: 1, numHeads: 4, numPatches: 0, predictions: [{ index: -1 }] };

/** Whether a choice is a step of the browser's history; sliders, numbers and the pointer change the step they are in. */
export function isStep(part, { features, tour, network }) {
  if (["section", "method", "plain", "head", "direction", "label", "against", "compare"].some((name) => name in part))
    return true;
  const differs = (name, next, before) => next && next[name] !== before?.[name];
  const ofFeatures = ["mode", "second"].some((name) => differs(name, part.features, features));
  return Boolean(ofFeatures || differs("step", part.tour, tour) || differs("start", part.network, network));
}

/** The patch at the same place of the same picture on another grid. */
const samePatch = (pinned, before, after) =>
  pinned === null || before.photo?.image !== after.photo?.image ? null : samePlace(pinned, before, after);

/** What changes in a view with the next result: choices outlive a result as long as they mean the same for the next one. */
export function changesWith(view, before, after) {
  if (before === FIRST_GUESS) return {};
  const sameNetwork = before.numBlocks === after.numBlocks && before.numHeads === after.numHeads;
  const sameGrid = before.rows === after.rows && before.columns === after.columns;
  const named = (result, label) => result.predictions.find(({ index }) => index === label)?.label;
  // Another model's class of the same number is another class.
  const others = ["label", "against"].filter((each) => named(before, view[each]) !== named(after, view[each]));
  return {
    ...(!sameNetwork && { block: null, head: -1 }),
    ...(!sameGrid && { pinned: samePatch(view.pinned, before, after), features: { ...view.features, pinned: null } }),
    ...Object.fromEntries(others.map((each) => [each, null])),
  };
}

/** The choices as they can be shown of a result: what it does not have, which may come from an address, is replaced. */
export function validFor(result, choices, methods, sections) {
  const { numBlocks, numHeads, numPatches, predictions } = result;
  const method = Object.hasOwn(methods, choices.method) ? methods[choices.method] : null;
  const isShown = method && !(method.classSpecific && !predictions.length);
  const label = predictions.some(({ index }) => index === choices.label) ? choices.label : null;
  const dropped = choices.dropped?.filter((patch) => patch < numPatches) ?? [];
  return {
    ...choices,
    section: sections.isOffered(choices.section) ? choices.section : FIRST_VIEW.section,
    method: isShown ? choices.method : FIRST_VIEW.method,
    block: Math.min(choices.block ?? Infinity, numBlocks - 1),
    head: choices.head < numHeads ? choices.head : -1,
    pinned: choices.pinned < numPatches ? choices.pinned : null,
    hovered: choices.hovered < numPatches ? choices.hovered : null,
    label,
    against: againstOf(result, { ...choices, label }) ? choices.against : null,
    dropped: dropped.length && dropped.length < numPatches ? dropped : null,
  };
}

/** What a method can show of the choices now: until a block's trace is here, its class token. */
export function viewOf(result, { comparesClasses, uses }, choices) {
  const { block, head, direction, verb, pinned, hovered, label } = choices;
  const patch = uses.includes("patch") ? (pinned ?? (verb === "look" ? hovered : null)) : null;
  const query = patch === null || result.tokenOf[patch] < 0 ? null : patch; // a dropped patch has no attention
  const view = { block, head, direction, query, label, against: comparesClasses ? choices.against : null };
  const isComplete = hasMap(result, view) || result.traces.has(block);
  return isComplete ? { ...view, isComplete } : { ...view, query: null, direction: "from", isComplete };
}
