// @ts-check
// What the network said while a drawing grew: a moment for each answer, and the one that a visitor leads back to.

import { inkLength, sameStart } from "../pad/strokes.js";

const COUNTS = 250; // milliseconds for which an answer must stand to be a guess
const SAME = 0.005; // of the paper's side, by which a stroke that has ended may differ from itself while it was drawn
const MOST = 900; // moments of a drawing
const NETWORK = ["preset", "patch_size"]; // of a source: what names the network that was asked

/** The moments of one drawing, in their order: {length of the ink, time in milliseconds, result}. */
export function createMoments() {
  let list = /** @type {any[]} */ ([]);
  let strokes = /** @type {any[]} */ ([]);
  let at = /** @type {number | null} */ (null);
  let isLed = false;

  /** The drawing is another now: what was said of ink that is gone is forgotten. */
  function follow(/** @type {any[]} */ next) {
    if (next === strokes) return;
    const length = inkLength(next) + SAME;
    list = sameStart(strokes, next) ? list.filter((one) => one.length <= length) : [];
    strokes = next;
    if (at !== null && at >= list.length) at = null;
  }

  /** What is said of the drawing as it is; `isLast` for the ordinary result, which takes the place of the last answer. */
  function add(result, length, { isLast = false, time = performance.now() } = {}) {
    const before = list.at(-1)?.result.source;
    if (before && NETWORK.some((each) => before[each] !== result.source[each])) list = []; // another network said that
    if (isLast && list.length && list.at(-1).length >= length - SAME) list.pop();
    list.push({ result, length, time });
    if (list.length > MOST) list.shift();
  }

  return {
    follow,
    add,
    list: () => list,
    at: () => at,
    /** The moment that is looked at; null for now. */
    scrubbed: () => (at === null ? null : list[at]),
    /** Whether a visitor has ever led back. */
    isLed: () => isLed,
    scrub(/** @type {number | null} */ next) {
      at = next === null || next >= list.length - 1 ? null : Math.max(0, next);
      isLed ||= at !== null;
    },
  };
}

/**
 * The guesses of moments, in their order: {index, label, from, to, isSure, surest}, in lengths of ink. An answer that stood
 * for less than a quarter of a second is none, unless it is the last; equal neighbours are one. One is sure if it ever was, but
 * the last is the answer, and as sure as that. `isUnsure(result)` is the page's rule of doubt.
 */
export function guessesOf(/** @type {any[]} */ moments, /** @type {(result: any) => boolean} */ isUnsure) {
  const runs = /** @type {any[]} */ ([]);
  let from = 0;
  for (const { result, length, time } of moments) {
    const [first] = result.predictions;
    if (first) {
      const isSure = !isUnsure(result);
      const last = runs.at(-1);
      const surest = { at: (from + length) / 2, probability: first.probability };
      if (last?.index === first.index) Object.assign(last, { to: length, isSure: last.isSure || isSure });
      else runs.push({ index: first.index, label: first.label, from, to: length, time, isSure, surest });
      if (runs.at(-1).surest.probability < surest.probability) runs.at(-1).surest = surest;
    }
    from = length;
  }
  const stood = runs.filter((run, i) => i === runs.length - 1 || runs[i + 1].time - run.time >= COUNTS);
  const guesses = /** @type {any[]} */ ([]);
  for (const run of stood) {
    const last = guesses.at(-1);
    if (last?.index !== run.index) {
      guesses.push({ ...run });
      continue;
    }
    Object.assign(last, { to: run.to, isSure: last.isSure || run.isSure });
    if (last.surest.probability < run.surest.probability) last.surest = run.surest;
  }
  const newest = moments.at(-1)?.result;
  if (newest?.predictions.length) guesses.at(-1).isSure = !isUnsure(newest);
  return guesses;
}
