// Bytes and shapes as people read them.

import { formatCount, formatInteger } from "../../../shared/language.js";
import { SPACE } from "../../numbers.js";

/** Bytes in kB, MB or GB. */
export const formatBytes = (value) => (value < 10_000 ? `${formatInteger(value)}${SPACE}B` : `${formatCount(value)}B`);

export const formatShape = (shape) => `[${shape.join(", ")}]`;
