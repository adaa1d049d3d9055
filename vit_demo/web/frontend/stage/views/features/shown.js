// What a mode shows of the tokens: colours, legend and values, computed once for equal choices.

import {
  classColours,
  classLegend,
  componentColours,
  components,
  heatColours,
  normRange,
  segmentColours,
} from "./colours.js";
import { segmentsOf } from "./kmeans.js";
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
