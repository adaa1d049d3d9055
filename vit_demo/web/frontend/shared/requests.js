// @ts-check
// Requests to the server, and which replies come too late.

import { english } from "./language.js";

/**
 * The server at an address. `request(fields)` resolves to its reply, `upload(file)` to {path} or {error: one sentence}; both
 * reject where there is no answer. A request with `live: true` is about a picture that changes: the server keeps nothing of
 * it, and drops it if this page sends another.
 *
 * @param {string} address
 * @returns {import("../types").Server}
 */
export function connect(address) {
  const post = async (name, body, headers = {}) =>
    (await fetch(`${address}/${name}`, { method: "POST", body, headers })).json();
  const json = { "Content-Type": "application/json" };
  const page = Math.random().toString(36).slice(2);
  const request = (fields) =>
    fields.live
      ? post("live", JSON.stringify({ ...fields, live: page }), json)
      : post("request", JSON.stringify(fields), json);
  return { request, upload: (file) => post("photo", file) };
}

export const NOT_LOADED = english("This part of the page could not be loaded: reload the page.");
const NOT_UPLOADED = english("The photo could not be uploaded: check the connection and try again.");

/**
 * Uploads a photo: resolves to {path}, or to {error} with the server's own sentence if it gave one.
 *
 * @returns {Promise<{path?: string, error?: string}>}
 */
export async function sendPhoto(/** @type {import("../types").Server["upload"]} */ upload, /** @type {File} */ file) {
  const sent = await upload(file).catch(() => null);
  return sent?.path ? sent : { error: sent?.error ?? NOT_UPLOADED };
}

/** Numbers requests: a function that begins one, and returns a function that is true until the next begins. */
export function createRequestIds() {
  let latest = 0;
  return () => {
    const requestId = ++latest;
    return () => requestId === latest;
  };
}

/**
 * Sends a request, again and again until its result is there, since one call waits only for a moment.
 *
 * Resolves to {result} or {error: one sentence}, with {lost: true} if no reply came, or to null as soon as `isCurrent()`
 * is false: then a reply that still arrives is dropped. `onProgress(progress, reply)` is called while it is computed, with
 * 0 to 1, or null where that is not known.
 *
 * @param {import("../types").Server} server
 * @param {import("../types").Request} fields
 * @param {{isCurrent?: () => boolean, onProgress?: (progress: number | null, reply: import("../types").Reply) => void}} [options]
 * @returns {Promise<import("../types").Reply | null>}
 */
export async function sendRequest(server, fields, { isCurrent = () => true, onProgress = () => {} } = {}) {
  for (;;) {
    if (!isCurrent()) return null;
    const reply = await server.request(fields).catch(() => null);
    if (!isCurrent()) return null;
    if (!reply) return { error: english("The server did not respond: try again."), lost: true };
    if (reply.error || reply.result) return reply;
    onProgress(reply.total ? (reply.done ?? 0) / reply.total : null, reply);
  }
}

/** Milliseconds that a choice must hold before it costs a request: a slider or key may only pass it. */
export const SETTLE = 120;

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Replies about results, each requested once. `get(result, fields, decode, {delay, slot})` returns an entry, {value, error,
 * isLoading, isSlow, progress, firstReply}: `value` is what `decode(reply)` returns, null until it is there; `isSlow` if
 * that takes several replies. Only the newest entry of a slot, by default one for each kind, keeps the server busy, and one
 * that another replaces within `delay` milliseconds is not requested at all. An error stays until another entry is wanted
 * in its slot, or `retry()`, so that drawing alone repeats no request. `release(slot)`: nothing is wanted in it.
 * `onUpdate()` is called whenever an entry changes.
 */
export function createReplyCache(request, onUpdate) {
  const cache = new WeakMap(); // result -> Map from the fields of a request to its entry
  const newest = new Map(); // by slot

  function get(result, fields, decode, { delay = 0, slot = fields.kind } = {}) {
    const entries = cache.get(result) ?? cache.set(result, new Map()).get(result);
    const key = JSON.stringify(fields);
    if (newest.get(slot) !== entries.get(key)) release(slot);
    const known = entries.get(key);
    const entry = known ?? createEntry(() => entries.delete(key));
    for (const [each, held] of newest) if (held === entry) newest.delete(each);
    newest.set(slot, entry);
    entries.set(key, entry);
    if (!known) load(entry, { ...fields, source: result.source }, decode, delay);
    return entry;
  }

  function createEntry(forget) {
    /** @type {any} */
    const entry = { value: null, error: "", isLoading: true, isSlow: false, progress: null, forget };
    entry.firstReply = new Promise((/** @type {(value?: unknown) => void} */ resolve) => {
      entry.resolve = resolve;
    });
    return entry;
  }

  async function load(entry, fields, decode, delay) {
    const isCurrent = () => [...newest.values()].includes(entry);
    function put(part) {
      Object.assign(entry, part);
      entry.resolve();
      onUpdate();
    }
    if (delay) await pause(delay);
    const onProgress = (progress) => put({ isSlow: true, progress });
    const reply = isCurrent() ? await request(fields, { isCurrent, onProgress }) : null;
    if (reply?.error) return put({ error: reply.error, isLoading: false });
    if (reply) return put({ value: await decode(reply.result), isLoading: false });
    entry.forget();
    entry.resolve();
  }

  /** What is being computed in a slot is no longer needed, and what failed may be requested again. */
  function release(slot) {
    if (newest.get(slot)?.error) newest.get(slot).forget();
    newest.delete(slot);
  }

  /** Lets what failed be requested again, the next time it is wanted. */
  function retry() {
    for (const entry of newest.values()) if (entry.error) entry.forget();
  }

  return { get, release, retry };
}
