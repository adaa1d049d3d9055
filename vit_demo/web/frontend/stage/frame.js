// @ts-check
// The first screen as data: what headline, answers, line, blocks and picture show, from the state and the results alone.
// Parts write what it says; whether the answer is the same, another or unsure is derived here, once.

import { constants } from "../shared/constants.js";
import { english, translate } from "../shared/language.js";
import { againstOf, barOf, isUnsure, placeOf, probabilityOf, targetOf } from "./format.js";
import { ASKED, stateOf, toldOf } from "./guess.js";
import { captionOf, PAPER, scaleOf } from "./mapWords.js";
import { guessesOf } from "./moments.js";
import {
  challengeOf,
  goalOf,
  isFlipped,
  isFound,
  isTurned,
  leading,
  ropeOf,
  withoutHeadsOf,
  withoutOf,
} from "./rubOutGame.js";

const MANY = 10; // squares without another answer, after which the search is offered in words
const FEW = 12; // classes that all have their place
const MOST_LEADING = 3; // guesses of before in the headline

/**
 * How sure an answer is, by the one rule of the page: "sure"; "leans" where it is unsure, but more likely than all others
 * together; "unsure"; "none" without classes.
 *
 * @param {any} result
 * @returns {"sure" | "leans" | "unsure" | "none"}
 */
export function doubtOf(result) {
  const [first] = result.predictions;
  if (!first) return "none";
  if (!isUnsure(result)) return "sure";
  return first.probability >= 0.5 ? "leans" : "unsure";
}

/** What a result without some squares is beside the whole picture: "same", "other", "unsure" or "none". */
export function changeOf(result, whole) {
  const doubt = doubtOf(result);
  if (doubt === "none") return "none";
  if (doubt !== "sure") return "unsure";
  return result.predictions[0].index === whole.predictions[0].index ? "same" : "other";
}

/** Whether nothing is left out of a result that was whole: no square, and no head. */
export const isWhole = (result, whole) => countOf(result, whole) <= 0 && result.silent.length <= whole.silent.length;

/** How many squares are rubbed out of a result that was whole. */
export const countOf = (result, whole) => result.dropped.length - whole.dropped.length;

/**
 * What the first screen shows. `given` is {verb, task, result, whole, live, moments, at, choices, map}: `live` says that
 * the result is one of a stroke that is still being drawn, `moments` is what was said before, `at` the one that is looked at, `isLed` whether a visitor has led back to one before;
 * `found` is what a search for the fewest squares found, with the squares that are rubbed out then; `wasTurned` whether another answer
 * led before the last act, `isTried` whether the visitor has rubbed them out by hand, `best` with how few he has changed the answer before, `beat` with how few somebody else has; `guess` the square that was marked as the one that is needed most, with what is lost without each; `isFilm` whether the film is in its place; `invites` whether the
 * drawing was the page's own; `drawing` is what is painted, with all that its caption is made from; `isOwn` whether it is the visitor's, `taught` what the network was taught first, if it was; `isLooking` whether the map can be that of a square, `isCompared` whether it can compare two classes.
 *
 * @param {any} given
 */
export function frameOf(given) {
  const { verb, result, whole } = given;
  const guesses = given.task === "digits" ? guessesOf(given.moments ?? [], isUnsure) : [];
  const of = { ...given, guesses, doubt: result && doubtOf(result), change: result && changeOf(result, whole) };
  of.isTurned = Boolean(result) && isTurned(of, result && doubtOf(whole));
  of.why = result && whyOf(of);
  return {
    headline: { was: wasOf(of), text: headlineOf(of), next: nextOf(of) },
    mechanism: result ? mechanismOf(of) : "",
    answers: result ? answersOf(of) : null,
    line: verb === "rub" ? ropeOf(of) : stripOf(of),
    doubt: of.doubt,
    ask: askOf(of),
    why: of.why?.name ?? null,
    guess: stateOf(of),
    isTurned: of.isTurned,
    isFlip: Boolean(isFlipped(of)),
    caption: result && given.drawing ? captionOf(given.drawing) : null,
    label: given.isOnPaper && verb === "draw" ? PAPER : null,
    scale: result && hasScale(given.drawing) ? scaleOf(given.drawing) : null,
  };
}

const hasScale = (drawing) => Boolean(drawing?.map) && !drawing.tokens && !drawing.choices.plain;

// The headline.

const INVITATIONS = {
  digits: english("Draw a digit, and watch the network read it."),
  photos: english("Choose a photo, and see how the network reads it."),
};

/** What it says now, by how sure it is; below that, after what it said before. */
const NOW = {
  sure: english("It says *{label}*."),
  leans: english("It leans to *{label}*: {probability}."),
  unsure: english("It is unsure: *{label}* {probability}, *{other}* {less}."),
};
const NOW_OF_PHOTO = { ...NOW, sure: english("It sees: *{label}*.") };
const NOW_AT_LAST = {
  sure: english("it says *{label}*."),
  leans: english("it leans to *{label}*: {probability}."),
  unsure: english("it is unsure: *{label}* {probability}, *{other}* {less}."),
};

/** What to draw or to show to a network that was taught `name`. */
const askedFor = ({ task }, name) =>
  task === "digits"
    ? translate("Now you: draw me “{name}”.", { name })
    : translate("Now you: show me “{name}”.", { name });

function headlineOf(of) {
  const { verb, task, result } = of;
  if (!result && of.taught) return askedFor(of, of.taught);
  if (!result) return of.isLoading ? "" : (INVITATIONS[task] ?? INVITATIONS.photos);
  const count = result.dropped.length; // in a notebook the whole picture may not be there to compare with
  if (verb === "look" && isSquareSeen(of)) return lookOf(of);
  if (result.silent.length) return withoutHeadsOf(of);
  if (count > 0) return withoutOf(of, count);
  if (["told", "several"].includes(stateOf(of))) return toldOf(of);
  if (of.why) return of.why.text;
  if (of.doubt === "none") return english("This network has no classes: it turns each square into a list of numbers.");
  return nowOf(of);
}

/** What was said while the ink was shorter, if the headline tells it. */
const toldBefore = ({ verb, guesses, at, result, why }) =>
  verb === "draw" && at === null && !result.dropped.length && !result.silent.length && !why
    ? guesses.slice(0, -1).slice(-MOST_LEADING)
    : [];

const wasOf = (of) => {
  const told = of.result ? toldBefore(of).map(({ label, isSure }) => (isSure ? label : `${label}?`)) : [];
  return told.length ? `${told.join(" … ")} …` : "";
};

function nowOf(of) {
  const now = toldBefore(of).length ? NOW_AT_LAST : of.result.pixelated ? NOW : NOW_OF_PHOTO;
  return translate(now[of.doubt], leading(of.result));
}

/** Why not a class that was chosen, or why it, where the map compares it with another: {text, name}; or null. */
function whyOf({ result, whole, live, at, isFilm, isCompared, choices }) {
  const other = isCompared && choices.label !== null && againstOf(result, choices);
  if (!other || isFilm || live || at !== null || !isWhole(result, whole)) return null;
  const one = targetOf(result, choices.label);
  const [first] = result.predictions;
  const values = {
    ...{ one: one.label, share: probabilityOf(one) },
    ...{ other: other.label, otherShare: probabilityOf(other) },
  };
  const text =
    one === first
      ? translate("*{one}* comes first: {share}; *{other}* has {otherShare}.", values)
      : translate("Why not *{one}*? It has {share}, *{other}* {otherShare}.", values);
  return { text, name: one.name };
}

/** Whether what a square looks at can be said: one is chosen, and not rubbed out. */
const isSquareSeen = ({ isLooking, choices, result }) =>
  isLooking && result.tokenOf[choices.pinned ?? choices.hovered ?? -1] >= 0;

/** What the square under the pointer looks at. */
function lookOf({ result, map, choices }) {
  const from = choices.pinned ?? choices.hovered;
  const place = capital(placeOf(result, from));
  if (!map) return translate("{place} …", { place });
  const strongest = map.reduce((best, value, i) => (value > map[best] ? i : best), 0);
  if (strongest === from) return translate("{place} looks at itself most.", { place });
  return translate("{place} looks at *{other}* most.", { place, other: placeOf(result, strongest) });
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What one can do next, after the headline, and what a search found. */
function nextOf(of) {
  const { verb, result, whole, live, invites, at, found, change, beat } = of;
  if (live || !result || at !== null) return "";
  if (verb === "look" && !of.isLooking) return english("Choose a square to read its value.");
  if (verb === "look") return isSquareSeen(of) ? "" : english("Choose a square: what does it look at?");
  if (verb === "draw" && of.taught && !of.isOwn) return askedFor(of, of.taught);
  const leadsBack = of.guesses.length > 1 && isWhole(result, whole) && of.doubt === "sure";
  if (verb === "draw" && leadsBack && of.isOwn && !of.isLed && !of.why) {
    return english("Slide back along the strip below.");
  }
  if (verb === "draw") return invites && of.task === "digits" ? english("Now you: draw a digit.") : "";
  if (verb !== "rub" || whole.predictions.length < 2 || result.silent.length) return "";
  if (found?.isSoFar) return searchOf(found);
  const guessed = stateOf(of);
  if (guessed in ASKED) return ASKED[guessed];
  const count = countOf(result, whole);
  if (found && !found.patches) {
    return translate("It says {name} in all that was tried, down to every single last square.", {
      name: whole.predictions[0].label,
    });
  }
  if (count <= 0 && beat && beat < whole.numPatches) return challengeOf(beat);
  if (count <= 0) return of.doubt === "unsure" ? "" : english("Can you make it say something else?");
  if (isFound(of) && count > 1) return found.is_minimal ? english("No fewer are known.") : english("Fewer may do.");
  if (isFlipped(of)) return goalOf(of, count);
  return count >= MANY && change === "same" ? english("Let it search?") : "";
}

/** How far a search for the fewest squares is. */
function searchOf({ patches: { length: count } }) {
  if (!count) return english("Looking for the fewest squares without which it says something else …");
  return count > 1 ? translate("The fewest so far: {count}. Looking for fewer …", { count }) : "";
}

/** Whether "What is it?" is asked below the answer: "open" where it is unsure or none, "folded", or "none". */
function askOf({ result, whole, live, at, doubt, isFilm }) {
  if (!result || isFilm || live || at !== null || !isWhole(result, whole)) return "none";
  return doubt === "sure" ? "folded" : "open";
}

// The mechanism in one sentence.

/** How the sentence begins for a photo, a drawing, and an example digit. */
const BEGINNINGS = {
  photo: english("The network cuts the photo into {squares} squares, lets them look at each other {times} times,"),
  drawing: english("The network cuts this drawing into {squares} squares, lets them look at each other {times} times,"),
  ownDrawing: english(
    "The network cuts your drawing into {squares} squares, lets them look at each other {times} times,",
  ),
  own: english("The network cuts your {digit} into {squares} squares, lets them look at each other {times} times,"),
  digit: english("The network cuts this {digit} into {squares} squares, lets them look at each other {times} times,"),
};
const BEGINNINGS_WITHOUT = {
  photo: english(
    "The network cuts the photo into {squares} squares; 1 is gone. It lets the others look at each other {times} times,|The network cuts the photo into {squares} squares; {count} are gone. It lets the others look at each other {times} times,",
  ),
  drawing: english(
    "The network cuts the drawing into {squares} squares; 1 is gone. It lets the others look at each other {times} times,|The network cuts the drawing into {squares} squares; {count} are gone. It lets the others look at each other {times} times,",
  ),
};

function mechanismOf({ result, doubt, isOwn, isTurned }) {
  const [first] = result.predictions;
  const { numPatches: squares, numBlocks: times, exampleDigit: digit, pixelated, dropped } = result;
  const values = { squares, times, digit: digit ?? first?.label, count: dropped.length };
  const owned = !isOwn ? "drawing" : doubt === "sure" ? "own" : "ownDrawing";
  const kind = !pixelated ? "photo" : digit === undefined ? owned : "digit";
  const begin = dropped.length
    ? translate(BEGINNINGS_WITHOUT[pixelated ? "drawing" : "photo"], values)
    : translate(BEGINNINGS[kind], values);
  if (!first) return `${begin} ${translate("and has a list of numbers for each.")}`;
  const end = {
    sure: english("and says *{label}*."),
    leans: english("and leans to *{label}*."),
    unsure: english("and is unsure."),
    leads: english("and *{label}* leads."), // where it has turned, which is not called unsure
  };
  return `${begin} ${translate(end[isTurned && doubt === "unsure" ? "leads" : doubt], { label: first.label })}`;
}

// The answers.

/**
 * The answers beside the picture: `rows` of {index, label, share of the bar, number, before, isFirst}, all classes in
 * their order where there are few (`isFixed`), else the first ones, and in a live result, which has no others, all that
 * come next, too. `before` is the share with all squares, or null.
 */
function answersOf({ verb, result, whole, doubt, live, isTurned }) {
  const { predictions } = result;
  const isFew = predictions.length > 0 && predictions.length <= FEW && (!live || result.early);
  const isFixed = Boolean(isFew) && predictions[0].scores === "softmax";
  const listed = isFixed
    ? [...predictions].sort((a, b) => a.index - b.index)
    : predictions.slice(0, live ? FEW : constants.numClasses);
  const rivals = new Set(verb === "rub" && isFixed ? predictions.slice(0, 2).map(({ index }) => index) : []);
  return {
    isFixed,
    isLive: Boolean(live),
    isUnsure: doubt !== "sure" && doubt !== "none" && !isTurned,
    isOther: isTurned,
    rows: listed.map((one) => {
      const before = isWhole(result, whole) ? null : whole.predictions.find(({ index }) => index === one.index);
      return {
        index: one.index,
        name: one.name,
        label: one.label,
        share: barOf(one.probability, one.scores),
        number: probabilityOf(one),
        before: before ? { share: barOf(before.probability, before.scores), number: probabilityOf(before) } : null,
        isFirst: one === predictions[0],
        isRival: !rivals.size || rivals.has(one.index) || one === predictions[0],
      };
    }),
  };
}

// The line below the picture, in which time lives.

/** What it said over the length of the drawing; while squares of it are rubbed out, that they are. */
function stripOf({ task, verb, moments = [], at, guesses, live, result, whole }) {
  const count = result && !live ? countOf(result, whole) : 0;
  if (count > 0) {
    return { kind: "none", words: translate("1 square is out|{count} squares are out", { count }) };
  }
  if (task !== "digits" || verb !== "draw") return { kind: "none" };
  const parts = moments.map(({ result, length }) => ({ length, probability: result.predictions[0]?.probability ?? 0 }));
  const shown = at === null ? moments.at(-1) : moments[at];
  const first = shown?.result.predictions[0];
  const words = first
    ? translate("{label}, {probability}", { label: first.label, probability: probabilityOf(first) })
    : english("What it says while you draw");
  return {
    kind: "strip",
    parts,
    guesses,
    at,
    live: Boolean(live),
    words,
    hint: english("What it says while you draw"),
  };
}
