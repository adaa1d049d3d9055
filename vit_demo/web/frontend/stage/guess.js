// @ts-check
// "Guess first": before any colours are shown one marks the square that the answer needs most; then leaving out each tells.

import { english, translate } from "../shared/language.js";
import { formatProbability, placeOf } from "./format.js";

const METHOD = "occlusion"; // what the answer loses without each square

const SLIGHT = 0.01; // loss of a logarithm, about the share of the probability that goes

/** Begins with the result on the stage. */
export function beginGuess(/** @type {any} */ stage) {
  stage.guess = { result: stage.result, patch: null };
}

/** Whether a square is to be marked now. */
export const isGuessing = ({ guess, result }) => guess?.result === result && guess?.patch === null;

/** Marks a square, which stays, and returns what is shown then. */
export function markGuess(/** @type {any} */ stage, /** @type {number} */ patch) {
  stage.guess = { ...stage.guess, patch };
  return { method: METHOD, plain: false, label: null, against: null };
}

/** The guess about a result, {patch, losses}, with what the logarithm of the probability loses, once that is known; or null. */
export function guessOf({ guess, methods }, result, drawing) {
  if (!guess || guess.result !== result) return null;
  return { patch: guess.patch, losses: drawing?.method === methods[METHOD] ? drawing.map : null };
}

/** What can be said of guessing: "offer", "asked", "told" or "none". */
export function stateOf({ verb, live, result, whole, guess, found, doubt }) {
  const { predictions } = whole ?? { predictions: [] };
  const canGuess = doubt === "sure" && predictions[0]?.scores === "softmax" && predictions.length > 1;
  if (verb !== "rub" || live || !result || !canGuess || result.dropped.length || result.silent.length) return "none";
  if (guess) return guess.patch === null ? "asked" : "told";
  return found ? "none" : "offer";
}

/** The square that is needed most, beside the one that was marked. */
export function toldOf({ result, guess: { patch, losses } }) {
  if (!losses) return translate("You marked {marked} …", { marked: placeOf(result, patch) });
  const most = losses.reduce((best, loss, i) => (loss > losses[best] ? i : best), 0);
  const { label, probability, scores } = result.predictions[0];
  const left = formatProbability(probability * Math.exp(-losses[most]), scores);
  const values = { place: placeOf(result, most), label, left };
  if (losses[most] < SLIGHT)
    return translate("It needs no single square: without any one of them {label} keeps {left}.", values);
  return most === patch
    ? translate("Right: it needs *{place}* most. Without it {label} keeps {left}.", values)
    : translate("Not this one: it needs *{place}* most. Without it {label} keeps {left}.", values);
}

export const QUESTION = english("Guess: which square does it need most? Mark it.");
