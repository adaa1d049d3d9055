// @ts-check
// What holds for the whole page: its language, which the menu in the header chooses, and its theme, light or dark.
//
// The English words of the page are replaced by those of its language: text and attributes of HTML, of elements that
// JavaScript makes, and of what the server sends. What is in `translate="no"` stays, such as the names of classes.

import { setText } from "../shared/dom.js";
import { chooseLanguage, currentLanguage, english, LANGUAGES, languageChange, translate } from "../shared/language.js";
import { readSetting, storeSetting } from "../shared/pageState.js";

const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt", "label", "data-label"];
const UNTRANSLATED = "[translate=no]";
const SKIPPED = `script, style, code, pre, textarea, ${UNTRANSLATED}`;

const texts = new WeakMap(); // text node -> {source, shown}
const attributes = new WeakMap(); // element -> Map from attribute to {source, shown}

/** The words for those that are there now, which may be the ones that were put there before. */
function wordsFor(known, present) {
  const source = known?.shown === present ? known.source : present;
  if (!/\p{L}/u.test(source)) return { source, shown: source };
  const [, before, words, after] = /** @type {any} */ (/^(\s*)(.*?)(\s*)$/s.exec(source));
  const plain = words.replace(/[ \t\n]+/g, " ");
  const shown = translate(plain);
  return { source, shown: shown === plain ? source : before + shown + after };
}

function translateNode(node) {
  const words = wordsFor(texts.get(node), node.data);
  texts.set(node, words);
  if (node.data !== words.shown) node.data = words.shown;
}

function translateAttribute(element, name) {
  const present = element.getAttribute(name);
  if (present === null || element.closest(UNTRANSLATED)) return; // the label of a piece of code is words
  const known = attributes.get(element) ?? attributes.set(element, new Map()).get(element);
  const words = wordsFor(known.get(name), present);
  known.set(name, words);
  if (present !== words.shown) element.setAttribute(name, words.shown);
}

function translateTree(tree) {
  if (tree.parentElement?.closest(`${SKIPPED}, [data-text]`)) return;
  const accept = (node) => (node.matches?.(SKIPPED) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  if (accept(tree) === NodeFilter.FILTER_REJECT) return;
  const walker = document.createTreeWalker(tree, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, accept);
  for (let node = tree; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (!node.parentElement?.closest("[data-text]")) translateNode(node);
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      for (const name of ATTRIBUTES) translateAttribute(node, name);
      if (node.matches('[href^="./lessons"]')) node.href = `./lessons?language=${currentLanguage()}`;
      if (node.dataset?.text !== undefined) setText(node, node.dataset.text);
    }
  }
}

const root = document.documentElement;
const NOT_LOADED = english("The language could not be loaded: check the connection and choose it again.");

/** Shows the language in the menu. Gradio sets that of the browser when it starts. */
function applyLanguage() {
  const language = currentLanguage();
  if (root.lang !== language) root.lang = language;
  const menu = /** @type {HTMLSelectElement | null} */ (document.querySelector("#language"));
  if (!menu) return;
  if (!menu.options.length) {
    menu.append(
      ...Object.entries(LANGUAGES).map(([name, title]) => Object.assign(new Option(title, name), { lang: name })),
    );
  }
  menu.value = language;
}

function translateChanges(changes) {
  for (const { type, target, addedNodes, attributeName } of changes) {
    if (type === "childList") for (const node of addedNodes) translateTree(node);
    else if (attributeName !== "lang") translateAttribute(target, attributeName);
  }
  applyLanguage();
}

applyLanguage();
translateTree(root);
new MutationObserver(translateChanges).observe(root, {
  childList: true,
  subtree: true,
  attributeFilter: [...ATTRIBUTES, "lang"],
});
languageChange.subscribe(root, () => {
  translateTree(root);
  applyLanguage();
});
document.addEventListener("change", async (event) => {
  const target = /** @type {HTMLSelectElement} */ (event.target);
  if (target.id !== "language") return;
  const isLoaded = await chooseLanguage(target.value);
  target.setCustomValidity(isLoaded ? "" : translate(NOT_LOADED));
  if (isLoaded) return;
  applyLanguage();
  target.reportValidity();
});

const THEME = "vit_demo-theme"; // in the browser's storage

/** The choice of the address (?__theme=), else the visitor's, which this browser keeps; else the system's holds. */
let chosen = [new URLSearchParams(location.search).get("__theme"), readSetting(THEME)].find((theme) =>
  ["light", "dark"].includes(theme ?? ""),
);

const paper = matchMedia("print"); // always light

/** Gradio sets the system's theme when it starts and when that changes. */
function applyTheme() {
  const { classList } = document.body;
  const wanted = paper.matches ? "light" : chosen;
  if (wanted && classList.contains("dark") !== (wanted === "dark")) classList.toggle("dark", wanted === "dark");
}

applyTheme();
new MutationObserver(applyTheme).observe(document.body, { attributeFilter: ["class"] });
let wasDark = false; // before it was printed
paper.addEventListener("change", ({ matches }) => {
  if (matches) wasDark = document.body.classList.contains("dark");
  document.body.classList.toggle("dark", wasDark && !matches);
});
document.addEventListener("click", ({ target }) => {
  if (!(/** @type {Element} */ (target).closest?.("#theme"))) return;
  chosen = document.body.classList.contains("dark") ? "light" : "dark";
  storeSetting(THEME, chosen);
  applyTheme();
});
