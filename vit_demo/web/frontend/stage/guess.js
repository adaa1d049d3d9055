// @ts-check
// "Guess first": before any colours are shown one marks the square that the answer needs most; then leaving out each tells. Where
// no single square matters nobody is asked for one.

import { english, translate } from "../shared/language.js";
import { formatProbability, placeOf } from "./format.js";
import { mapFields, servedMap } from "./onDemand.js";

const METHOD = "occlusion"; // what the answer loses without each square
const DECISIVE = 0.9; // of its probability: where each square leaves it more, none matters by itself

/** Begins with the result on the stage. */
export function beginGuess(/** @type {any} */ stage) {
  stage.guess = { result: stage.result, patch: null, losses: null };
}

/** The guess about a result, {patch, losses}, with what the logarithm of the probability loses, once that is known; or null. */
export function guessOf(/** @type {any} */ stage, result) {
  const { guess, methods, parts } = stage;
  if (guess?.result !== result) return null;
  const fields = mapFields(methods, result, { method: METHOD, label: null });
  const { value, error } = servedMap(parts.replies, result, fields, "guess");
  stage.guess = error && guess.patch === null ? null : { ...guess, losses: value };
  return stage.guess;
}

/** What the answer keeps without a square. */
const leftOf = ({ predictions: [{ probability }] }, losses, patch) =>
  Math.min(0.9999, probability * Math.exp(-losses[patch]));

const mostOf = (losses) => losses.indexOf(Math.max(...losses));

/** Whether a square is to be marked now. */
export const isGuessing = ({ guess, result }) =>
  Boolean(guess?.losses) && guess.result === result && guess.patch === null && isDecisive(guess.losses);

const isDecisive = (losses) => Math.exp(-losses[mostOf(losses)]) < DECISIVE;

/** Marks a square, which stays, and returns what is shown then. */
export function markGuess(/** @type {any} */ stage, /** @type {number} */ patch) {
  stage.guess = { ...stage.guess, patch };
  return { method: METHOD, plain: false, label: null, against: null };
}

/** What can be said of guessing: "offer", "awaited", "asked" for a square, "several" where none is that important, "told" or "none". */
export function stateOf({ verb, live, result, whole, guess, found, doubt }) {
  const { predictions } = whole ?? { predictions: [] };
  const canGuess = doubt === "sure" && predictions[0]?.scores === "softmax" && predictions.length > 1;
  if (verb !== "rub" || live || !result || !canGuess || result.dropped.length || result.silent.length) return "none";
  if (!guess) return found ? "none" : "offer";
  if (!guess.losses) return "awaited";
  if (guess.patch !== null) return "told";
  return isDecisive(guess.losses) ? "asked" : "several";
}

/** Whether the square that was marked is the one that is needed most, and why. */
export function toldOf({ result, guess: { patch, losses } }) {
  const most = mostOf(losses);
  const { label, scores } = result.predictions[0];
  const [left, kept] = [most, patch].map((each) => formatProbability(leftOf(result, losses, each), scores));
  const values = { place: placeOf(result, most), marked: placeOf(result, patch), label, left, kept };
  return most === patch
    ? translate("Right: without *{place}*, {label} keeps only {left}.", values)
    : translate("Wrong: without {marked}, {label} keeps {kept}; without *{place}*, only {left}.", values);
}

/** What is asked, or what to do instead. */
export function askedOf(state, { result, guess }) {
  if (state === "asked") return english("Guess: which square does it need most? Mark it.");
  const { label, scores } = result.predictions[0];
  const left = formatProbability(leftOf(result, guess.losses, mostOf(guess.losses)), scores);
  return translate("No single square decides: {label} keeps at least {left}. Rub out the few that do.", {
    label,
    left,
  });
}
