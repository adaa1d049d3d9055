// Loads the tokens that are to be shown: of a result and a block, alone or together with a second picture.

import { inkOnPaper } from "../../ink.js";
import { pause } from "../../requests.js";
import { decodeTokens } from "./tokens.js";

const SETTLE = 120; // milliseconds; a slider that only passes a block should not cost a request

/**
 * `get(result, block, kept)` returns an entry, {tokens, image, error, isLoading, isSlow, progress}: `tokens` is null
 * and `isLoading` true until they are there; `isSlow` if that takes several replies; `image` is that of the second
 * picture. `kept`, {id, source}, is the second picture, or null. `onUpdate()` is called whenever an entry changes.
 */
export function createTokenLoader(request, onUpdate, openImage = decodeImage) {
  const cache = new WeakMap(); // result -> Map from block and second picture to its entry
  let current = null; // only what is to be shown keeps the server busy
  let forget = () => {};

  function get(result, block, kept) {
    const entries = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = `${block} ${kept ? kept.id : ""}`;
    const known = entries.get(key);
    if (known) {
      current = known;
      forget = () => entries.delete(key);
      return known;
    }
    const isFirst = entries.size === 0;
    const entry = { tokens: null, image: null, error: "", isLoading: true, isSlow: false, progress: null };
    entries.set(key, entry);
    current = entry;
    forget = () => entries.delete(key);
    load(entry, result, block, kept, isFirst ? 0 : SETTLE).then((isDone) => {
      if (!isDone) entries.delete(key);
      onUpdate();
    });
    return entry;
  }

  /** Resolves to false if the tokens were no longer wanted. */
  async function load(entry, result, block, kept, delay) {
    const isCurrent = () => entry === current;
    await pause(delay);
    if (!isCurrent()) return false;
    const onProgress = (progress) => {
      Object.assign(entry, { isSlow: true, progress });
      onUpdate();
    };
    const fields = { kind: "tokens", source: result.source, block, other: kept?.source };
    const reply = await request(fields, { isCurrent, onProgress });
    if (!reply) return false;
    entry.isLoading = false;
    if (reply.error) {
      entry.error = reply.error;
      return true;
    }
    const second = reply.result.pictures[1];
    entry.image = second ? await openImage(second.image, result.pixelated) : null;
    entry.tokens = decodeTokens(reply.result);
    return true;
  }

  /** Lets tokens that could not be loaded be requested again. */
  function retry() {
    if (current?.error) forget();
  }

  return { get, retry };
}

/** The picture at an address; a drawing as ink on paper. */
async function decodeImage(url, isDrawing) {
  const image = new Image();
  image.src = url;
  await image.decode();
  return isDrawing ? inkOnPaper(image) : image;
}
