// @ts-check
// What it comes to when squares are rubbed out: the sentence, what to try next, and the rope of the two leading answers.

import { english, formatInteger, formatSignificant, translate } from "../shared/language.js";
import { probabilityOf } from "./format.js";

const ROPE = 12; // the logarithm of the odds at the end of the rope
const LARGEST_ODDS = 1e6;
const SLIGHT = 0.005; // change of a probability that is not worth a word

/** The two leading classes of a result and their probabilities, in words. */
export function leading({ predictions: [first, second] }) {
  const values = { label: first?.label, probability: first && probabilityOf(first) };
  return { ...values, other: second?.label ?? "", less: second ? probabilityOf(second) : "" };
}

/** What it comes to while squares are rubbed out. */
const WITHOUT = {
  same: english(
    "Without 1 square it still says *{label}*: {probability}.|Without {count} squares it still says *{label}*: {probability}.",
  ),
  surer: english(
    "Without 1 square it still says *{label}*, and is surer: {before} became {probability}.|Without {count} squares it still says *{label}*, and is surer: {before} became {probability}.",
  ),
  lessSure: english(
    "Without 1 square it still says *{label}*, but is less sure: {before} became {probability}.|Without {count} squares it still says *{label}*, but is less sure: {before} became {probability}.",
  ),
  other: english(
    "Without 1 square it says *{label}*: {probability}.|Without {count} squares it says *{label}*: {probability}.",
  ),
  leads: english(
    "Without 1 square *{label}* leads: {probability}.|Without {count} squares *{label}* leads: {probability}.",
  ),
  leans: english(
    "Without 1 square it leans to *{label}*: {probability}.|Without {count} squares it leans to *{label}*: {probability}.",
  ),
  back: english(
    "Without 1 square it is *{label}* again: {probability}.|Without {count} squares it is *{label}* again: {probability}.",
  ),
  unsure: english(
    "Without 1 square it is unsure: *{label}* {probability}, *{other}* {less}.|Without {count} squares it is unsure: *{label}* {probability}, *{other}* {less}.",
  ),
  none: english("The network reads the photo without 1 square.|The network reads the photo without {count} squares."),
};
const FLIPPED = english(
  "You made it say *{label}* by rubbing out 1 square.|You made it say *{label}* by rubbing out {count} squares.",
);

export function withoutOf({ result, whole, change, doubt, isTurned, wasTurned, isTried, found }, count) {
  const values = { ...leading(result), count };
  if (isTurned && doubt === "unsure") return translate(WITHOUT.leads, values);
  if (isTurned && doubt === "sure" && isTried && !isFound({ found, result })) return translate(FLIPPED, values);
  const isSame = whole.predictions[0]?.index === result.predictions[0]?.index;
  if (wasTurned && isSame && ["sure", "leans"].includes(doubt)) return translate(WITHOUT.back, values);
  if (whole.dropped.length && change === "same") return translate(WITHOUT.other, values);
  if (change !== "same") return translate(WITHOUT[change === "unsure" ? doubt : change], values);
  const before = probabilityOf(whole.predictions[0]);
  const rise = result.predictions[0].probability - whole.predictions[0].probability;
  const kind = Math.abs(rise) < SLIGHT ? "same" : rise > 0 ? "surer" : "lessSure";
  return translate(WITHOUT[kind], { ...values, before });
}

/** What it comes to while heads are silent, and squares with them. */
const WITHOUT_HEADS = {
  same: english("Without {what} it still says *{label}*: {probability}."),
  other: english("Without {what} it says *{label}*: {probability}."),
  leans: english("Without {what} it leans to *{label}*: {probability}."),
  unsure: english("Without {what} it is unsure: *{label}* {probability}, *{other}* {less}."),
  none: english("The network reads the photo without {what}."),
};

export function withoutHeadsOf({ result, change, doubt }) {
  const heads = translate("1 head|{count} heads", { count: result.silent.length });
  const squares = translate("1 square|{count} squares", { count: result.dropped.length });
  const what = result.dropped.length ? translate("{heads} and {squares}", { heads, squares }) : heads;
  return translate(WITHOUT_HEADS[change === "unsure" ? doubt : change], { ...leading(result), what });
}

/** Whether the squares that are out are those that a search has found, or what it finds is just taking their place. */
export const isFound = ({ found, result }) => found?.isSoFar || String(found?.dropped) === String(result.dropped);

/** Whether the answer is another than with all squares, more likely than all others together, or what a search found. */
export const isTurned = (of, before) =>
  of.verb === "rub" &&
  ["sure", "leans"].includes(before) &&
  (["sure", "leans"].includes(of.doubt) || isFound(of)) &&
  of.result.predictions[0].index !== of.whole.predictions[0].index &&
  !of.whole.dropped.length &&
  !of.result.silent.length;

/** Whether the visitor has changed the answer by squares that he has chosen himself. */
export const isFlipped = (of) => of.isTurned && of.isTried && !of.live && !isFound(of);

/** What the link of somebody who has changed the answer asks. */
export const challengeOf = (/** @type {number} */ count) =>
  translate(
    "Someone needed 1 square to change its answer. You?|Someone needed {count} squares to change its answer. You?",
    { count },
  );

/** What to try after the answer was changed: with fewer squares, then into another class. */
export function goalOf({ found, best, result, whole }, count) {
  const fewest = found?.patches?.length;
  if (count > fewest) return translate("The fewest known: {fewest}.", { fewest });
  if (best !== null && count > best) return translate("Your best: {best}.", { best });
  const next = whole.predictions.slice(1).find(({ index }) => index !== result.predictions[0].index);
  if (count > 1 && !fewest) return english("Can you do it with fewer?");
  if (next && count === 1) return translate("Can you make it say {label}?", { label: next.label });
  if (!next) return count > 1 ? english("No fewer are known.") : "";
  return translate("No fewer are known. Can you make it say {label}?", { label: next.label });
}

/**
 * The two leading answers, which pull at one rope; its scale is that of the logarithm of their odds. Once the answer has turned,
 * the one before it keeps its end.
 */
export function ropeOf({ result, whole, doubt, isTurned }) {
  const [first, next] = result?.predictions ?? [];
  if (!next || first.scores !== "softmax") return { kind: "none" };
  const before = whole.predictions[0].index;
  const second = (isTurned && result.predictions.find(({ index }) => index === before)) || next;
  const isBefore = second.index === before;
  const names = [doubt === "sure" ? first.label : `${first.label}?`, second.label];
  const [left, right] = isBefore ? names.reverse() : names;
  const odds = first.probability / Math.max(second.probability, 1e-12);
  const place = Math.min(1, Math.log(odds) / ROPE) * (isBefore ? -1 : 1) || 0;
  const values = { one: first.label, other: second.label, odds: formatOdds(odds) };
  const [words, short] =
    odds > LARGEST_ODDS
      ? [translate("*{one}* is over a million times as likely as *{other}*", values), english("over a million to 1")]
      : odds < 1.05
        ? [translate("*{one}* and *{other}* are equally likely", values), english("equally likely")]
        : [translate("*{one}* is {odds} times as likely as *{other}*", values), translate("{odds} to 1", values)];
  return { kind: "rope", left, right, place, words, short };
}

/** Two significant digits, in groups of three. */
const formatOdds = (/** @type {number} */ odds) =>
  odds < 10 ? formatSignificant(odds, 2) : formatInteger(Number(odds.toPrecision(2)));
