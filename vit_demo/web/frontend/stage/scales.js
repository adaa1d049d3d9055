// @ts-check
// The ends of the colour scales. While one plays with a picture its maps share one scale, so that a map whose peak is 3 % does
// not look like one of 40 %.

import { peakOf, scaleEnd } from "./heatmapColours.js";
import { classTokenMap } from "./result.js";

/** What stays the same picture when patches are rubbed out, or model, patch size and fit change. */
const pictureOf = ({ source, photo }) =>
  JSON.stringify([source.digit, source.drawing, source.example, source.upload, Boolean(photo)]);

const known = new WeakMap(); // result -> {mean, head}: the ends of its attention

/** The largest attention to a patch in any block, of the mean of the heads or of any head, so that blocks can be compared. */
export function attentionEnd(whole, head) {
  if (!known.has(whole)) {
    const { numBlocks, numHeads } = whole;
    const peak = (index, h) => peakOf(classTokenMap(whole, index, h));
    const peaks = (heads) => Array.from({ length: numBlocks }, (_, block) => heads.map((h) => peak(block, h)));
    const all = Array.from({ length: numHeads }, (_, h) => h);
    known.set(whole, { mean: Math.max(...peaks([-1]).flat()), head: Math.max(...peaks(all).flat()) });
  }
  return head < 0 ? known.get(whole).mean : known.get(whole).head;
}

/** Keeps the ends of the scales of one picture. */
export function createScales() {
  let picture = "";
  // From what is measured to the largest value that was shown: of the whole picture, and since patches were rubbed out.
  const [ends, rubbed] = [new Map(), new Map()];

  /**
   * How a map is coloured: the style of its method, with the `end` of the shared scale. `whole` is the result before patches
   * were rubbed out; `choices.scale` is "own" for the scale of this map alone.
   */
  function styleOf(whole, result, method, view, map, choices) {
    const style = method.style(result);
    if (!map || choices.scale === "own") return style;
    const next = pictureOf(whole);
    if (next !== picture) ends.clear();
    if (next !== picture || result === whole) rubbed.clear();
    picture = next;
    const isAttention = method.uses.includes("patch");
    const key = `${method.label} ${isAttention && view.head >= 0}`;
    // A map under the pointer may go beyond the scale, which must not change with every move.
    const found = isAttention ? attentionEnd(whole, view.head) : scaleEnd(map, style);
    const end = Math.max(ends.get(key) ?? 0, rubbed.get(key) ?? 0, found, style.floor);
    (result === whole ? ends : rubbed).set(key, end);
    return { ...style, end };
  }

  return { styleOf };
}
