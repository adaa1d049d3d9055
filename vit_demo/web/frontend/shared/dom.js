// Small helpers for the page.

import { translate } from "./language.js";

/** Creates an element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const shownTexts = new WeakMap(); // element -> the text in the page's language

/**
 * Sets text, in the page's language if the catalogue has it; *stars* make words bold. Touches the page only when the text
 * is new, and returns whether it was.
 */
export function setText(node, text) {
  const shown = translate(text);
  if (shownTexts.get(node) === shown) return false;
  shownTexts.set(node, shown);
  node.dataset.text = text; // for another language
  node.replaceChildren(...shown.split("*").map((part, i) => (i % 2 ? make("b", { textContent: part }) : part)));
  return true;
}

/** Shows or hides a thin progress bar; `progress` is 0 to 1, or null where it is not known. */
export function setProgress(bar, visible, progress = null) {
  bar.classList.toggle("on", visible);
  bar.classList.toggle("unknown", progress === null);
  bar.firstElementChild.style.width = `${100 * (progress ?? 1)}%`;
}
