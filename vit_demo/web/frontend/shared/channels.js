// How the components of a page talk to each other: the stage, the pad and the small photo import the same channels.

/** `follow(element, callback)` calls back with what is published, for as long as the element is on the page. */
export function createChannel(latest = null) {
  const followers = new Map();

  function publish(value) {
    latest = value;
    for (const [element, callback] of followers) {
      if (element.isConnected) callback(value);
      else followers.delete(element);
    }
  }

  return { publish, latest: () => latest, follow: (element, callback) => followers.set(element, callback) };
}

/**
 * What the stage is to show: {payload, view, restored, isNewest(), onShown()}. Without a payload it keeps its result; `view` is that of the page's
 * state, and `restored` tells whether it came from the address, so that it holds for another model, too. The stage calls
 * `onShown()` when it shows it, and does not show what is no longer the newest.
 */
export const newResult = createChannel();

/** How the request for the newest result goes: {state, sentence, canRetry}, see `stage/status.js`. */
export const resultStatus = createChannel({ state: "done", sentence: "" });

/** The visitor wants the newest result requested again. */
export const retryResult = createChannel();

/** The result on the stage, or null. */
export const shownResult = createChannel();

/** What the model saw of the result on the stage: {digit, photo}, each null where there is none. */
export const modelInput = createChannel({ digit: null, photo: null });

/** Patches that are clicked outside of the stage. */
export const clickedPatch = createChannel();
