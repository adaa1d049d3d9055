// @ts-check
// The address bar: each choice is a step of the browser's history, strokes and sliders change the step they are in.

import { decodeLink, encodeLink } from "./link.js";
import { PUSH, REPLACE, TASKS } from "./pageState.js";

const SETTLE = 250; // milliseconds; browsers refuse hundreds of changes of the address within seconds
const SPACES = "https://huggingface.co";

/**
 * Keeps the address and the state the same; `page` is that of `decodeLink`, and `linked` that of the menu, for a step of the
 * history whose model must be downloaded. Until it is here, the step keeps its address.
 *
 * Returns what the address or the history holds now, as `decodeLink` does, or null.
 */
export function syncHistory(element, pageState, page, linked, browser = window) {
  const { history, location } = browser;
  let current = /** @type {any} */ (null); // the state of this step of the history
  let timer = 0;

  function write(state, how) {
    clearTimeout(timer);
    timer = 0;
    const fragment = `#${encodeLink(state, page)}`;
    history[how === PUSH ? "pushState" : "replaceState"](encodeEntry(state, page), "", fragment);
    // A page in a frame of Hugging Face cannot change the address that the visitor sees, but Hugging Face can.
    if (browser.parent !== browser) browser.parent.postMessage({ hash: fragment }, SPACES);
  }

  const flush = () => timer && write(current, REPLACE);

  pageState.subscribe(element, (state, how) => {
    if (how === PUSH) {
      flush();
      write(state, PUSH);
    } else if (how === REPLACE && !linked.isAwaited()) {
      clearTimeout(timer);
      timer = setTimeout(flush, SETTLE);
    }
    current = state;
  });

  const read = (entry) => decodeEntry(entry, page) ?? decodeLink(location.hash, page);

  browser.addEventListener("pagehide", () => element.isConnected && flush());
  browser.addEventListener("popstate", ({ state: entry }) => {
    if (!element.isConnected) return;
    clearTimeout(timer);
    timer = 0;
    const { state, model } = read(entry) ?? { state: page.first, model: null };
    pageState.restore(state);
    if (model) linked.open(model);
    else linked.leave();
  });

  return read(history.state);
}

/** A step of the history: a link for each tab, and the upload, which no link holds. */
export function encodeEntry(state, page) {
  const links = Object.fromEntries(TASKS.map((task) => [task, `tab=${task}&${encodeLink({ ...state, task }, page)}`]));
  const uploads = Object.fromEntries(TASKS.map((task) => [task, state[task].picture?.upload && state[task].picture]));
  return { task: state.task, links, uploads };
}

/** As `decodeLink`, for a step of the history. */
export function decodeEntry(entry, page) {
  if (!TASKS.includes(entry?.task)) return null;
  const found = TASKS.flatMap((task) => decodeLink(String(entry.links?.[task]), page) ?? []);
  if (found.length < TASKS.length) return null;
  const tabs = Object.fromEntries(TASKS.map((task, i) => [task, found[i].state[task]]));
  for (const task of TASKS) {
    const { upload, name } = entry.uploads?.[task] ?? {};
    if (typeof upload === "string" && typeof name === "string") tabs[task].picture = { upload, name };
  }
  const { state, model } = found[TASKS.indexOf(entry.task)];
  return { state: { ...state, ...tabs }, model };
}
