// @ts-check
// Live answers while a picture changes: one request at a time, each about the picture as it is by then. Where the server is
// busy or does not reply, the next one waits a little longer, without a word: the ordinary result says what is wrong.

import { pause } from "./requests.js";

const [FIRST_PAUSE, LONGEST_PAUSE] = [100, 3000]; // milliseconds, after one request that got no answer and after many

/**
 * `ask(make)` wants an answer about `make()`, {fields} of a request or null for none, also as a promise; of what is asked
 * while a request is under way, only the last is made, when that has its answer. `send(fields)` resolves to a reply, and
 * sends the same again while it is only progress. `onAnswer(result, made)`, which is awaited, gets each answer. After
 * `stop()` no answer of what was asked before arrives.
 *
 * @template {{fields: any}} Made
 * @param {(fields: any) => Promise<import("../types").Reply>} send
 * @param {{onAnswer: (result: any, made: Made) => unknown, wait?: (milliseconds: number) => Promise<unknown>}} options
 */
export function createLive(send, { onAnswer, wait = pause }) {
  /** @type {(() => Made | null | Promise<Made | null>) | null} */
  let wanted = null;
  let isBusy = false;
  let epoch = 0;
  let slower = 0; // milliseconds

  async function answer(/** @type {Made} */ made, /** @type {number} */ mine) {
    for (;;) {
      const reply = await send(made.fields).catch(() => null);
      if (mine !== epoch) return;
      if (reply?.result) {
        slower = slower > FIRST_PAUSE ? slower / 2 : 0;
        await onAnswer(reply.result, made);
        return wait(slower);
      }
      if (!reply || reply.error) {
        slower = Math.min(LONGEST_PAUSE, Math.max(FIRST_PAUSE, 2 * slower));
        return wait(slower);
      }
    }
  }

  async function pump() {
    const mine = epoch;
    isBusy = true;
    while (wanted && mine === epoch) {
      const make = wanted;
      wanted = null;
      const made = await make();
      if (made && mine === epoch) await answer(made, mine);
    }
    if (mine === epoch) isBusy = false;
  }

  return {
    ask(/** @type {() => Made | null | Promise<Made | null>} */ make) {
      wanted = make;
      if (!isBusy) pump();
    },
    stop() {
      epoch++;
      wanted = null;
      isBusy = false; // the server drops what was asked before as soon as there is another
    },
  };
}
