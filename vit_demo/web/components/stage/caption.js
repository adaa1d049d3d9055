// The caption of the picture: what is shown, the value under the pointer, and the way back to the default query.

import { setText } from "../shared/dom.js";
import { peakOf } from "./colours.js";
import { formatProbability, SPACE } from "./numbers.js";
import { defaultQueryName } from "./text.js";

/**
 * `update(drawing, entry)` describes a drawn frame (see main.js); `entry` is that of a map which the server computes.
 * `hasFailed(result, block)` tells whether a block's trace could not be loaded.
 */
export function createCaption(element, { hasFailed }) {
  const find = (selector) => element.querySelector(selector);
  const [subject, value, peak, back, picture] = [".subject", ".value", ".peak", ".back", ".picture"].map(find);

  function update(drawing, entry, error) {
    const { result, method, view, map, choices, chosenMethod } = drawing;
    const words = method.subject(result, view);
    setText(subject, words);
    setText(value, error || valueText(drawing, entry));
    setText(peak, map ? method.format(peakOf(map)) : "");
    const name = result.hasClassToken ? "class token" : "all tokens";
    setText(back, `← ${name}`);
    back.setAttribute("aria-label", `Back to ${name}`);
    back.classList.toggle("invisible", choices.pinned === null || !chosenMethod.uses.includes("patch"));
    const spoken = `The picture under its heatmap: ${words.replaceAll("*", "")}.`;
    picture.setAttribute("aria-label", `${spoken} Arrow keys choose a patch, Escape leaves it.`);
  }

  function valueText({ result, method, view, map, choices, chosenMethod }, entry) {
    if (entry?.error) return entry.error;
    if (entry?.slow && !entry.map) {
      const progress = entry.progress === null ? "" : ` ${Math.round(100 * entry.progress)}${SPACE}%`;
      return `Computing *${chosenMethod.label}* …${progress}`;
    }
    if (!map) return "";
    if (method.uses.includes("patch") && !view.isComplete) {
      const state = hasFailed(result, choices.block) ? "could not be loaded" : "is loading";
      return `The attention of this patch ${state}. Shown: the ${defaultQueryName(result)}.`;
    }
    if (choices.hovered === null) return `brightest patch ${method.format(peakOf(map))}`;
    if (result.tokenOf[choices.hovered] < 0) return "this patch is dropped";
    return method.reading(result, view, choices.hovered, map[choices.hovered]);
  }

  function clear() {
    for (const node of [subject, value, peak]) setText(node, "");
    back.classList.add("invisible");
  }

  return { update, clear };
}

/** The prediction in one line, for a phone, where its card is far below the picture. */
export function setHeadline(node, result) {
  const [first] = result?.predictions ?? [];
  setText(node, first ? `Prediction: *${first.label}* · ${formatProbability(first.probability)}` : "");
}
