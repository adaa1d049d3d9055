// Large counts as people read them.

import { formatInteger, formatSignificant } from "../../shared/language.js";
import { SPACE } from "../numbers.js";

const UNITS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Three significant digits and a unit: 5.72 M. Below 10,000 all digits. */
export function formatCount(value) {
  if (value < 10_000) return formatInteger(value);
  const [size, unit] = UNITS.find(([size]) => value >= size * 0.9995);
  return `${formatSignificant(value / size, 3)}${SPACE}${unit}`;
}

/** Bytes in kB, MB or GB. */
export const formatBytes = (value) => (value < 10_000 ? `${formatInteger(value)}${SPACE}B` : `${formatCount(value)}B`);

export const formatShape = (shape) => `[${shape.join(", ")}]`;
