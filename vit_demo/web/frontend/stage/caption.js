// The caption of the picture: what is shown, the value under the pointer, and the way back to the default query.

import { fillSelect, setText } from "../shared/dom.js";
import { english, translate } from "../shared/language.js";
import { againstOf, defaultQueryName, percent, placeOf, probabilityOf, queryName, targetOf } from "./format.js";
import { heatGradient, isFaint, peakOf, scaleEnd } from "./heatmapColours.js";

/**
 * `update(drawing, entry)` describes a drawn frame (see stage.js); `entry` is that of a map which the server computes.
 * `onChange(part)` gets the choices that change.
 */
export function createCaption(element, onChange) {
  const find = (selector) => element.querySelector(selector);
  const [subject, value, back, picture, outdated, news] = [
    ".subject",
    ".value",
    ".back",
    ".picture",
    ".outdated",
    ".news",
  ].map(find);
  const against = find(".against");
  against.addEventListener("change", () => onChange({ against: JSON.parse(against.value) }));
  const legend = createLegend(find(".scale"));

  let isAnnounced = false; // whether the next frame is read out
  let status = ""; // of a map that is being computed, as it was read out

  function update(drawing, entry, error) {
    const { result, method, view, choices, chosenMethod } = drawing;
    const subjectText = method.subject(result, view);
    setText(subject, subjectText);
    const words = error || valueText(drawing, entry);
    setText(value, words);
    announce(drawing, entry, subjectText, words);
    const isOld = Boolean(entry && !entry.value && drawing.map);
    find(".view").classList.toggle("old", isOld);
    if (isOld) setText(outdated, translate("Still shown: *{method}*", { method: translate(method.label) }));
    legend.update(drawing);
    setText(back, result.hasClassToken ? english("← class token") : english("← all tokens"));
    back.setAttribute(
      "aria-label",
      result.hasClassToken ? english("Back to class token") : english("Back to all tokens"),
    );
    back.classList.toggle("invisible", choices.pinned === null || !chosenMethod.uses.includes("patch"));
    offerOthers(drawing);
    const about = choices.hovered === null && words ? `${subjectText}. ${words}` : subjectText;
    const spoken = translate("The picture under its heatmap: {subject}. Arrow keys choose a patch, Escape leaves it.", {
      subject: about.replaceAll("*", ""),
    });
    picture.setAttribute("aria-label", spoken);
  }

  /** Offers the other classes, most likely first, to compare the class of the heatmap with. */
  function offerOthers({ result, choices, chosenMethod }) {
    against.hidden = !chosenMethod.comparesClasses || result.predictions.length < 2;
    if (against.hidden) return;
    const target = targetOf(result, choices.label);
    const others = result.predictions
      .filter((one) => one !== target)
      .map(({ index, label }) => [index, translate("rather than {label}", { label })]);
    fillSelect(against, [[null, translate("rather than …")], ...others], againstOf(result, choices)?.index ?? null);
  }

  /** Reads out what the arrow keys point at, and what becomes of a map that takes long. */
  function announce({ result, method, view, trace, chosenMethod, choices }, entry, subjectText, words) {
    const isComputed = entry?.isSlow && entry.isLoading;
    const next =
      entry?.error || (isComputed ? translate("Computing {method}.", { method: translate(chosenMethod.label) }) : "");
    if (next !== status) announceText(next || subjectText);
    else if (isAnnounced) {
      const place = choices.hovered === null ? subjectText : queryName(result, choices.hovered);
      announceText(`${place}: ${words}.`);
    }
    status = next;
    const isLoading = method.uses.includes("patch") && !view.isComplete && !trace?.error;
    isAnnounced = isAnnounced && isLoading; // what is loading is read out again once it is there
  }

  const announceText = (text) => setText(news, text.replaceAll("*", ""));

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
    if (result.tokenOf[choices.hovered] < 0) return english("this patch is removed");
    return method.reading(result, view, choices.hovered, map[choices.hovered]);
  }

  function clear() {
    for (const node of [subject, value]) setText(node, "");
    legend.clear();
    against.hidden = true;
    back.classList.add("invisible");
  }

  /** Reads out the next frame: the patch and its value. */
  function announceNext() {
    isAnnounced = true;
  }

  return { update, clear, announceNext };
}

/** Where the map is strong; if no value reaches the floor of its unit, that nothing stands out. */
function summary(method, map, result, view) {
  const style = method.style(result);
  const values = { peak: method.written(peakOf(map)), floor: method.written(style.floor) };
  if (!isFaint(map, style)) return placesText(method, map, result) + restText(method, map, result, view);
  return method.isShare
    ? translate("nothing stands out: no patch gets more than an even share ({floor})", values)
    : translate("nothing stands out: the strongest patch has {peak}, below {floor}", values);
}

const LARGE = 0.05; // a part of the whole

/**
 * Of a map whose values are shares of one whole, the part that is on no patch, if it is large; of a patch's own map, what the
 * default query's, which is shown while nobody points, gives to this patch.
 */
function restText(method, map, result, view) {
  const { isShare, written } = method;
  const { numTokens, numPatches, dropped, hasClassToken } = result;
  if (view.query !== null) {
    const value = written(method.map(result, { ...view, query: null })[view.query]);
    return ` · ${translate("in the map of the {query}: *{value}* here", { query: defaultQueryName(result, view.block), value })}`;
  }
  const numPrefix = numTokens - numPatches + dropped.length;
  if (!isShare || view.direction === "to" || !numPrefix) return "";
  const rest = 1 - map.reduce((sum, value) => sum + value, 0);
  if (rest < LARGE) return "";
  const values = { rest: written(rest) };
  if (!hasClassToken) return ` · ${translate("on the registers: {rest}", values)}`;
  return ` · ${numPrefix > 1 ? translate("on the class token and the registers: {rest}", values) : translate("on the class token itself: {rest}", values)}`;
}

/** The colour scale as it is painted in the picture, with the values at its ends. */
function createLegend(element) {
  const [low, bar, high] = element.children;
  let painted = "";

  function update({ result, method, map, choices: { opacity } }) {
    if (!map) return clear();
    const style = method.style(result);
    const end = scaleEnd(map, style);
    setText(high, style.signed ? translate("for {value}", { value: method.written(end) }) : method.written(end));
    setText(low, style.signed ? translate("against {value}", { value: method.written(-end) }) : "0");
    bar.classList.toggle("signed", style.signed);
    const key = `${opacity} ${style.signed} ${result.pixelated}`;
    if (key !== painted) bar.style.background = heatGradient(opacity, { ...style, paper: result.pixelated });
    painted = key;
  }

  function clear() {
    for (const node of [low, high]) setText(node, "");
  }

  return { update, clear };
}

/** The prediction in one line, for a phone, where its card is far below the picture. */
export function setHeadline(node, result) {
  const [first] = result?.predictions ?? [];
  const values = first && { label: first.label, probability: probabilityOf(first) };
  setText(node, first ? translate("Prediction: *{label}* · {probability}", values) : "");
}

// Where a map is strong: its strongest patch with its value, and how concentrated the rest is, from its values alone.

const MOST = 0.5; // of a sum is most of it
const FEW = 1 / 4; // of the patches are few: a map that needs more of them for most of its sum is spread
const LITTLE = 0.1; // of a sum is little of it
const SUBSTANTIAL = 1 / 3; // of what speaks for the class is what speaks against it

/**
 * The `strongest` patch, -1 if no value is above 0; and how many patches hold half of the sum of the others, 0 if they have
 * none. Values below 0 do not count.
 *
 * @param {ArrayLike<number>} map one value for each patch
 */
export function concentration(map) {
  const order = Array.from(map, (value, patch) => ({ value, patch }));
  const [first, ...others] = order.filter(({ value }) => value > 0).sort((one, other) => other.value - one.value);
  let left = MOST * (1 - 1e-6) * others.reduce((sum, { value }) => sum + value, 0); // float32 rounds
  const last = others.findIndex(({ value }) => {
    left -= value;
    return left <= 0;
  });
  return { strongest: first?.patch ?? -1, numOfRest: last + 1 };
}

/** How concentrated the rest is: nothing, few patches, or many. */
const REST = {
  none: english("Strongest: {place}, {value}; nothing anywhere else"),
  little: english("Strongest: {place}, {value}; little anywhere else"),
  few: english(
    "Strongest: {place}, {value}; one of the other {others} patches holds half of the rest|Strongest: {place}, {value}; {count} of the other {others} patches hold half of the rest",
  ),
  spread: english("Strongest: {place}, {value}; the rest is spread over the whole picture"),
};

/** The sentence about a map of a method, without its full stop. */
export function placesText({ format }, map, result) {
  const all = result.numPatches - result.dropped.length;
  const { strongest, numOfRest: count } = concentration(map);
  const sumOf = (sign) => map.reduce((sum, value) => sum + Math.max(0, sign * value), 0);
  const isAlone = sumOf(1) - map[strongest] < LITTLE * sumOf(1);
  const kind = count === 0 ? "none" : isAlone ? "little" : count > FEW * all ? "spread" : "few";
  const named = (patch) => ({ place: placeOf(result, patch), value: format(map[patch]) });
  const words =
    strongest < 0
      ? translate("No patch speaks for the class")
      : translate(REST[kind], { ...named(strongest), count, others: all - 1 });
  if (!sumOf(-1) || sumOf(-1) <= SUBSTANTIAL * sumOf(1)) return words;
  const against = concentration(map.map((value) => -value)).strongest;
  return words + translate("; strongest against it: {place}, {value}", named(against));
}
