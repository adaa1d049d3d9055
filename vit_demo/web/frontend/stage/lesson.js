// @ts-check
// A lesson in a band above the stage, for as long as the address names it: its task, the answer, the way to the next one.

import { make, makeButton } from "../shared/dom.js";
import { currentLanguage, english, languageChange, translate } from "../shared/language.js";
import { pageState } from "../shared/pageState.js";
import { createRequestIds } from "../shared/requests.js";
import { styles } from "./lessonStyles.js";
import { EXPLORE } from "./sections.js";

const NOT_LOADED = english("The task could not be loaded: reload the page.");

/**
 * Keeps the band the first child of `host`. The server is asked for a lesson only where the address has one, and again in
 * another language. `onTask(verb)` is called with a new task: with the one that it tells to choose, "draw" for the film.
 */
export function createLesson(/** @type {HTMLElement} */ host, /** @type {(verb: string) => void} */ onTask) {
  const band = make("section", { className: "lesson", hidden: true, ariaLabel: english("Task") });
  const [place, task, answer] = ["place", "task", "answer"].map(
    (className) => make("p", { className, translate: false }), // in the page's language already
  );
  const unfold = makeButton(() => press(), { className: "quiet" }, english("Answer"));
  const next = make("a", { className: "next" }, english("Next task"));
  const others = make("a", { href: "./lessons" }, english("Lessons"));
  const close = makeButton(() => pageState.changeView({ lesson: null }), {
    className: "close",
    ariaLabel: english("Close the task"),
  });
  band.append(
    place,
    task,
    make("div", { className: "deeds" }, unfold, next, others),
    close,
    answer,
    make("style", { textContent: styles }),
  );
  host.prepend(band);
  new ResizeObserver(() => host.style.setProperty("--band", `${band.offsetHeight}px`)).observe(band);
  const startRequest = createRequestIds();
  let shown = /** @type {number | null} */ (null);
  let words = ""; // the language of what is shown
  let [opened, home] = ["", ""]; // the section, all of Explore as one, and that in which the task began

  /** Unfolds the answer, or folds it: what is below the band stays below it, wherever the page is scrolled to. */
  function press() {
    const below = /** @type {Element} */ (band.nextElementSibling);
    const place = () => below.getBoundingClientRect().top;
    const [before, height] = [place(), band.offsetHeight];
    fold(!answer.hidden);
    const wanted = before + band.offsetHeight - height;
    requestAnimationFrame(() => scrollBy(0, place() - wanted)); // once the browser has kept the place of what it anchors
  }

  function fold(/** @type {boolean} */ isFolded) {
    answer.hidden = isFolded;
    unfold.ariaExpanded = String(!isFolded);
  }

  async function show() {
    const { lesson: number = null, section = "" } = pageState.get()?.view ?? {};
    const page = EXPLORE.includes(section) ? "" : section;
    if (page !== opened) fold(true); // the answer is about the section that it was opened in
    opened = page;
    if (number !== shown) home = page;
    band.hidden = number === null || (home === "" && page !== ""); // it is not about what one builds beside it
    if (number === shown && currentLanguage() === words) return;
    const isNewTask = number !== shown;
    if (isNewTask) write(null);
    [shown, words] = [number, currentLanguage()];
    const isLatest = startRequest();
    const found = number === null ? null : await load(number).catch(() => ({ problem: translate(NOT_LOADED) }));
    if (!found || !isLatest()) return;
    write(found);
    const tells = (/** @type {string} */ words) => found.task?.includes(translate(words));
    const isFilm = tells("See how it gets there");
    if (isNewTask) onTask(tells("Look from") ? "look" : isFilm ? "draw" : "rub");
  }

  /** Shows a lesson, or why there is none; null while it is not known. */
  function write(/** @type {any} */ found) {
    const { problem = "", number, count, minutes } = found ?? {};
    place.textContent = number ? translate("Task {number} of {count}, {minutes} min", { number, count, minutes }) : "";
    task.textContent = found?.task ?? problem;
    answer.textContent = found?.answer ?? "";
    unfold.hidden = !answer.textContent;
    next.hidden = !found?.next;
    next.href = found?.next ?? "";
    others.hidden = !found || !next.hidden;
    if (!found) fold(true);
  }

  pageState.subscribe(host, show);
  languageChange.subscribe(host, show);
  show();
}

/** A lesson as the server has it, or its sentence about why there is none. */
async function load(/** @type {number} */ number) {
  const reply = await fetch(`./lessons/${number}?language=${currentLanguage()}`);
  return reply.ok ? reply.json() : { problem: await reply.text() };
}
