// @ts-check
// The fewest squares by whose loss a visitor has changed the answer, by picture; this browser keeps them.

import { readSetting, storeSetting } from "../shared/pageState.js";

const KEY = "vit_demo.fewest";
const MOST = 50; // pictures, the last ones

const names = new WeakMap(); // of each result, as a drawing is long and each frame asks

/** A short name of a picture with its network and patch size. */
function nameOf(/** @type {any} */ result) {
  if (names.has(result)) return names.get(result);
  const { dropped: _, ...source } = result.source;
  let hash = 0x811c9dc5; // FNV-1a
  for (const character of JSON.stringify(source)) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  names.set(result, (hash >>> 0).toString(36));
  return names.get(result);
}

/** Pairs of a name and a number, the oldest first; what is not of that form is left out. */
function read() {
  try {
    const kept = JSON.parse(readSetting(KEY) ?? "[]");
    return /** @type {[string, number][]} */ (kept.filter(([, count]) => Number.isInteger(count) && count > 0));
  } catch {
    return [];
  }
}

/** The fewest so far for a picture, or null. */
export const bestOf = (/** @type {any} */ whole) => read().find(([name]) => name === nameOf(whole))?.[1] ?? null;

/** Keeps a number that is the fewest so far. */
export function keepBest(/** @type {any} */ whole, /** @type {number} */ count) {
  if (count >= (bestOf(whole) ?? Number.POSITIVE_INFINITY)) return;
  const others = read().filter(([name]) => name !== nameOf(whole));
  storeSetting(KEY, JSON.stringify([...others, [nameOf(whole), count]].slice(-MOST)));
}
