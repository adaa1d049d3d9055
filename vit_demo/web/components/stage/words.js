// How the page names tokens, heads and classes, and writes numbers.

/** Without a class token nothing stands for the whole picture, so the mean of all tokens does. */
const restingName = (result) => (result.class_token ? "class token" : "average of all tokens");

const patchPlace = (result, patch) =>
  `row ${Math.floor(patch / result.columns) + 1}, column ${(patch % result.columns) + 1}`;

const tokenName = (result, query) => (query === null ? restingName(result) : `patch ${patchPlace(result, query)}`);

const headName = (result, head) => (head < 0 ? `mean of ${result.heads} heads` : `head ${head + 1}`);

/** The class that a map is about: the chosen one while it is among the answers, else the first answer. */
const targetOf = (result, label) => result.top.find((answer) => answer.index === label) ?? result.top[0];

const className = (result, { label }) => targetOf(result, label).label;

/** A number whose unit has no name: three digits that count. */
function plainNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.001 ? value.toExponential(1) : value.toPrecision(size < 1 ? 2 : 3);
  return text.replaceAll("-", "−");
}

/** Areas under curves are read beside each other, so all have two decimals. */
const area = (value) => value.toFixed(2);
