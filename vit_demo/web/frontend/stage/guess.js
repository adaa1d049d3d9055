// @ts-check
// "Guess first": before any colours are shown one marks the square that the answer needs most; then leaving out each tells.

import { english, translate } from "../shared/language.js";
import { formatProbability, placeOf } from "./format.js";
import { mapFields, servedMap } from "./onDemand.js";

const METHOD = "occlusion"; // what the answer loses without each square
const DECISIVE = 0.9; // of its probability: where each square leaves it more, none decides by itself

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

/** What can be said of guessing: "offer", "awaited", "asked" for a square, "told" or, where none decides by itself, "several", or "none". */
export function stateOf({ verb, live, result, whole, guess, found, doubt }) {
  const { predictions } = whole ?? { predictions: [] };
  const canGuess = doubt === "sure" && predictions[0]?.scores === "softmax" && predictions.length > 1;
  if (verb !== "rub" || live || !result || !canGuess || result.dropped.length || result.silent.length) return "none";
  if (!guess) return found ? "none" : "offer";
  if (!guess.losses) return "awaited";
  if (guess.patch === null) return "asked";
  const { probability } = predictions[0];
  const left = probability * Math.exp(-Math.max(...guess.losses));
  return left < Math.max(0.5, DECISIVE * probability) ? "told" : "several"; // below a half another might lead
}

/** What the answer keeps without the square that was marked, and without the one that it needs most. */
export function toldOf(of) {
  const { result, guess } = of;
  const { patch, losses } = guess;
  const most = losses.indexOf(Math.max(...losses));
  const { label, probability, scores } = result.predictions[0];
  const [before, own, left] = [0, losses[patch], losses[most]].map((loss) =>
    formatProbability(Math.min(1, probability * Math.exp(-loss)), scores),
  );
  const values = { place: placeOf(result, most), label, own, left };
  const told = /** @type {any} */ (stateOf(of) === "told" ? DECIDES : STAYS);
  if (most === patch) return translate(told.right, values);
  if (told.wrong) return translate(told.wrong, values);
  if (own === before) return translate(left === before ? STAYS.none : STAYS.same, values);
  return translate(losses[patch] > 0 ? STAYS.less : STAYS.more, values);
}

const DECIDES = {
  right: english("Right: without *{place}*, {label} keeps only {left}."),
  wrong: english("Wrong: without yours, {label} keeps {own}; without *{place}* only {left}."),
};
const STAYS = {
  right: english("Right: it needs *{place}* most, but still says {label} without it: {left}."),
  none: english(
    "Without yours it still says {label}, as surely: {own}. It needs *{place}* most, but alone that hardly counts.",
  ),
  same: english("Without yours it still says {label}, as surely: {own}. It needs *{place}* most: {left} without it."),
  less: english(
    "Without yours it still says {label}, a little less surely: {own}. It needs *{place}* most: {left} without it.",
  ),
  more: english(
    "Without yours it still says {label}, a little more surely: {own}. It needs *{place}* most: {left} without it.",
  ),
};

/** What follows then: what is asked, or what one can do next. */
export const ASKED = {
  asked: english("Guess: which square does it need most? Mark it."),
  told: english("Can you make it say something else?"),
  several: english("Rub out the few that decide."),
  awaited: "",
};
