// @ts-check
// Questions while something is still changing: the next one goes when the last answer is there.

/** `send(fields)` resolves to a reply; `ask(make)` asks what `make()` returns by then, or nothing for null; `stop()` drops what is to come. */
export function createLive(send, { onAnswer }) {
  let [isBusy, latest, epoch] = [false, /** @type {any} */ (null), 0];

  async function pump() {
    isBusy = true;
    while (latest) {
      const [make, mine] = [latest, epoch];
      latest = null;
      const asked = make();
      if (!asked) continue;
      const reply = await send(asked.fields).catch(() => null);
      if (mine === epoch && reply?.result) await onAnswer(reply.result, asked);
    }
    isBusy = false;
  }

  return {
    ask(make) {
      latest = make;
      if (!isBusy) pump();
    },
    stop() {
      epoch++;
      latest = null;
    },
  };
}
