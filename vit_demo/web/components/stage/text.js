// How the page names tokens, heads and classes.

/** Without a class token nothing stands for the whole image, so the mean of all tokens does. */
export const defaultQueryName = ({ hasClassToken }) => (hasClassToken ? "class token" : "average of all tokens");

export const placeOf = ({ columns }, patch) =>
  `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;

export const queryName = (result, query) =>
  query === null ? defaultQueryName(result) : `patch ${placeOf(result, query)}`;

export const headName = ({ numHeads }, head) => (head < 0 ? `mean of ${numHeads} heads` : `head ${head + 1}`);

/** The class that a heatmap is about: the chosen one if it is among the predictions, else the first of them. */
export const targetOf = ({ predictions }, label) => predictions.find(({ index }) => index === label) ?? predictions[0];

export const className = (result, { label }) => targetOf(result, label).label;
