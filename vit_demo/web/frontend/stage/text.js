// How the page names tokens, heads and classes.

import { translate } from "../shared/language.js";

/** Without a class token nothing stands for the whole image, so the mean of all tokens does. */
export const defaultQueryName = ({ hasClassToken }) =>
  hasClassToken ? translate("class token") : translate("average of all tokens");

export const placeOf = ({ columns }, patch) =>
  translate("row {row}, column {column}", { row: Math.floor(patch / columns) + 1, column: (patch % columns) + 1 });

export const queryName = (result, query) =>
  query === null ? defaultQueryName(result) : translate("patch {place}", { place: placeOf(result, query) });

export const blockName = ({ numBlocks }, block) =>
  translate("block {block} of {blocks}", { block: block + 1, blocks: numBlocks });

export const headName = ({ numHeads }, head) =>
  head < 0
    ? translate("mean of {count} head|mean of {count} heads", { count: numHeads })
    : translate("head {head}", { head: head + 1 });

/** The class that a heatmap is about: the chosen one if the model has it, else the predicted one. */
export const targetOf = ({ predictions }, label) => predictions.find(({ index }) => index === label) ?? predictions[0];

export const className = (result, { label }) => targetOf(result, label).label;
