// Numbers as people read them.

/** Keeps a number and its unit on one line. */
export const SPACE = "\u00a0";

/** A probability: one decimal, and never a rounded 0 or 100. */
export function formatProbability(value) {
  if (value < 0.001) return `<0.1${SPACE}%`;
  if (value < 1 && value >= 0.9995) return `>99.9${SPACE}%`;
  return `${(100 * value).toFixed(1)}${SPACE}%`;
}

/** A share of attention, which is small on fine grids: two decimals below 1 %. */
export function formatShare(value) {
  if (value > 0 && value < 0.0001) return `<0.01${SPACE}%`;
  return `${(100 * value).toFixed(value < 0.01 ? 2 : 1)}${SPACE}%`;
}

/** A number without a unit: two or three significant digits. */
export function formatNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 0.001 ? value.toExponential(1) : value.toPrecision(size < 1 ? 2 : 3);
  return text.replaceAll("-", "−");
}

/** An area under a curve; areas are compared with each other, so all have two decimals. */
export const formatArea = (value) => value.toFixed(2);
