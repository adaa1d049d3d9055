// The language of the page: its words follow the choice of the menu in the header.

import { chooseLanguage, currentLanguage, english, LANGUAGES, languageChange, translate } from "../shared/language.js";
import { ATTRIBUTES, translateAttribute, translateTree } from "./words.js";

const root = document.documentElement;
const NOT_LOADED = english("The language could not be loaded: check the connection and choose it again.");

/** Gradio sets the language of the browser when it starts. */
function apply() {
  const language = currentLanguage();
  if (root.lang !== language) root.lang = language;
  const menu = document.querySelector("#language");
  if (!menu) return;
  if (!menu.options.length) {
    menu.append(
      ...Object.entries(LANGUAGES).map(([name, title]) => Object.assign(new Option(title, name), { lang: name })),
    );
  }
  menu.value = language;
}

function follow(changes) {
  for (const { type, target, addedNodes, attributeName } of changes) {
    if (type === "childList") for (const node of addedNodes) translateTree(node);
    else if (attributeName !== "lang") translateAttribute(target, attributeName);
  }
  apply();
}

apply();
translateTree(root);
new MutationObserver(follow).observe(root, {
  childList: true,
  subtree: true,
  attributeFilter: [...ATTRIBUTES, "lang"],
});
languageChange.follow(root, () => {
  translateTree(root);
  apply();
});
document.addEventListener("change", async ({ target }) => {
  if (target.id !== "language") return;
  const isLoaded = await chooseLanguage(target.value);
  target.setCustomValidity(isLoaded ? "" : translate(NOT_LOADED));
  if (isLoaded) return;
  apply();
  target.reportValidity();
});
