// The sections of the stage: each card belongs to one or several, and one section is open at a time.

import { documentEvents, make, makeButton, setText } from "../shared/dom.js";
import { english } from "../shared/language.js";
import { readSetting, resultStatus, retryResult, storeSetting } from "../shared/pageState.js";

/** The sections in their order, as [name, title]. One without a card of its own is not offered. */
const SECTIONS = [
  ["attention", english("Heatmaps")],
  ["features", english("Features")],
  ["steps", english("Step by step")],
  ["compare", english("Compare")],
  ["build", english("Build")],
];

export const FIRST_SECTION = SECTIONS[0][0];

/**
 * Adds a button for each section of `cards`, a list of [element, names of its sections].
 *
 * `open(name)` shows the cards of a section and hides the others; `onChoose(name)` is called when a visitor chooses one.
 */
export function createSections(bar, cards, onChoose) {
  const offered = SECTIONS.filter(([name]) => cards.some(([, names]) => names.includes(name)));
  const buttons = offered.map(([name, title]) => makeButton(() => onChoose(name), {}, title));
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

const VISITED = "vit_demo-visited"; // in the browser's storage

/**
 * Greets a first visitor in `card` until the first deed: what one sees, what to do, and the way to the tour.
 *
 * What is below would move when the card goes: there, and while one draws, it stays, and only makes place for the words about
 * the map and the model.
 */
export function createWelcome(card, onTour) {
  card.hidden = readSetting(VISITED) !== null;
  if (card.hidden) return;
  const listen = documentEvents(card);
  const seen = card.parentElement.querySelector(".seen");

  function deed({ target, type }) {
    const isDeed = target.closest(".inputs, .stage") && (type !== "keydown" || target.matches("canvas"));
    if (card.hidden || !isDeed || (card.contains(target) && !target.matches("button"))) return;
    storeSetting(VISITED, "yes");
    const isAbove = card.getBoundingClientRect().bottom <= seen.getBoundingClientRect().top; // on a phone and a tablet
    card.classList.toggle("done", isAbove);
    card.hidden = !isAbove || target.closest(".sections, .tabs, .welcome") !== null;
  }

  card.querySelector("button").addEventListener("click", onTour);
  // Not before the click: what a finger hits would have moved. A slider, or a choice with the keyboard, gives no click.
  for (const name of ["click", "input", "keydown"]) listen(name, deed);
  listen("pointerdown", ({ target }) => target.closest(".paper") && storeSetting(VISITED, "yes"));
}

// Whether the result on the stage is the one that was requested last, and what to do if it is not.

/**
 * Follows `resultStatus`. Its states: "done"; "pending", the result of before is marked as old; "failed" and "lost", a
 * sentence in every section, with a button that tries again where that may help. Where the picture would be, if there is
 * none, the stage has the sentence already, and only the button is added.
 */
export function createStatus(element, stage) {
  const text = make("span");
  const again = () => retryResult.publish();
  const retry = makeButton(again, { className: "quiet" }, english("Retry"));
  const bar = make("div", { className: "result-status", hidden: true }, text, retry);
  const spoken = make("p", { className: "visually-hidden" });
  spoken.setAttribute("role", "status");
  stage.append(bar, spoken);
  const buttons = [retry, element.querySelector(".retry")];
  buttons[1].addEventListener("click", again);

  function show({ state, sentence, canRetry = true }) {
    stage.classList.toggle("old", state !== "done");
    stage.dataset.state = state;
    bar.hidden = !sentence;
    for (const button of buttons) button.hidden = !sentence || !canRetry;
    setText(text, sentence);
    setText(spoken, sentence);
  }

  resultStatus.subscribe(element, show);
  show(resultStatus.latest());
}
