// @ts-check
// The words of a model that takes any as its classes. They are used when they are entered, not letter by letter.

import { english } from "../shared/language.js";
import { MOST_WORDS, readWords } from "../shared/linkFields.js";

const TOO_MANY = english("Write at most 50 words, each of at most 300 characters.");

/** Starts the form. `onWords(words)` gets a list, or null for the model's own; `show(words)` shows them, null hides it. */
export function createWords(/** @type {HTMLFormElement} */ form, onWords) {
  const box = /** @type {HTMLInputElement} */ (form.querySelector("input"));
  const problem = /** @type {HTMLElement} */ (form.querySelector(".problem"));
  let shown = "";

  function enter() {
    if (box.value.trim() === shown) return;
    const parts = box.value.split(",").filter((part) => part.trim());
    const words = readWords(box.value);
    const isBad = parts.length > MOST_WORDS || (parts.length > 0 && !words);
    problem.textContent = isBad ? TOO_MANY : "";
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
