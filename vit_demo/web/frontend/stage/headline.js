// @ts-check
// The headline: the story of this very picture in one line.

import { isNew, makeButton, setText } from "../shared/dom.js";
import { currentLanguage, english, translate } from "../shared/language.js";
import { probabilityOf } from "./format.js";

const INVITATION = english("Draw a digit or choose a photo, and see how the network reads it.");

/** How the sentence begins for a photo, a drawing, and an example digit. */
const BEGINNINGS = {
  photo: english("The network cuts the photo into {squares} squares, lets them look at each other {times} times,"),
  drawing: english("The network cuts your drawing into {squares} squares, lets them look at each other {times} times,"),
  digit: english("The network cuts your {digit} into {squares} squares, lets them look at each other {times} times,"),
};

/** What it comes to while squares are rubbed out: the same answer, another one, none. */
const WITHOUT = {
  same: english(
    "Without 1 square it still says *{label}*: {probability}.|Without {count} squares it still says *{label}*: {probability}.",
  ),
  other: english(
    "Without 1 square it says *{label}*: {probability}.|Without {count} squares it says *{label}*: {probability}.",
  ),
  none: english("The network reads the photo without 1 square.|The network reads the photo without {count} squares."),
};

/** Shows the headline of a result; `whole` is the same with no square rubbed out. */
export function setHeadline(/** @type {any} */ node, /** @type {any} */ result, whole = result) {
  setText(node, result ? storyOf(result, whole) : INVITATION);
}

function storyOf(result, whole) {
  const [first] = result.predictions;
  const answer = first && { label: first.label, probability: probabilityOf(first) };
  const count = result.dropped.length; // in a notebook the whole picture may not be there to compare with
  if (count > 0) {
    const isSame = !whole.dropped.length && first?.index === whole.predictions[0]?.index;
    const kind = !first ? "none" : isSame ? "same" : "other";
    return translate(WITHOUT[kind], { ...answer, count });
  }
  const kind = !result.pixelated ? "photo" : result.exampleDigit === undefined ? "drawing" : "digit";
  const { numPatches: squares, numBlocks: times, exampleDigit: digit } = result;
  const begin = translate(BEGINNINGS[kind], { digit, squares, times });
  if (!first) return `${begin} ${translate("and has a list of numbers for each.")}`;
  const end = isUnsure(result) ? english("and guesses *{label}*: {probability}.") : english("and says *{label}*.");
  return `${begin} ${translate(end, answer)}`;
}

/** Whether the server's note says that the prediction is uncertain. */
const isUnsure = ({ note, source, predictions: [{ scores }] }) =>
  Boolean(note) && scores === "softmax" && !source.words;

/** Says in a chapter that squares of its picture are rubbed out, with the way to bring them back by `restore()`. */
export function showWithout(host, { dropped }, restore) {
  if (!isNew(host, [dropped.length, currentLanguage()])) return;
  const count = dropped.length;
  const words = translate(
    "This is about the picture without 1 square.|This is about the picture without {count} squares.",
    { count },
  );
  const undo = makeButton(restore, { className: "link" }, english("Undo all"));
  host.replaceChildren(...(count ? [words, " ", undo] : []));
}
