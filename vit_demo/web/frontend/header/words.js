// The English words of the page, replaced by those of its language: text and attributes of HTML, of elements that
// JavaScript makes, and of what the server sends. What is in `translate="no"` stays, such as the names of classes.

import { setText } from "../shared/dom.js";
import { translate } from "../shared/language.js";

export const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt", "label", "data-label", "data-why"];
const UNTRANSLATED = "[translate=no]";
const SKIPPED = `script, style, code, pre, textarea, ${UNTRANSLATED}`;
const LETTER = /\p{L}/u;

const texts = new WeakMap(); // text node -> {source, shown}
const attributes = new WeakMap(); // element -> Map from attribute to {source, shown}

/** The words for those that are there now, which may be the ones that were put there before. */
function wordsFor(known, present) {
  const source = known?.shown === present ? known.source : present;
  if (!LETTER.test(source)) return { source, shown: source };
  const [, before, words, after] = /^(\s*)(.*?)(\s*)$/s.exec(source);
  const plain = words.replace(/[ \t\n]+/g, " ");
  const shown = translate(plain);
  return { source, shown: shown === plain ? source : before + shown + after };
}

function translateNode(node) {
  const words = wordsFor(texts.get(node), node.data);
  texts.set(node, words);
  if (node.data !== words.shown) node.data = words.shown;
}

/** Translates an attribute of an element. */
export function translateAttribute(element, name) {
  const present = element.getAttribute(name);
  if (present === null || element.closest(UNTRANSLATED)) return; // the label of a piece of code is words
  const known = attributes.get(element) ?? attributes.set(element, new Map()).get(element);
  const words = wordsFor(known.get(name), present);
  known.set(name, words);
  if (present !== words.shown) element.setAttribute(name, words.shown);
}

/** Translates all words in a node of the page. */
export function translateTree(root) {
  if (root.parentElement?.closest(`${SKIPPED}, [data-text]`)) return;
  const accept = (node) => (node.matches?.(SKIPPED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  if (accept(root) === NodeFilter.FILTER_REJECT) return;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, accept);
  for (let node = root; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (!node.parentElement?.closest("[data-text]")) translateNode(node);
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      for (const name of ATTRIBUTES) translateAttribute(node, name);
      if (node.dataset?.text !== undefined) setText(node, node.dataset.text);
    }
  }
}
