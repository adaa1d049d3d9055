// Maps that the server computes: requested when they are to be shown, and kept as long as their result.

import { decodeFloat32 } from "./decode.js";
import { pause } from "./requests.js";

const SETTLE = 120; // milliseconds; a slider that only passes a block should not cost a request

/**
 * `get(result, fields)` returns the entry of a map, {map, error, slow, progress}, and requests the map if need be. While
 * it is being computed, `map` is null; `slow` is true and `progress` 0 to 1 (or null) when that takes long.
 * `onUpdate()` is called whenever an entry changes. An error stays until another map is wanted or `retry()` is called, so
 * that drawing alone repeats no request.
 */
export function createMapRequests(request, onUpdate) {
  const cache = new WeakMap(); // result -> Map from the request's fields to its entry
  let current = null; // only a map that is to be shown keeps the server busy
  let prefetched = null; // or one of the next result

  function get(result, fields, { isPrefetch = false } = {}) {
    const entries = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = JSON.stringify(fields);
    const known = entries.get(key);
    const entry = known ?? createEntry(() => entries.delete(key));
    entries.set(key, entry);
    if (isPrefetch) prefetched = entry;
    else show(entry);
    if (known) return entry;
    const isCurrent = () => entry === current || entry === prefetched;
    const onProgress = (progress) => entry.update({ slow: true, progress });
    const send = () => request({ kind: "map", source: result.source, ...fields }, { isCurrent, onProgress });
    const reply = fields.block === undefined ? send() : pause(SETTLE).then(send);
    reply.then((received) => {
      if (!received) entry.forget();
      else if (received.error) entry.update({ error: received.error });
      else entry.update({ map: decodeFloat32(received.result.map) });
    });
    return entry;
  }

  function createEntry(remove) {
    const entry = { map: null, error: "", slow: false, progress: null };
    entry.firstReply = new Promise((resolve) => {
      entry.update = (part) => {
        Object.assign(entry, part);
        resolve();
        onUpdate();
      };
      entry.forget = () => {
        remove();
        resolve();
      };
    });
    return entry;
  }

  function show(entry) {
    if (entry !== current) retry();
    current = entry;
    if (prefetched === entry) prefetched = null;
  }

  /** Lets a map that failed be requested again, the next time it is wanted. */
  function retry() {
    if (!current?.error) return;
    current.forget();
    current = null;
  }

  /** No map of the server is shown: what is being computed is no longer needed. */
  function release() {
    retry();
    current = null;
  }

  /** Requests the map of a result that is not shown yet; resolves with the first reply about it. */
  const prefetch = (result, fields) => get(result, fields, { isPrefetch: true }).firstReply;

  return { get, release, retry, prefetch };
}
