// @ts-check
// The words of a model that takes any as its classes. They are used when they are entered, not letter by letter.

import { constants } from "../shared/constants.js";
import { translate } from "../shared/language.js";
import { readWords } from "../shared/linkFields.js";

/** Starts the form. `onWords(words)` gets a list, or null for the model's own; `show(words)` shows them, null hides it. */
export function createWords(/** @type {HTMLFormElement} */ form, onWords) {
  const box = /** @type {HTMLInputElement} */ (form.querySelector("input"));
  const problem = /** @type {HTMLElement} */ (form.querySelector(".problem"));
  let shown = "";

  function enter() {
    if (box.value.trim() === shown) return;
    const words = readWords(box.value);
    const count = constants.maxWords;
    const isBad = words !== null && words.length > count;
    problem.textContent = isBad ? translate("Write at most {number} words.", { number: count }) : "";
    box.setAttribute("aria-invalid", String(isBad));
    if (!isBad) onWords(words);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    enter();
  });
  box.addEventListener("change", enter);

  return {
    show(/** @type {string[] | null} */ words) {
      form.hidden = !words;
      if (!words || words.join(", ") === shown) return;
      shown = words.join(", ");
      box.value = shown;
      problem.textContent = "";
      box.setAttribute("aria-invalid", "false");
    },
  };
}
