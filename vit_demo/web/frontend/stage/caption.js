// @ts-check
// The words beside the picture: what its colours are, the value under the pointer, and the colour scale.

import { isNew, make, makeButton, setText } from "../shared/dom.js";
import { createTooltip, setExplainedText } from "../shared/glossary/glossary.js";
import { currentLanguage, english, plain, translate } from "../shared/language.js";
import { queryName } from "./format.js";
import { heatGradient } from "./heatmapColours.js";

/** `update(drawing)` shows the caption and the scale of a drawn frame (see stage.js). */
export function createCaption(element) {
  const find = (selector) => element.querySelector(selector);
  const [sentence, subject, value, rank] = [".sentence", ".subject", ".value", ".rank"].map(find);
  const legend = createLegend(find(".scale"), find(".legend"));
  const tooltip = createTooltip(element);
  let isAnnounced = false; // whether the next frame is read out
  let status = ""; // of a map that is being computed, as it was read out

  function update(drawing) {
    const { caption } = drawing.frame;
    find(".view").classList.toggle("old", Boolean(caption.outdated));
    if (caption.outdated) setText(find(".outdated"), caption.outdated);
    setExplainedText(sentence, caption.sentence, tooltip);
    setText(subject, caption.subject);
    setText(value, caption.value);
    setText(rank, caption.rank);
    announce(drawing, caption.subject, caption.value);
    legend.update(drawing);
  }

  /** Reads out what the arrow keys point at, and what becomes of a map that takes long. */
  function announce({ result, method, view, trace, chosenMethod, choices, entry, frame }, subjectText, words) {
    if (frame.answers?.isLive) return;
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

  function clear() {
    for (const node of [sentence, subject, value, rank]) setText(node, "");
    legend.clear();
  }

  /** Reads out the next frame: the patch and its value. */
  function announceNext() {
    isAnnounced = true;
  }

  return { update, clear, announceNext };
}

/** The colour scale as it is painted in the picture, with the values at its ends, or the chips of what the tokens show. */
function createLegend(element, chips) {
  const [low, bar, high] = element.children;
  const show = (given) => isNew(chips, given) && chips.replaceChildren(...given.map(chip));

  function update({ result, style, tokens, choices: { opacity }, frame }) {
    const ends = tokens
      ? tokens.legend.scale && { low: tokens.legend.scale[0], high: tokens.legend.scale[1] }
      : frame.scale;
    element.classList.toggle("empty", !ends);
    show(tokens?.legend.chips ?? []);
    if (!ends) return;
    setText(low, ends.low);
    setText(high, ends.high);
    const paper = result.pixelated;
    const colours = tokens ? [tokens.opacity, false, paper] : [opacity, Boolean(style.signed), paper];
    if (isNew(bar, colours)) bar.style.background = heatGradient(colours[0], { signed: colours[1], paper });
    bar.classList.toggle("signed", !tokens && style.signed);
    element.title = ends.isShared ? translate("One scale for all maps of this picture") : "";
  }

  function clear() {
    element.classList.add("empty");
    show([]);
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

/** Says in a chapter that squares of its picture are rubbed out, with the way to bring them back by `restore()`. */
export function showWithout(host, { dropped }, restore) {
  if (!isNew(host, [dropped.length, currentLanguage()])) return;
  const count = dropped.length;
  const words = translate(
    "This is about the picture without 1 square.|This is about the picture without {count} squares.",
    { count },
  );
  const undo = makeButton(restore, { className: "link" }, english("All back"));
  host.replaceChildren(...(count ? [words, " ", undo] : []));
}
