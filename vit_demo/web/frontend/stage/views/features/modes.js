// What a mode shows of the tokens: colours, legend and values, computed once for equal choices.

import { english } from "../../../shared/language.js";
import { heatColour } from "../../heatmapColours.js";
import { foreground, principalComponents, segmentsOf } from "./reduction.js";
import { similarities } from "./tokens.js";

const CACHE_SIZE = 50;

/** Returns `show(tokens, {mode, k, background, token})`, which computes what is shown, without its opacity. */
export function createShown() {
  const cache = new WeakMap(); // tokens -> Map

  return function show(tokens, { mode, k, background, token }) {
    const known = cache.get(tokens) ?? cache.set(tokens, new Map()).get(tokens);
    const key = { similarity: `s ${token}`, pca: `p ${background}`, segments: `k ${k}`, norms: "n", classes: "c" }[
      mode
    ];
    if (!known.has(key)) {
      if (known.size >= CACHE_SIZE) known.clear();
      known.set(key, compute(tokens, mode, k, background, token));
    }
    return known.get(key);
  };
}

/** Everything of one mode; `colours(opacity, paper)` gives the colour of every token, over a photo or paper. */
export function compute(tokens, mode, k, background, token) {
  switch (mode) {
    case "similarity": {
      const values = similarities(tokens, token);
      const range = [tokens.lowest, 1];
      return { values, range, smooth: true, colours: (...how) => heatColours(values, ...range, ...how) };
    }
    case "pca": {
      const found = components(tokens, background);
      return { ...found, smooth: !found.kept, colours: (opacity) => componentColours(found, opacity) };
    }
    case "segments": {
      const segments = segmentsOf(tokens.main, tokens.mainWidth, tokens.seeds.slice(0, k));
      const counts = Array.from({ length: Math.min(k, tokens.seeds.length) }, () => 0);
      for (const segment of segments) counts[segment]++;
      return { segments, counts, smooth: false, colours: (opacity) => segmentColours(segments, opacity) };
    }
    case "norms": {
      const range = normRange(tokens);
      return { range, smooth: true, colours: (...how) => heatColours(tokens.norms, ...range, ...how) };
    }
    default: {
      const legend = classLegend(tokens);
      return { legend, smooth: false, colours: (opacity) => classColours(tokens, legend, opacity) };
    }
  }
}

// What each mode of the features shows: a colour for every token, and its legend.

/** Even hues of OKLCH in two alternating lightnesses, so that neighbours differ for every kind of colour vision. */
export const PALETTE = [
  [89, 129, 224],
  [240, 165, 86],
  [46, 158, 82],
  [255, 148, 149],
  [0, 158, 177],
  [189, 190, 83],
  [183, 97, 177],
  [96, 194, 255],
  [207, 97, 57],
  [54, 210, 186],
  [169, 128, 0],
  [196, 164, 254],
];

const OTHER = [128, 131, 139]; // classes beyond the first few
const VEIL = [18, 19, 24, 0.8]; // a removed background
const NAMED_CLASSES = 7;
const OUTER = 0.02; // the share of tokens at either end of a component that get its extreme colour

/** Colours [red, green, blue from 0 to 255, alpha from 0 to 1] on a scale from `low` to `high`, over a photo or paper. */
export function heatColours(values, low, high, opacity, paper = false) {
  const span = Math.max(high - low, 1e-12);
  return Array.from(values, (value) => heatColour((value - low) / span, opacity, { paper }));
}

/** The lowest and the highest norm that is no outlier's. */
export function normRange({ norms, outliers }) {
  const usual = norms.filter((_, token) => !outliers.has(token));
  return [Math.min(...usual), Math.max(...usual)];
}

/** The first three components, of all tokens or of the foreground: {scores: [tokens, 3], shares, kept: or null}. */
function components({ count, main, mainWidth, shares, edges }, removeBackground) {
  if (removeBackground) {
    const kept = foreground(main, mainWidth, edges);
    return { ...principalComponents(main, mainWidth, kept), kept };
  }
  const scores = new Float32Array(3 * count);
  for (let token = 0; token < count; token++) {
    for (let i = 0; i < Math.min(3, mainWidth); i++) scores[3 * token + i] = main[token * mainWidth + i];
  }
  return { scores, shares: [0, 1, 2].map((i) => shares[i] ?? 0), kept: null };
}

/** Red, green and blue from three components, each over its own range. */
export function componentColours({ scores, kept }, opacity) {
  const tokens = Array.from({ length: scores.length / 3 }, (_, token) => token);
  const fitted = tokens.filter((token) => !kept || kept[token]);
  const ranges = [0, 1, 2].map((component) => {
    const sorted = Float32Array.from(fitted, (token) => scores[3 * token + component]).sort();
    const ends = [OUTER, 1 - OUTER].map((share) => sorted[Math.round(share * (sorted.length - 1))]);
    return { low: ends[0], span: Math.max(ends[1] - ends[0], 1e-12) };
  });
  return tokens.map((token) => {
    if (kept && !kept[token]) return VEIL;
    const colour = ranges.map(({ low, span }, i) => {
      const share = span > 1e-9 ? (scores[3 * token + i] - low) / span : 0.5;
      return 255 * Math.max(0, Math.min(1, share));
    });
    return [...colour, opacity];
  });
}

const segmentColours = (segments, opacity) =>
  Array.from(segments, (segment) => [...PALETTE[segment % PALETTE.length], opacity]);

/**
 * The classes that the patches would be given, most frequent first, each with its colour: [{index, name, count, colour}].
 * Beyond the first few all share one entry, whose index is null.
 */
export function classLegend({ classes, count, names }) {
  const perToken = classes.length / count;
  const counts = new Map();
  for (let at = 0; at < classes.length; at += perToken) counts.set(classes[at], (counts.get(classes[at]) ?? 0) + 1);
  const ranked = [...counts].sort(([a, many], [b, more]) => more - many || a - b);
  const legend = ranked.slice(0, NAMED_CLASSES).map(([index, number], place) => {
    return { index, name: names[index], count: number, colour: PALETTE[place] };
  });
  const others = ranked.slice(NAMED_CLASSES).reduce((sum, [, number]) => sum + number, 0);
  return others ? [...legend, { index: null, name: english("other"), count: others, colour: OTHER }] : legend;
}

/** The colour of each token's class; a less certain one lets more of the picture through. */
export function classColours({ classes, probabilities, count }, legend, opacity) {
  const perToken = classes.length / count;
  const colourOf = new Map(legend.map(({ index, colour }) => [index, colour]));
  return Array.from({ length: count }, (_, token) => {
    const colour = colourOf.get(classes[token * perToken]) ?? OTHER;
    return [...colour, opacity * (0.3 + 0.7 * probabilities[token * perToken])];
  });
}

/** The colours of one picture as pixels, RGBA, one a patch; a dropped patch stays clear. */
export function patchPixels({ tokenOf }, colours) {
  const pixels = new Uint8ClampedArray(4 * tokenOf.length);
  tokenOf.forEach((token, patch) => {
    if (token < 0) return;
    const [red, green, blue, alpha] = colours[token];
    pixels.set([red, green, blue, 255 * alpha], 4 * patch);
  });
  return pixels;
}
