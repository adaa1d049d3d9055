// @ts-check
// Requests to the server, and which replies come too late.

import { english } from "./language.js";

/** Numbers requests: `start()` returns a function that is true until the next `start()`. */
export function createRequestIds() {
  let latest = 0;
  return {
    start() {
      const requestId = ++latest;
      return () => requestId === latest;
    },
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
    // Gradio resolves to undefined when the request failed.
    if (!reply) return { error: english("The server did not respond: try again."), lost: true };
    if (reply.error || reply.result) return reply;
    onProgress(reply.total ? (reply.done ?? 0) / reply.total : null, reply);
  }
}

/** Milliseconds that a choice must hold before it costs a request: a slider or key may only pass it. */
export const SETTLE = 120;

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
