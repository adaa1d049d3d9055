// What the visitor has chosen, and what of it can be shown.

import { hasMap } from "./attention.js";
import { FIRST_SECTION } from "./sections.js";

export const firstChoices = () => ({
  section: FIRST_SECTION,
  method: "attention",
  block: 0,
  head: -1, // the mean of all heads
  direction: "from",
  opacity: 0.65,
  label: null, // the index of a class; null for the predicted one
  pinned: null, // a patch
  hovered: null,
  dropping: false, // whether a click drops a patch
});

/** Choices outlive a result as long as they mean the same for the next one. */
export function keepChoices(choices, methods, before, after) {
  const sameNetwork = before.numBlocks === after.numBlocks && before.numHeads === after.numHeads;
  const sameGrid = before.rows === after.rows && before.columns === after.columns;
  if (!sameNetwork) Object.assign(choices, { block: after.numBlocks - 1, head: -1 });
  if (!sameGrid) Object.assign(choices, { pinned: null, hovered: null });
  if (!after.predictions.some(({ index }) => index === choices.label)) choices.label = null;
  if (!after.predictions.length && methods[choices.method].classSpecific) choices.method = "attention";
}

/** What can be shown of the choices now: until a block's trace is here, its class token. */
export function viewOf(result, { block, head, direction, dropping, pinned, hovered, label }) {
  const patch = dropping ? null : (pinned ?? hovered);
  const query = patch === null || result.tokenOf[patch] < 0 ? null : patch; // a dropped patch has no attention
  const view = { block, head, direction, query, label };
  const isComplete = hasMap(result, view) || result.traces.has(block);
  return isComplete ? { ...view, isComplete } : { ...view, query: null, direction: "from", isComplete };
}
