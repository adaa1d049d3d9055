// @ts-check
// The buttons and keys of the three verbs, and of the film.

import { sketch } from "../pad/sketch.js";
import { documentEvents } from "../shared/dom.js";
import { pageState, photoAct, photoNews } from "../shared/pageState.js";
import { beginGuess } from "./guess.js";
import { change, redraw, retry, verbOf } from "./stage.js";

const KEYS = /^( |Escape|Home|End|Page.+|Arrow(Left|Right))$/; // of the film

/**
 * Begins the film, whose code is fetched when it is first wanted, or ends it; without it there are the steps. What is pressed
 * meanwhile is the film's.
 */
async function showFilm(stage, server, request) {
  const { host, parts } = stage;
  if (stage.film) return stage.film.close();
  if (parts.isFetching) return;
  parts.isFetching = true;
  const pressed = /** @type {string[]} */ ([]);
  const keep = (event) => {
    const { key, ctrlKey, metaKey, altKey, shiftKey, target } = event;
    if (!KEYS.test(key) || ctrlKey || metaKey || altKey || shiftKey || target.matches?.("input, textarea, select"))
      return;
    event.preventDefault();
    event.stopPropagation();
    pressed.push(key);
  };
  addEventListener("keydown", keep, true);
  try {
    parts.film ??= server.load("film.js").then((all) => all["stage/film/main.js"].createFilm(stage, request));
    (await parts.film).begin();
  } catch (error) {
    console.error(error);
    parts.film = null;
    change(stage, { section: "steps" });
  } finally {
    parts.isFetching = false;
    removeEventListener("keydown", keep, true);
  }
  for (const key of pressed) host.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}

/** Where "What is it?" stands open below the answer its field gets the focus, so that a letter goes into it; returns whether it does. */
function focusName(host) {
  const field = host.querySelector(".ask[data-kind=open] input");
  if (!field?.checkVisibility({ visibilityProperty: true })) return false;
  field.focus({ preventScroll: true });
  return true;
}

/** Listens to them, for as long as the stage is on the page. */
export function listenToActs(stage, server, request) {
  const { find, host, parts } = stage;
  const { dropping } = parts;

  function undo() {
    if (verbOf(stage) === "rub") dropping.undo();
    else if (verbOf(stage) === "draw") sketch.undo();
    redraw(stage);
  }

  find(".tour").addEventListener("click", () => showFilm(stage, server, request));
  find(".undo").addEventListener("click", undo);
  find(".again").addEventListener("click", () => sketch.clear());
  find(".guess").addEventListener("click", () => {
    beginGuess(stage);
    retry(stage); // what failed
    stage.canvas.focus({ preventScroll: true });
  });
  find(".fewest").addEventListener("click", () => {
    stage.guess = null; // the search tells it
  });
  find(".back").addEventListener("click", () => dropping.restoreAll());
  find(".photo-ways").addEventListener("click", ({ target }) =>
    photoAct.publish(target.closest("[data-way]")?.dataset.way),
  );
  stage.picture.addEventListener("click", ({ target }) => {
    if (host.classList.contains("invites") && !target.closest("button")) photoAct.publish("choose");
  });
  photoNews.subscribe(host, () => redraw(stage));
  let isByHand = false; // whether it is the pointer that one works with, not the keyboard
  const listen = documentEvents(host);
  listen("pointerdown", () => {
    isByHand = true;
  });
  listen("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, shiftKey, target } = event;
    if (key === "Tab" || key.startsWith("Arrow")) isByHand = false;
    const isTyped = target.matches?.("input:not([type=radio], [type=range], [type=checkbox]), textarea, select");
    if (event.defaultPrevented || altKey || isTyped || find(".explore").classList.contains("elsewhere")) return;
    if (isByHand && /^[\p{L}\p{N}]$/u.test(key) && !ctrlKey && !metaKey && focusName(host)) return;
    const isUndo = (ctrlKey || metaKey) && !shiftKey && key.toLowerCase() === "z";
    const verb = { d: "draw", r: "rub", l: "look" }[ctrlKey || metaKey ? "" : key.toLowerCase()];
    const isFilm = !ctrlKey && !metaKey && key.toLowerCase() === "f";
    const button = find(isFilm ? ".tour:not([hidden])" : `[data-mode=${verb}]:not([hidden])`);
    if (!isUndo && !button) return;
    event.preventDefault();
    if (isUndo) undo();
    else button.click();
  });
}

/** Shows the lesson that the address names, whose code is fetched with the first one. */
export function followLesson(stage, server) {
  const onTask = (/** @type {string} */ verb) => {
    stage.pointing.verb = verb;
    redraw(stage);
  };
  let isFetched = false;
  const follow = () => {
    if (isFetched || (pageState.get()?.view.lesson ?? null) === null) return;
    isFetched = true;
    server.load("lesson.js").then((all) => all["stage/lesson.js"].createLesson(stage.host, onTask), console.error);
  };
  pageState.subscribe(stage.host, follow);
  follow();
}
