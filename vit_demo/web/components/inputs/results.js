// One result for the page's state: requested whenever picture, model, patch size or fit change.

import { newResult, resultStatus } from "../shared/channels.js";
import { english } from "../shared/language.js";
import { RESTORE } from "../shared/pageState.js";
import { createRequestIds, pause, sendRequest } from "../stage/requests.js";

const PROMPTS = {
  digits: english("Draw a digit, 0 to 9, to see the model’s prediction."),
  photos: english("Drop, paste or take a photo to see the model’s prediction."),
};

const NO_RESULT = english("There is no result for this picture.");

const KEPT = 6; // results for the way back
const LONGEST_PAUSE = 8000; // milliseconds
export const LOST = english("The connection to the server was lost. Trying again …");

/**
 * `follow(state, how)` requests the result of a state and publishes it, unless a newer state has come meanwhile; `retry()`
 * sends the newest request again. `drawingOf(strokes)` gives a drawing's data URL. `opening` is the state whose result is
 * on the stage already.
 */
export function createResults(server, { drawingOf, opening, firstPause = 1000 }) {
  const ids = createRequestIds();
  const cache = new Map(); // from a source to its payload, the latest last
  let newest = { key: keyOf(opening), state: opening, restored: false, isDone: true };
  let shownKey = newest.key;
  let shownTask = opening?.task;

  function sourceOf({ task, [task]: { picture, preset, patchSize, fit } }) {
    if (!picture) return null;
    return { ...pictureField(picture), preset, patch_size: patchSize, fit: fit ?? "crop", dropped: [] };
  }

  function pictureField({ digit, strokes, example, upload }) {
    if (strokes) return { drawing: drawingOf(strokes) };
    return upload ? { upload } : { example: example ?? `digit-${digit}` };
  }

  function keyOf(state) {
    return state && JSON.stringify([state.task, sourceOf(state)]);
  }

  function follow(state, how) {
    const key = keyOf(state);
    const restored = how === RESTORE;
    if (key !== newest.key) {
      newest = { key, state, restored, isDone: false };
      load();
    } else {
      newest = { ...newest, state, restored: restored || (newest.restored && !newest.isDone) };
      if (restored && newest.isDone) show(null);
    }
  }

  /** Shows the newest result; for null the one that is on the stage. */
  function show(payload) {
    newest.isDone = true;
    const key = newest.key;
    const isNewest = () => newest.key === key;
    shownKey = key;
    shownTask = newest.state.task;
    const onShown = () => isNewest() && publishStatus("done");
    newResult.publish({ payload, view: newest.state.view, restored: newest.restored, isNewest, onShown });
  }

  /** The last result of the tab stays, marked as old; that of the other tab does not. */
  function fail({ error, retry = true }) {
    publishStatus("failed", error, retry);
    const { key, state, restored } = newest;
    if (state.task === shownTask) return;
    shownKey = shownTask = null;
    const isNewest = () => newest.key === key;
    newResult.publish({ payload: { empty: true, message: NO_RESULT }, view: state.view, restored, isNewest });
  }

  const publishStatus = (state, sentence = "", canRetry = true) => resultStatus.publish({ state, sentence, canRetry });

  async function load() {
    const isCurrent = ids.start();
    const { key, state } = newest;
    const source = sourceOf(state);
    if (key === shownKey) return show(null);
    if (!source) return show({ empty: true, message: PROMPTS[state.task] });
    if (cache.has(key)) return show(cache.get(key));
    publishStatus("pending");
    for (let wait = firstPause; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
      const reply = await sendRequest(server, { kind: "result", source }, { isCurrent });
      if (!isCurrent() || !reply) return;
      if (reply.result) {
        remember(key, reply.result);
        show(reply.result);
        return;
      }
      if (!reply.lost) return fail(reply);
      publishStatus("lost", LOST);
      await pause(wait);
      if (!isCurrent()) return;
    }
  }

  function remember(key, payload) {
    cache.delete(key);
    cache.set(key, payload);
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
  }

  return { follow, retry: () => newest.isDone || load() };
}
