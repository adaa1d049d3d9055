// @ts-check
// The words beside the picture: what its colours are, the value under the pointer, and the colour scale; and the headline.

import { isNew, make, makeButton, setText } from "../shared/dom.js";
import { createTooltip, setExplainedText } from "../shared/glossary/glossary.js";
import { currentLanguage, english, plain, translate } from "../shared/language.js";
import { defaultQueryName, isUnsure, percent, placeOf, probabilityOf, queryName, targetOf } from "./format.js";
import { heatGradient, isFaint, peakOf, scaleEnd } from "./heatmapColours.js";
import { placeAmong } from "./methods.js";
import { isDefaultMap } from "./onDemand.js";

/** `update(drawing, entry)` describes a drawn frame (see stage.js); `entry` is that of a map which the server computes. */
export function createCaption(element, methods) {
  const find = (selector) => element.querySelector(selector);
  const [sentence, subject, value, rank] = [".sentence", ".subject", ".value", ".rank"].map(find);
  const legend = createLegend(find(".scale"), find(".legend"));
  const tooltip = createTooltip(element);
  let isAnnounced = false; // whether the next frame is read out
  let status = ""; // of a map that is being computed, as it was read out

  function update(drawing, entry, error) {
    const { result, method, choices, tokens } = drawing;
    const isOld = Boolean(!tokens && entry && !entry.value && drawing.map);
    find(".view").classList.toggle("old", isOld);
    if (isOld) setText(find(".outdated"), translate("Still shown: *{method}*", { method: translate(method.label) }));
    const words = tokens ?? (choices.plain ? wordsOfPicture(drawing) : wordsOfMap(drawing, entry));
    setExplainedText(sentence, words.sentence, tooltip);
    setText(subject, words.subject);
    const reading = error || words.reading;
    setText(value, reading);
    announce(drawing, entry, words.subject, reading);
    legend.update(drawing);
    const { preset } = result.source;
    const place = isMeasured(drawing) && !otherClass(drawing) ? placeAmong(method, preset) : null;
    const all = Object.values(methods).filter((each) => placeAmong(each, preset)).length;
    setText(rank, place ? translate("no. {place} of {all} kinds of map when tested ›", { place, all }) : "");
    const about = choices.hovered === null && reading ? `${words.subject}. ${reading}` : words.subject;
    const label = translate("The picture: {subject}. Arrow keys choose a square, Escape leaves it.", {
      subject: plain(about),
    });
    find(".picture").setAttribute("aria-label", label);
    setText(find(".headline"), storyOf(result, drawing.whole));
  }

  /** Reads out what the arrow keys point at, and what becomes of a map that takes long. */
  function announce({ result, method, view, trace, chosenMethod, choices }, entry, subjectText, words) {
    const isComputed = entry?.isSlow && entry.isLoading;
    const next =
      entry?.error || (isComputed ? translate("Computing {method}.", { method: translate(chosenMethod.label) }) : "");
    if (next !== status) announceText(next || subjectText);
    else if (isAnnounced) {
      const place = choices.hovered === null ? subjectText : queryName(result, choices.hovered);
      announceText(`${place}: ${translate(words)}.`);
    }
    status = next;
    const isLoading = method.uses.includes("patch") && !view.isComplete && !trace?.error;
    isAnnounced = isAnnounced && isLoading; // what is loading is read out again once it is there
  }

  const announceText = (text) => setText(find(".spoken"), plain(text));

  function wordsOfMap(drawing, entry) {
    const { result, method, map, choices, chosenMethod, view } = drawing;
    const faint = map && isFaint(map, method.style(result));
    const remark = faint ? ` *${translate("Nothing stands out.")}* ${translate(method.faintReason)}` : "";
    return {
      sentence: (isFirstMap(drawing) ? FIRST_SENTENCE : chosenMethod.sentence(result, view)) + remark,
      subject: method.subject(result, drawing.view) + otherClass(drawing),
      reading: choices.section === "features" ? "" : valueText(drawing, entry),
    };
  }

  function valueText({ result, method, view, map, trace, choices, chosenMethod }, entry) {
    if (entry?.error) return entry.error;
    if (entry?.isSlow && entry.isLoading) {
      const progress = entry.progress === null ? "" : ` ${percent(100 * entry.progress)}`;
      return `${translate("Computing *{method}* …", { method: translate(chosenMethod.label) })}${progress}`;
    }
    if (!map) return "";
    if (method.uses.includes("patch") && !view.isComplete) {
      const state = trace?.error
        ? translate("The attention of this patch could not be loaded.")
        : translate("The attention of this patch is loading.");
      return `${state} ${translate("Shown: {query}.", { query: defaultQueryName(result, view.block) })}`;
    }
    if (choices.hovered === null || choices.hovered === view.query) return summary(method, map, result, view);
    const place = placeOf(result, choices.hovered);
    if (result.tokenOf[choices.hovered] < 0) return `${place}: ${translate("rubbed out")}`;
    return `${place}: ${method.reading(result, view, choices.hovered, map[choices.hovered])}`;
  }

  function clear() {
    for (const node of [sentence, subject, value, rank]) setText(node, "");
    setText(find(".headline"), INVITATION);
    legend.clear();
  }

  /** Reads out the next frame: the patch and its value. */
  function announceNext() {
    isAnnounced = true;
  }

  return { update, clear, announceNext };
}

/** That the map is about another class than the predicted one, in words. */
function otherClass({ result, method, view }) {
  const [first] = result.predictions;
  const isOther = method.classSpecific && targetOf(result, view.label).index !== first.index;
  return isOther ? ` · ${translate("yet it says *{label}*", { label: first.label })}` : "";
}

/** Whether the map is the one of its method that was tested. */
const isMeasured = ({ result, method, tokens, choices, view }) =>
  !tokens && !choices.plain && (!method.uses.includes("patch") || isDefaultMap(result, view));

/** Whether the map is the one that the page opens with: what the head's token looks at in the last block. */
const isFirstMap = ({ result, choices, view }) =>
  choices.method === "attention" && isDefaultMap(result, view) && result.hasClassToken && result.pool.startsWith("cls");

const FIRST_SENTENCE = english(
  "Colour shows where the network *looks* just before it answers. Whether it *needs* a square, you find out by rubbing it out.",
);

/** What the picture is that the network gets. */
function wordsOfPicture({ result, choices }) {
  const { rows, columns, numPatches, dropped, source } = result;
  const side = source.patch_size;
  const values = { width: columns * side, height: rows * side, count: numPatches - dropped.length, side };
  return {
    sentence: translate(
      "This is all that the network gets: {width} × {height} pixels, in *{count} squares* of {side} × {side} pixels.",
      values,
    ),
    subject: english("The picture alone"),
    reading: choices.hovered === null ? "" : placeOf(result, choices.hovered),
  };
}

/** Where the map is strong; if no value reaches the floor of its unit, that nothing stands out. */
function summary(method, map, result, view) {
  const style = method.style(result);
  const values = { peak: method.written(peakOf(map)), floor: method.written(style.floor) };
  if (!isFaint(map, style)) return placesText(method, map, result) + restText(method, map, result, view);
  return method.isShare
    ? translate("Nothing stands out: no square gets more than an even share ({floor})", values)
    : translate("Nothing stands out: the strongest square has {peak}, below {floor}", values);
}

const PALE = 0.4; // of the end of a scale
const LARGE = 0.05; // a part of the whole

/** Of a map of the default query whose values are shares of one whole, the part that is on no patch, if it is large. */
function restText(method, map, result, view) {
  const { numTokens, numPatches, dropped, hasClassToken } = result;
  const numPrefix = numTokens - numPatches + dropped.length;
  if (!method.isShare || view.query !== null || view.direction === "to" || !numPrefix) return "";
  const rest = 1 - map.reduce((sum, value) => sum + value, 0);
  if (rest < LARGE) return "";
  const values = { rest: method.written(rest) };
  if (!hasClassToken) return ` · ${translate("on the registers: {rest}", values)}`;
  return ` · ${numPrefix > 1 ? translate("on the class token and the registers: {rest}", values) : translate("on the class token itself: {rest}", values)}`;
}

/** Where a map is strongest. */
function placesText({ format }, map, result) {
  const at = map.reduce((best, value, i) => (value > map[best] ? i : best), 0);
  const against = map.reduce((best, value, i) => (value < map[best] ? i : best), 0);
  const named = (patch) => ({ place: placeOf(result, patch), value: format(map[patch]) });
  const words =
    map[at] > 0 ? translate("Strongest: {place}, {value}", named(at)) : translate("No square speaks for the class");
  const isSigned = map[against] < 0 && -map[against] > SUBSTANTIAL * map[at];
  return isSigned ? `${words} · ${translate("against it: {place}, {value}", named(against))}` : words;
}

const SUBSTANTIAL = 1 / 3; // of the strongest value for the class

/** The colour scale as it is painted in the picture, with the values at its ends, or the chips of what the tokens show. */
function createLegend(element, chips) {
  const [low, bar, high] = element.children;

  function update({ result, method, map, style, tokens, choices: { opacity, plain } }) {
    const scale = tokens ? tokens.legend.scale : !plain && map;
    element.classList.toggle("empty", !scale);
    chips.replaceChildren(...(tokens?.legend.chips ?? []).map(chip));
    if (!scale) return;
    const paper = result.pixelated;
    if (tokens) {
      setText(low, scale[0]);
      setText(high, scale[1]);
      bar.style.background = heatGradient(tokens.opacity, { paper });
    } else {
      const end = scaleEnd(map, style);
      const values = { value: method.written(end), peak: method.written(peakOf(map)) };
      const isBeyond = style.end && peakOf(map) > style.end * 1.001;
      const isPale = style.end && !style.signed && peakOf(map) < PALE * style.end; // beside other maps of this picture
      const more = isBeyond ? translate("{value} and more", values) : values.value;
      const written = isPale ? translate("{value}, here at most {peak}", values) : more;
      setText(high, style.signed ? translate("for {value}", { value: written }) : written);
      setText(low, style.signed ? translate("against {value}", { value: method.written(-end) }) : "0");
      bar.style.background = heatGradient(opacity, { ...style, paper });
    }
    bar.classList.toggle("signed", !tokens && style.signed);
    element.title = !tokens && style.end ? translate("One scale for all maps of this picture") : "";
  }

  function clear() {
    element.classList.add("empty");
    chips.replaceChildren();
  }

  return { update, clear };
}

function chip({ colour, name, number }) {
  const dot = make("i");
  dot.style.background = `rgb(${colour.join(" ")})`;
  return make(
    "span",
    { className: "chip", translate: false, title: name },
    dot,
    make("span", {}, name),
    make("small", {}, number),
  );
}

// The headline: the story of this very picture in one line.

const INVITATION = english("Draw a digit or choose a photo, and see how the network reads it.");

/** How the sentence begins for a photo, a drawing, and an example digit. */
const BEGINNINGS = {
  photo: english("The network cuts the photo into {squares} squares, lets them look at each other {times} times,"),
  drawing: english("The network cuts your drawing into {squares} squares, lets them look at each other {times} times,"),
  digit: english("The network cuts your {digit} into {squares} squares, lets them look at each other {times} times,"),
};

/** What it comes to while squares are rubbed out: the same answer, another one, an unsure one, none. */
const WITHOUT = {
  same: english(
    "Without 1 square it still says *{label}*: {probability}.|Without {count} squares it still says *{label}*: {probability}.",
  ),
  other: english(
    "Without 1 square it says *{label}*: {probability}.|Without {count} squares it says *{label}*: {probability}.",
  ),
  unsure: english(
    "Without 1 square it is unsure: *{label}*, {probability}?|Without {count} squares it is unsure: *{label}*, {probability}?",
  ),
  none: english("The network reads the photo without 1 square.|The network reads the photo without {count} squares."),
};

/** The headline of a result; `whole` is the same with no square rubbed out. */
function storyOf(result, whole) {
  const [first] = result.predictions;
  const answer = first && { label: first.label, probability: probabilityOf(first) };
  const count = result.dropped.length; // in a notebook the whole picture may not be there to compare with
  if (count > 0) {
    const isSame = !whole.dropped.length && first?.index === whole.predictions[0]?.index;
    const kind = !first ? "none" : isUnsure(result) ? "unsure" : isSame ? "same" : "other";
    return translate(WITHOUT[kind], { ...answer, count });
  }
  const kind = !result.pixelated ? "photo" : result.exampleDigit === undefined ? "drawing" : "digit";
  const { numPatches: squares, numBlocks: times, exampleDigit: digit } = result;
  const begin = translate(BEGINNINGS[kind], { digit, squares, times });
  if (!first) return `${begin} ${translate("and has a list of numbers for each.")}`;
  const end = isUnsure(result) ? english("and is unsure: *{label}*, {probability}?") : english("and says *{label}*.");
  return `${begin} ${translate(end, answer)}`;
}

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
