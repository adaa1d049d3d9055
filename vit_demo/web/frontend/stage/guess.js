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
  stage.guess = { result: stage.result, patch: null };
}

/** The guess about a result, {patch, losses}, with what the logarithm of the probability loses, once that is known; or null. */
export function guessOf(/** @type {any} */ stage, result) {
  const { guess, methods, parts } = stage;
  if (guess?.result !== result) return null;
  const { value, error } = servedMap(parts.replies, result, mapFields(methods, result, { method: METHOD }), "guess");
  guess.losses = value;
  if (error) stage.guess = null;
  return stage.guess;
}

/** Whether a square is to be marked now, as the last frame has it. */
export const isGuessing = ({ host }) => host.classList.contains("guessing");

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
  return Math.exp(-Math.max(...guess.losses)) < DECISIVE ? "asked" : "several";
}

/** Whether the square that was marked is the one that is needed most, and why. */
export function toldOf({ result, guess: { patch, losses } }) {
  const most = losses.indexOf(Math.max(...losses));
  const { label, probability, scores } = result.predictions[0];
  const left = formatProbability(probability * Math.exp(-losses[most]), scores);
  const values = { place: placeOf(result, most), label, left };
  return most === patch
    ? translate("Right: without *{place}*, {label} keeps only {left}.", values)
    : translate("Wrong: without *{place}*, {label} keeps only {left}.", values);
}

/** What follows the answer then: what is asked, or what to do instead. */
export const ASKED = {
  asked: english("Guess: which square does it need most? Mark it."),
  several: english("No single square decides. Rub out the few that do."),
  awaited: "",
  told: "",
};
