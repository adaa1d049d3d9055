// What the features show, in words.

import { formatNumber, formatProbability } from "../numbers.js";
import { placeOf } from "../text.js";

export const MODES = [
  ["similarity", "Similarity"],
  ["pca", "PCA colours"],
  ["segments", "Segments"],
  ["norms", "Norms"],
  ["classes", "Predictions"],
];

const UNSUPERVISED = "although no label of a patch was ever given to the model.";

/** A cosine: always two decimals, with a true minus sign. */
export const formatCosine = (value) =>
  value
    .toFixed(2)
    .replace(/^-(0\.00)$/, "$1")
    .replace("-", "−");

/** What one is looking at: two sentences. */
export function sentenceOf(mode, tokens, { block, k }, result) {
  const { width, outliers, count, readsPatches } = tokens;
  switch (mode) {
    case "similarity":
      return (
        `After block ${block + 1} each patch is a token, a list of *${width} numbers*. The stronger a patch’s colour, the more its ` +
        "token points in the direction of the outlined patch’s token: the model treats the two alike."
      );
    case "pca":
      return (
        "The three directions in which the tokens differ most are shown as *red*, *green* and *blue*. Patches of the same " +
        `colour have similar tokens, ${UNSUPERVISED}`
      );
    case "segments":
      return (
        `The patches are divided into *${k} groups* of similar tokens by k-means. The groups often follow the objects in ` +
        `the picture, ${UNSUPERVISED}`
      );
    case "norms":
      return (
        "Brighter patches have *longer* tokens. Large models turn a few patches of little content into storage for the " +
        `whole picture; such outliers are outlined: ${outliers.size ? `*${outliers.size}* of ${count}` : "*none*"} here.`
      );
    default:
      return (
        "The class that the classifier head predicts from *each patch’s token alone*, as if this block were the last. " +
        (readsPatches
          ? "The head was trained on the mean of all tokens, so read this as a tendency."
          : `The head was trained on the ${result.hasClassToken ? "class token" : "other tokens"}, so read this as a tendency.`)
      );
  }
}

/** The caption's first line. */
export function subjectOf(mode, tokens, { block, k, query, isPair }, result) {
  const where = `block ${block + 1} of ${result.numBlocks}`;
  const both = isPair ? " · both pictures together" : "";
  if (mode === "similarity") {
    const name = isPair ? ` (${query.picture ? "right" : "left"})` : "";
    return `*patch ${placeOf(tokens.pictures[query.picture], query.patch)}*${name} · ${where}`;
  }
  const names = {
    pca: "*principal components* 1 to 3",
    segments: `*${k} segments*`,
    norms: "*length* of each token",
    classes: "*prediction* of each patch",
  };
  return `${names[mode]} · ${where}${both}`;
}

/** What the value of one patch means; `shown` is what its mode computed. */
export function readingOf(mode, tokens, token, shown) {
  if (token < 0) return "this patch is dropped";
  switch (mode) {
    case "similarity":
      return `cosine similarity *${formatCosine(shown.values[token])}*`;
    case "pca":
      if (shown.kept && !shown.kept[token]) return "background";
      return `components ${componentsOf(shown, tokens.scale, token).join(", ")}`;
    case "segments":
      return `segment *${shown.segments[token] + 1}*: ${shown.counts[shown.segments[token]]} patches`;
    case "norms":
      return `length *${formatNumber(tokens.norms[token])}*${tokens.outliers.has(token) ? ", an outlier" : ""}`;
    default:
      return classesOf(tokens, token)
        .map(({ name, probability }, i) => `${i ? name : `*${name}*`} ${formatProbability(probability)}`)
        .join(", ");
  }
}

/** The most likely classes of one token: [{name, probability}]. */
export function classesOf({ classes, probabilities, count, names }, token) {
  const perToken = classes.length / count;
  return Array.from({ length: perToken }, (_, i) => {
    const at = token * perToken + i;
    return { name: names[classes[at]], probability: probabilities[at] };
  });
}

const componentsOf = ({ scores }, scale, token) =>
  [0, 1, 2].map((i) => `*${formatNumber(scale * scores[3 * token + i])}*`);

/** How to look around, for a mouse and for a finger. */
export function hintsOf(mode) {
  if (mode === "similarity") {
    return {
      mouse:
        "Hover a patch to compare it with all others. Click to pin it, use the arrow keys to move, press Esc to unpin it.",
      touch: "Tap a patch to compare it with all others.",
    };
  }
  return {
    mouse: "Hover a patch to read its values, or move there with the arrow keys.",
    touch: "Tap a patch to read its values.",
  };
}
