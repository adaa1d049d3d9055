// The sections of the stage: each card belongs to one or several, and one section is open at a time.

import { make } from "../shared/dom.js";
import { english } from "../shared/language.js";

/** The sections in their order, as [name, title]. One without a card of its own is not offered. */
const SECTIONS = [
  ["attention", english("Attention")],
  ["features", english("Features")],
  ["steps", english("Step by step")],
  ["compare", english("Compare")],
  ["build", english("Build")],
];

export const FIRST_SECTION = SECTIONS[0][0];

/**
 * Adds a button for each section of `cards`, a list of [element, names of its sections].
 *
 * Returns `{open(name), isOffered(name)}`; opening a section shows its cards and hides the others. `onChoose(name)` is called when a
 * visitor chooses one.
 */
export function createSections(bar, cards, onChoose) {
  const offered = SECTIONS.filter(([name]) => cards.some(([, names]) => names.includes(name)));
  const buttons = offered.map(([name, title]) => {
    const button = make("button", { type: "button", textContent: title });
    button.addEventListener("click", () => onChoose(name));
    return button;
  });
  bar.replaceChildren(...buttons);
  bar.hidden = offered.length < 2;

  function open(name) {
    document.body.dataset.section = name; // for the inputs, of which some are not there in every section
    buttons.forEach((button, i) => {
      const isOpen = offered[i][0] === name;
      if (isOpen && button.getAttribute("aria-current") !== "true") showInBar(button);
      button.setAttribute("aria-current", String(isOpen));
    });
    for (const [card, names] of cards) card.classList.toggle("elsewhere", !names.includes(name));
  }

  /** Scrolls the bar, which is narrow on a phone, and nothing else. */
  function showInBar(button) {
    const [inner, outer] = [button, bar].map((element) => element.getBoundingClientRect());
    bar.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left);
  }

  const isOffered = (name) => offered.some(([each]) => each === name);

  return { open, isOffered };
}
