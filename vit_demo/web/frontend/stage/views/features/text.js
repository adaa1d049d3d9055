// What the features show, in words.

import { english, formatDecimals, translate } from "../../../shared/language.js";
import { blockName, formatNumber, formatProbability, queryName } from "../../format.js";

export const MODES = [
  ["similarity", english("Similarity")],
  ["pca", english("PCA colours")],
  ["segments", english("Segments")],
  ["norms", english("Norms")],
  ["classes", english("Predictions")],
];

/** A cosine: always two decimals, with a true minus sign. */
export const formatCosine = (value) => formatDecimals(value > -0.005 && value < 0 ? 0 : value, 2);

/** What one is looking at: two sentences. */
export function sentenceOf(mode, tokens, { block, k }, result) {
  const { width, outliers, count } = tokens;
  switch (mode) {
    case "similarity":
      return translate(
        "After block {block} each patch is a token, a list of *{width} numbers*. The stronger a patch’s colour, the more its token points in the direction of the outlined patch’s token: the model treats the two alike.",
        { block: block + 1, width },
      );
    case "pca":
      return english(
        "PCA: the three directions in which the tokens differ most are shown as *red*, *green* and *blue*. Patches of the same colour have similar tokens, although no label of a patch was ever given to the model.",
      );
    case "segments":
      return translate(
        "The patches are divided into *{k} groups* of similar tokens by k-means. They may follow objects, colours, or only the place in the picture: no label of a patch was ever given to the model.",
        { k },
      );
    case "norms":
      return outliers.size
        ? translate(
            "The stronger a patch’s colour, the *longer* its token (its norm). Large models turn a few patches of little content into storage for the whole picture; such outliers are outlined: *{outliers}* of {all} here.",
            { outliers: outliers.size, all: count },
          )
        : english(
            "The stronger a patch’s colour, the *longer* its token (its norm). Large models turn a few patches of little content into storage for the whole picture; such outliers are outlined: *none* here.",
          );
    default:
      return `${translate(
        "The class that the classifier head predicts from *each patch’s token alone*, as if this block were the last.",
      )} ${translate(trainedOn(result))}`;
  }
}

function trainedOn({ pool, hasClassToken }) {
  if (pool === "attention")
    return english("The head was trained on what attention pooling reads of all tokens, so read this as a tendency.");
  if (["mean", "all", "cls+mean"].includes(pool))
    return english("The head was trained on the mean of all tokens, so read this as a tendency.");
  return hasClassToken
    ? english("The head was trained on the class token, so read this as a tendency.")
    : english("The head was trained on the other tokens, so read this as a tendency.");
}

/** The caption's first line. */
export function subjectOf(mode, tokens, { block, k, query, isPair }, result) {
  const where = blockName(result, block);
  const both = isPair ? ` · ${translate("both pictures together")}` : "";
  if (mode === "similarity") {
    const name = isPair ? ` (${query.picture ? translate("right") : translate("left")})` : "";
    return `*${queryName(tokens.pictures[query.picture], query.patch)}*${name} · ${where}`;
  }
  const names = {
    pca: translate("*principal components* 1 to 3"),
    segments: translate("*{k} segments*", { k }),
    norms: translate("*length* of each token"),
    classes: translate("*prediction* of each patch"),
  };
  return `${names[mode]} · ${where}${both}`;
}

/** What the value of one patch means; `shown` is what its mode computed. */
export function readingOf(mode, tokens, token, shown) {
  if (token < 0) return english("this patch is removed");
  switch (mode) {
    case "similarity":
      return translate("cosine similarity *{value}*", { value: formatCosine(shown.values[token]) });
    case "pca":
      if (shown.kept && !shown.kept[token]) return english("background");
      return translate("components {values}", { values: componentsOf(shown, tokens.scale, token).join(" · ") });
    case "segments":
      return translate("segment *{segment}*: {count} patch|segment *{segment}*: {count} patches", {
        segment: shown.segments[token] + 1,
        count: shown.counts[shown.segments[token]],
      });
    case "norms":
      return tokens.outliers.has(token)
        ? translate("length *{length}*, an outlier", { length: formatNumber(tokens.norms[token]) })
        : translate("length *{length}*", { length: formatNumber(tokens.norms[token]) });
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
      mouse: english(
        "Hover a patch to compare it with all others. Click to pin it, use the arrow keys to move, press Esc to unpin it.",
      ),
      touch: english("Tap a patch to compare it with all others."),
    };
  }
  return {
    mouse: english("Hover a patch to read its values, or move there with the arrow keys."),
    touch: english("Tap a patch to read its values."),
  };
}
