// @ts-check
// The words beside the picture: what its colours are, the value under the pointer, and the ends of the colour scale.

import { english, plain, translate } from "../shared/language.js";
import { defaultQueryName, percent, placeOf, targetOf } from "./format.js";
import { isFaint, peakOf, scaleEnd } from "./heatmapColours.js";
import { placeAmong } from "./methods.js";
import { isDefaultMap } from "./onDemand.js";

/**
 * The caption of a drawing (see stage.js), of which `entry` is that of a map which the server computes and `methods` are all that
 * there are: {sentence, subject, value, rank, outdated, label}. `outdated` says which map is still shown, `label` describes the
 * picture.
 */
export function captionOf(drawing) {
  const { result, method, methods, choices, tokens, entry, error } = drawing;
  const words = tokens ?? (choices.plain ? wordsOfPicture(drawing) : wordsOfMap(drawing));
  const value = error || words.reading;
  const { preset } = result.source;
  const place = isMeasured(drawing) && !otherClass(drawing) ? placeAmong(method, preset) : null;
  const all = Object.values(methods).filter((each) => placeAmong(each, preset)).length;
  const about = choices.hovered === null && value ? `${words.subject}. ${value}` : words.subject;
  const isOld = Boolean(!tokens && entry && !entry.value && drawing.map);
  return {
    sentence: words.sentence,
    subject: words.subject,
    value,
    rank: place ? translate("How good is this kind of map? No. {place} of {all} in a test ›", { place, all }) : "",
    outdated: isOld ? translate("Still shown: *{method}*", { method: translate(method.label) }) : "",
    label: translate("The picture: {subject}. Arrow keys choose a square, Escape leaves it.", {
      subject: plain(about),
    }),
  };
}

function wordsOfMap(drawing) {
  const { result, method, map, choices, chosenMethod, view } = drawing;
  const faint = map && isFaint(map, method.style(result));
  const remark = faint ? ` *${translate("Nothing stands out.")}* ${translate(method.faintReason)}` : "";
  return {
    sentence: (isFirstMap(drawing) ? FIRST_SENTENCE : chosenMethod.sentence(result, view)) + remark,
    subject: method.subject(result, drawing.view) + otherClass(drawing),
    reading: choices.section === "features" ? "" : valueText(drawing),
  };
}

function valueText({ result, method, view, map, trace, choices, chosenMethod, entry }) {
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
    ? translate("Nothing stands out: no square gets more than if attention were spread evenly ({floor})", values)
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

/** The ends of the colour scale of a map, in words, and whether it is shared by other maps: {low, high, isShared}. */
export function scaleOf({ method, map, style }) {
  const end = scaleEnd(map, style);
  const values = { value: method.format(end), peak: method.format(peakOf(map)) };
  const isBeyond = style.end && peakOf(map) > style.end * 1.001;
  const isPale = style.end && !style.signed && peakOf(map) < PALE * style.end; // beside other maps of this picture
  const more = isBeyond ? translate("{value} and more", values) : values.value;
  const written = isPale ? translate("{value}, here {peak}", values) : more;
  return {
    low: style.signed ? translate("against {value}", { value: method.format(-end) }) : "0",
    high: style.signed ? translate("for {value}", { value: written }) : written,
    isShared: Boolean(style.end),
  };
}

/** What the picture is while one draws on it, for those who do not see it. */
export const PAPER = english(
  "Drawing pad for one digit. Draw with mouse, pen or finger; or move the pen with the arrow keys, and put it down and lift it with Space. Control Z undoes, Delete clears.",
);
