// @ts-check
// One result for the page's state: requested whenever picture, model, patch size or fit change.

import { english } from "../shared/language.js";
import { newResult, RESTORE, resultStatus, withWords } from "../shared/pageState.js";
import { createRequestIds, pause, sendRequest } from "../shared/requests.js";

const PROMPTS = {
  digits: english("Here: one digit from 0 to 9."),
  photos: english("Press here to choose a photo, or drop or paste one."),
};

const UNREADABLE = english(
  "This browser hides drawings from web pages: allow this page to read its canvas, or drop a photo of a digit.",
);

const CACHED = 6; // results for the way back
const LONGEST_PAUSE = 8000; // milliseconds
export const LOST = english("The connection to the server was lost. Trying again …");

/**
 * `update(state, how)` requests the result of a state and publishes it, unless a newer state has come meanwhile; `retry()`
 * sends the newest request again. `drawingOf(strokes)` gives a drawing's data URL, or null where it cannot be read;
 * `previewOf(picture)` the address of a small copy, or "". `opening` is the state whose result is on the stage already;
 * `onRefused(sentence)` is called when the picture cannot be used.
 */
export function createResults(
  server,
  { drawingOf, previewOf, opening, onRefused = (_sentence) => {}, firstPause = 1000 },
) {
  const startRequest = createRequestIds();
  const cache = new Map(); // from a source to its payload, the latest last
  /** The newest request, {key, state, restored, isDone}. @type {any} */
  let newest = { key: keyOf(opening), state: opening, restored: false, isDone: true };
  let shownKey = newest.key;
  let shownPicture = pictureOf(opening);

  /**
   * @param {import("../shared/pageState.js").State} state
   * @returns {import("../types").SourcePayload | null}
   */
  function sourceOf(state) {
    const { picture, preset, patchSize, fit, words } = state[state.task];
    if (!picture || picture.refused) return null;
    const source = { ...pictureField(picture), preset, patch_size: patchSize, fit: fit ?? "crop", dropped: [] };
    return withWords(source, words);
  }

  function pictureField(/** @type {import("../shared/pageState.js").Picture} */ { digit, strokes, example, upload }) {
    if (strokes) return { drawing: drawingOf(strokes) };
    return upload ? { upload } : { example: example ?? `digit-${digit}` };
  }

  function keyOf(state) {
    return state && JSON.stringify([state.task, sourceOf(state), refusalOf(state)]);
  }

  function update(state, how) {
    const key = keyOf(state);
    const restored = how === RESTORE;
    if (key !== newest.key) {
      const isOfLink = restored && newest.state === opening;
      newest = { key, state, restored, isDone: false };
      load(isOfLink);
    } else {
      newest = { ...newest, state, restored: restored || (newest.restored && !newest.isDone) };
    }
  }

  /** Shows the newest result; for null the one that is on the stage. */
  function show(payload) {
    newest.isDone = true;
    const key = newest.key;
    const isNewest = () => newest.key === key;
    shownKey = key;
    shownPicture = pictureOf(newest.state);
    const onShown = () => isNewest() && publishStatus("done");
    const { task, digits } = newest.state;
    const digit = task === "digits" ? digits.picture?.digit : undefined;
    newResult.publish({ payload, digit, restored: newest.restored, isNewest, onShown });
  }

  /** The result of the same picture stays, marked as old; for another one the sentence takes its place. */
  function fail(status, sentence, canRetry = true) {
    publishStatus(status, sentence, canRetry);
    if (pictureOf(newest.state) !== shownPicture) replace({ empty: true, message: sentence });
  }

  /** Takes another picture than the wanted one from the stage. */
  function replace(payload) {
    const { key, restored } = newest;
    shownKey = shownPicture = null;
    newResult.publish({ payload, restored, isNewest: () => newest.key === key });
  }

  const publishStatus = (state, sentence = "", canRetry = true) => resultStatus.publish({ state, sentence, canRetry });

  /** A page that is opened by a link does not show another picture first. */
  async function load(isOfLink = false) {
    const isCurrent = startRequest();
    const { key, state } = newest;
    const source = sourceOf(state);
    const refused = refusalOf(state);
    if (refused) return fail("failed", refused, false);
    if (key === shownKey) return show(null);
    if (source?.drawing === null) return fail("failed", UNREADABLE, false);
    if (!source) return show({ empty: true, message: PROMPTS[state.task] });
    publishStatus("pending");
    if (isOfLink && pictureOf(state) !== shownPicture) {
      replace({ empty: true, message: "", picture: previewOf(state[state.task].picture) });
    }
    if (cache.has(key)) return show(cache.get(key));
    for (let wait = firstPause; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
      const reply = await sendRequest(server, { kind: "result", source }, { isCurrent });
      if (!isCurrent() || !reply) return;
      if (reply.result) {
        remember(key, reply.result);
        return show(reply.result);
      }
      if (!reply.lost) {
        fail("failed", reply.error, reply.retry);
        return reply.retry === false ? onRefused(reply.error) : null;
      }
      fail("lost", LOST);
      await pause(wait);
      if (!isCurrent()) return;
    }
  }

  function remember(key, payload) {
    cache.delete(key);
    cache.set(key, payload);
    if (cache.size > CACHED) cache.delete(cache.keys().next().value);
  }

  return { update, retry: () => newest.isDone || load() };
}

/** What tells one picture from another. */
const pictureOf = (state) => state && JSON.stringify([state.task, state[state.task].picture]);

/** Why the photo that the visitor chose is none; undefined for others. */
const refusalOf = (/** @type {import("../shared/pageState.js").State} */ state) => state[state.task].picture?.refused;
