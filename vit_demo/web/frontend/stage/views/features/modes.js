// @ts-check
// What each mode of the features shows of the tokens: a colour for every token, its legend, and its words.

import { english, formatDecimals, translate, translateName } from "../../../shared/language.js";
import { blockName, formatNumber, formatProbability, formatShare, queryName } from "../../format.js";
import { heatColour } from "../../heatmapColours.js";
import { similarities } from "../../result.js";

const colourOf = (hex) => [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** Even hues of OKLCH in two alternating lightnesses, so that neighbours differ for every kind of colour vision. */
export const PALETTE = "5981e0 f0a556 2e9e52 ff9495 009eb1 bdbe53 b761b1 60c2ff cf6139 36d2ba a98000 c4a4fe"
  .split(" ")
  .map(colourOf);
const CHANNELS = ["d64541", "3ea055", "466ed6"].map(colourOf);
const OTHER = [128, 131, 139]; // classes beyond the first few
const VEIL = [18, 19, 24, 0.8]; // a removed background
const NAMED_CLASSES = 7;
const OUTER = 0.02; // the share of tokens at either end of a component that get its extreme colour

/**
 * The modes by name, each with
 * - `show(tokens, {k, background, token})`: what is shown. `colours(opacity)` of it gives the colour of every
 *   token, over a photo or paper.
 * - `legend(shown)`: {scale: [low, high]} or {chips: [{colour, name, number}]}.
 * - `sentence(tokens, {block, k}, result)`: what one is looking at, in two sentences.
 * - `subject({k})`: the caption's first words; of similarity it is the query.
 * - `reading(tokens, token, shown)`: what the value of one patch means.
 */
export const MODES = {
  similarity: {
    title: english("Similarity"),
    use: english("which squares are alike for the network"),
    show(tokens, { token }) {
      const values = similarities(tokens.unit, tokens.count, token);
      const range = [tokens.lowest, 1];
      return { values, range, colours: (...how) => heatColours(values, ...range, ...how) };
    },
    legend: ({ range }) => ({ scale: range.map(formatCosine) }),
    sentence: ({ width }, { block }) =>
      translate(
        "After block {block} each square is a token, a list of *{width} numbers*. The stronger the colour, the more a square’s token points in the direction of the outlined one’s: the network treats the two alike.",
        { block: block + 1, width },
      ),
    reading: (_tokens, token, { values }) =>
      translate("cosine similarity *{value}*", { value: formatCosine(values[token]) }),
  },
  pca: {
    title: english("PCA"),
    use: english("the three directions in which tokens differ most, as colours"),
    show({ components, foreground }, { background }) {
      const { scores, shares } = background ? foreground : components;
      return { scores, shares, colours: (opacity) => componentColours(scores, opacity) };
    },
    legend: ({ shares }) => ({
      chips: shares.map((share, i) => ({
        colour: CHANNELS[i],
        name: translate("component {number}", { number: i + 1 }),
        number: translate("{share} of variance", { share: formatShare(share) }),
      })),
    }),
    sentence: () =>
      english(
        "PCA: the three directions in which the tokens differ most are shown as *red*, *green* and *blue*. Squares of the same colour have similar tokens, although the network was never told what is in a square.",
      ),
    subject: () => translate("*principal components* 1 to 3"),
    reading({ scale }, token, { scores }) {
      const values = [...scores.subarray(3 * token, 3 * token + 3)];
      if (values.some(Number.isNaN)) return english("background");
      const written = values.map((value) => `*${formatNumber(scale * value)}*`);
      return translate("components {values}", { values: written.join(" · ") });
    },
  },
  segments: {
    title: english("Segments"),
    use: english("groups of similar tokens, by k-means"),
    show({ segments: known, count }, { k }) {
      const segments = known.subarray((k - 1) * count, k * count);
      const counts = Array.from({ length: k }, (_, i) => segments.reduce((sum, each) => sum + Number(each === i), 0));
      const colours = (opacity) => Array.from(segments, (segment) => [...PALETTE[segment], opacity]);
      return { segments, counts, colours };
    },
    legend: ({ counts }) => ({
      chips: counts.map((count, i) => ({ colour: PALETTE[i], name: `${i + 1}`, number: `${count}` })),
    }),
    sentence: (_tokens, { k }) =>
      translate(
        "The squares are divided into *{k} groups* of similar tokens by k-means. They may follow objects, colours, or only the place in the picture: the network was never told what is in a square.",
        { k },
      ),
    subject: ({ k }) => translate("*{k} segments*", { k }),
    reading: (_tokens, token, { segments, counts }) =>
      translate("segment *{segment}*: {count} square|segment *{segment}*: {count} squares", {
        segment: segments[token] + 1,
        count: counts[segments[token]],
      }),
  },
  norms: {
    title: english("Norms"),
    use: english("the length of each token"),
    show(tokens) {
      const range = normRange(tokens);
      return { range, colours: (...how) => heatColours(tokens.norms, ...range, ...how) };
    },
    legend: ({ range }) => ({ scale: range.map(formatNumber) }),
    sentence: ({ outliers, count }) =>
      outliers.size
        ? translate(
            "The stronger the colour, the *longer* a square’s token (its norm). Large networks turn a few squares of little content into storage for the whole picture; such outliers are outlined: *{outliers}* of {all} here.",
            { outliers: outliers.size, all: count },
          )
        : english(
            "The stronger the colour, the *longer* a square’s token (its norm). Large networks turn a few squares of little content into storage for the whole picture; such outliers are outlined: *none* here.",
          ),
    subject: () => translate("*length* of each token"),
    reading({ norms, outliers }, token) {
      const values = { length: formatNumber(norms[token]) };
      return outliers.has(token)
        ? translate("length *{length}*, an outlier", values)
        : translate("length *{length}*", values);
    },
  },
  classes: {
    title: english("Predictions"),
    use: english("what the network would say of each square alone"),
    show(tokens) {
      const legend = classLegend(tokens);
      return { legend, colours: (opacity) => classColours(tokens, legend, opacity) };
    },
    legend: ({ legend }) => ({
      chips: legend.map(({ colour, name, count }) => ({ colour, name: translate(name), number: `${count}` })),
    }),
    sentence: (_tokens, _choices, result) =>
      `${translate(
        "What the classifier head would say of *each square’s token alone*, as if this block were the last.",
      )} ${translate(trainedOn(result))}`,
    subject: () => translate("*prediction* of each square"),
    reading: (tokens, token, result) =>
      classesOf(tokens, token)
        .map(({ name, probability }, i) => [i ? name : `*${name}*`, probability])
        .map(([name, probability]) => `${name} ${formatProbability(probability, result.predictions?.[0]?.scores)}`)
        .join(", "),
  },
};

/** A cosine: always two decimals, with a true minus sign. */
export const formatCosine = (value) => formatDecimals(value > -0.005 && value < 0 ? 0 : value, 2);

function trainedOn({ pool, hasClassToken }) {
  if (pool === "attention")
    return english("The head was trained on what attention pooling reads of all tokens, so read this as a tendency.");
  if (["mean", "all", "cls+mean"].includes(pool))
    return english("The head was trained on the mean of all tokens, so read this as a tendency.");
  return hasClassToken
    ? english("The head was trained on the class token, so read this as a tendency.")
    : english("The head was trained on the other tokens, so read this as a tendency.");
}

export function subjectOf(mode, { pictures }, { block, k, query }, result) {
  const where = blockName(result, block);
  const isPair = pictures.length > 1;
  if (mode !== "similarity") {
    const parts = [MODES[mode].subject({ k }), where, isPair && translate("both pictures together")];
    return parts.filter(Boolean).join(" · ");
  }
  const name = isPair ? ` (${query.picture ? translate("right") : translate("left")})` : "";
  return `*${queryName(pictures[query.picture], query.patch)}*${name} · ${where}`;
}

/** What the value of one patch means; `shown` is what its mode shows. */
export const readingOf = (mode, tokens, token, shown) =>
  token < 0 ? english("rubbed out") : MODES[mode].reading(tokens, token, shown);

/** Colours [red, green, blue from 0 to 255, alpha from 0 to 1] on a scale from `low` to `high`. */
function heatColours(values, low, high, opacity) {
  const span = Math.max(high - low, 1e-12);
  return Array.from(values, (value) => heatColour((value - low) / span, opacity));
}

/** The lowest and the highest norm that is no outlier's. */
function normRange({ norms, outliers }) {
  const usual = norms.filter((_, token) => !outliers.has(token));
  return [Math.min(...usual), Math.max(...usual)];
}

/** Red, green and blue from three components, each over its own range; those of the background are NaN. */
export function componentColours(scores, opacity) {
  const ranges = [0, 1, 2].map((component) => {
    const sorted = scores.filter((value, i) => i % 3 === component && !Number.isNaN(value)).sort();
    const [low, high] = [OUTER, 1 - OUTER].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
    return { low, span: Math.max(high - low, 1e-12) };
  });
  return Array.from({ length: scores.length / 3 }, (_, token) => {
    if (Number.isNaN(scores[3 * token])) return VEIL;
    const colour = ranges.map(({ low, span }, i) => {
      const share = span > 1e-9 ? (scores[3 * token + i] - low) / span : 0.5;
      return 255 * Math.max(0, Math.min(1, share));
    });
    return [...colour, opacity];
  });
}

/**
 * The classes that the patches would be given, most frequent first, each with its colour: [{index, name, count, colour}].
 * Beyond the first few all share one entry, whose index is null.
 */
function classLegend({ classes, count, names }) {
  const perToken = classes.length / count;
  const counts = new Map();
  for (let at = 0; at < classes.length; at += perToken) counts.set(classes[at], (counts.get(classes[at]) ?? 0) + 1);
  const ranked = [...counts].sort(([a, many], [b, more]) => more - many || a - b);
  const legend = ranked.slice(0, NAMED_CLASSES).map(([index, number], place) => {
    return { index, name: translateName(names[index]), count: number, colour: PALETTE[place] };
  });
  const others = ranked.slice(NAMED_CLASSES).reduce((sum, [, number]) => sum + number, 0);
  return others ? [...legend, { index: null, name: english("other"), count: others, colour: OTHER }] : legend;
}

/** The colour of each token's class; a less certain one lets more of the picture through. */
function classColours({ classes, probabilities, count }, legend, opacity) {
  const perToken = classes.length / count;
  const colourOf = new Map(legend.map(({ index, colour }) => [index, colour]));
  return Array.from({ length: count }, (_, token) => {
    const colour = colourOf.get(classes[token * perToken]) ?? OTHER;
    return [...colour, opacity * (0.3 + 0.7 * Math.max(0, Math.min(1, probabilities[token * perToken])))];
  });
}

/** The most likely classes of one token: [{name, probability}]. */
export function classesOf({ classes, probabilities, count, names }, token) {
  const perToken = classes.length / count;
  return Array.from({ length: perToken }, (_, i) => {
    const at = token * perToken + i;
    return { name: translateName(names[classes[at]]), probability: probabilities[at] };
  });
}
