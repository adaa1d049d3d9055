// The colours of heatmaps, the same as in render/colours.py: each scale as nine [red, green, blue], evenly spaced.

/** Over a photo: magma, perceptually even from dark to bright. */
export const MAGMA = [
  [20, 14, 54],
  [63, 15, 114],
  [107, 29, 129],
  [153, 45, 128],
  [199, 61, 115],
  [237, 90, 95],
  [252, 140, 99],
  [254, 193, 133],
  [252, 244, 182],
];

/** Over a photo, for values with a sign: Crameri's berlin, blue below 0, dark at 0, red above. */
export const BERLIN = [
  [135, 173, 244],
  [67, 149, 195],
  [36, 94, 122],
  [19, 45, 58],
  [24, 12, 10],
  [60, 17, 1],
  [112, 42, 20],
  [174, 96, 81],
  [234, 153, 149],
];

/** Over a drawing on paper: the warm half of magma, from light to deep. */
export const PAPER = [
  [254, 198, 138],
  [254, 174, 119],
  [253, 150, 104],
  [250, 125, 94],
  [244, 103, 92],
  [232, 83, 98],
  [214, 69, 108],
  [194, 59, 117],
  [173, 52, 124],
];

/** Over a drawing on paper, for values with a sign: ColorBrewer's RdBu, reversed. */
export const PAPER_SIGNED = [
  [32, 101, 171],
  [67, 147, 195],
  [144, 196, 221],
  [209, 229, 240],
  [247, 246, 246],
  [253, 219, 199],
  [243, 164, 129],
  [214, 96, 77],
  [177, 24, 43],
];

/** Grey of the paper and of the darkest ink. */
export const WHITE_OF_PAPER = 252;
export const BLACK_OF_INK = 40;

/** The colour at a place from 0 to 1 of a scale. */
export function colourAt(scale, place) {
  const at = Math.min(1, Math.max(0, place)) * (scale.length - 1);
  const below = Math.min(scale.length - 2, Math.floor(at));
  return scale[below].map((from, i) => from + (scale[below + 1][i] - from) * (at - below));
}
