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

/** What the model saw of the result on the stage: {digit, photo}, each null where there is none. */
export const modelInput = createChannel({ digit: null, photo: null });

/** Patches that are clicked outside of the stage. */
export const clickedPatch = createChannel();
