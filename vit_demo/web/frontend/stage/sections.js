// @ts-check
// The sections of the page: Explore, whose picture stays and whose chapters follow below, Compare and Build.

import { make, makeButton, put, setText } from "../shared/dom.js";
import { english } from "../shared/language.js";
import { resultStatus, retryResult } from "../shared/pageState.js";

export const FIRST_SECTION = "attention";

/** What is on the page of Explore: the map, what the tokens hold, and the chapter of the eight steps. */
export const EXPLORE = [FIRST_SECTION, "features", "steps"];
/** Sections that the header's button of another one leads to. */
const WITHIN = { ...Object.fromEntries(EXPLORE.map((name) => [name, FIRST_SECTION])), teach: "build" };

/**
 * Shows the parts of the open section, of `parts`, a list of [element, names of its sections], and marks its button in the
 * page's header. `onChoose(name)` is called when a visitor chooses one there. In a notebook there is no header.
 */
export function createSections(parts, onChoose) {
  const isOffered = (/** @type {string} */ name) => parts.some(([, names]) => names.includes(name));

  function open(/** @type {string} */ name) {
    put(document.body.dataset, { section: name }); // for the inputs, of which some are not there in every section
    for (const button of document.querySelectorAll("#header [data-section]")) {
      const own = /** @type {HTMLElement} */ (button).dataset.section ?? "";
      put(button, { ariaCurrent: String(own === (WITHIN[name] ?? name)) });
    }
    for (const [part, names] of parts) part.classList.toggle("elsewhere", !names.includes(name));
  }

  document.querySelector("#header nav")?.addEventListener("click", ({ target }) => {
    const button = /** @type {HTMLElement} */ (target).closest("[data-section]");
    const { section } = /** @type {HTMLElement | null} */ (button)?.dataset ?? {};
    if (section) onChoose(section);
  });
  return { open, isOffered };
}

/** Tells the page whether a chapter is at the foot of the screen, where on a phone its bar is instead of that of the inputs. */
export function watchFoot(/** @type {Element} */ chapter) {
  const follow = (/** @type {IntersectionObserverEntry[]} */ entries) => {
    document.body.dataset.walks = String(entries.at(-1)?.isIntersecting);
  };
  new IntersectionObserver(follow, { rootMargin: "-88% 0px 0px" }).observe(chapter);
}

// Whether the result on the stage is the one that was requested last, and what to do if it is not.

/**
 * Follows `resultStatus`. Its states: "done"; "pending", the result of before is marked as old; "failed" and "lost", a
 * sentence in every section, with a button that tries again where that may help. Where the picture would be, if there is
 * none, the stage has the sentence already, and only the button is added.
 */
export function createStatus(/** @type {HTMLElement} */ element, /** @type {HTMLElement} */ stage) {
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
