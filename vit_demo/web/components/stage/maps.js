// Maps that the server makes: asked for when they are to be shown, remembered as long as their result.

/**
 * `want(result, question)` gives the fate of a map at once and asks for it if need be: {map}, {error}, or neither while
 * it is being worked out, with `slow` and `share` (0 to 1) when that takes long. `changed()` is called on any news.
 * A failure stays until something else is wanted or `retry()` is called, so that drawing alone repeats no request.
 */
function createMaps(changed) {
  const remembered = new WeakMap(); // result -> Map from question to fate
  let current = null; // only what is to be shown is worth the server's time
  let preparing = null;

  async function fetchMap(result, question, fate) {
    const wanted = () => fate === current || fate === preparing;
    if (question.block !== undefined) await pause(SETTLE);
    const said = await askServer({ about: "map", source: result.source, ...question }, wanted, (share) => {
      Object.assign(fate, { slow: true, share });
      fate.heard();
      changed();
    });
    if (!said) fate.forget();
    else if (said.error) fate.error = said.error;
    else fate.map = decodeFloat32(said.answer.map);
    fate.heard();
    if (said) changed();
  }

  function fateOf(result, question) {
    const fates = remembered.get(result) ?? remembered.set(result, new Map()).get(result);
    const name = JSON.stringify(question);
    return { fates, name, fate: fates.get(name) };
  }

  function ask(result, question, become) {
    const { fates, name, fate: known } = fateOf(result, question);
    if (known) return become(known);
    const fate = { map: null, error: "", slow: false, share: null, forget: () => fates.delete(name) };
    fate.news = new Promise((resolve) => (fate.heard = resolve));
    fates.set(name, fate);
    become(fate);
    fetchMap(result, question, fate);
    return fate;
  }

  function retry() {
    if (!current?.error) return;
    current.forget();
    current = null;
  }

  return {
    want: (result, question) =>
      ask(result, question, (fate) => {
        if (fate !== current) retry();
        current = fate;
        if (preparing === fate) preparing = null;
        return fate;
      }),
    rest() {
      retry();
      current = null;
    },
    /** Lets the map that failed be asked for again, the next time it is wanted. */
    retry,
    /** Waits for the first word about the map of a result that is not shown yet. */
    prepare: (result, question) => ask(result, question, (fate) => (preparing = fate)).news,
  };
}
