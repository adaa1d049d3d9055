// @ts-check
// The words of a model that takes any as its classes. They are used when they are entered, not letter by letter.

import { readWords } from "../shared/linkFields.js";

/** Starts the form. `onWords(words)` gets a list, or null for the model's own; `show(words)` shows them, null hides it. */
export function createWords(/** @type {HTMLFormElement} */ form, onWords) {
  const box = /** @type {HTMLInputElement} */ (form.querySelector("input"));
  let shown = "";

  function enter() {
    if (box.value.trim() !== shown) onWords(readWords(box.value));
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
      shown = box.value = words.join(", ");
    },
  };
}
