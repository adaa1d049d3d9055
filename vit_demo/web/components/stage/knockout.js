// Knock-out: patches that the visitor takes out of the sequence, and the result that is left without them.

/**
 * `show(result)` gets what is left, once `prepare(result)` is through; `changed()` is called when a patch comes or goes,
 * or cannot.
 */
function createKnockout(prepare, show, changed) {
  let whole = null; // the result with all its patches
  let gone = new Set();
  let agreed = new Set(); // those that the shown result is without
  let error = "";
  let turn = 0;

  function start(result) {
    turn++;
    whole = result;
    gone = new Set();
    agreed = new Set();
    error = "";
  }

  async function ask() {
    const mine = ++turn;
    const patches = [...gone].sort((a, b) => a - b);
    const next = patches.length ? await without(patches, () => mine === turn) : whole;
    if (next && mine === turn) await prepare(next);
    if (!next || mine !== turn) return;
    agreed = new Set(patches);
    show(next);
  }

  async function without(patches, wanted) {
    const said = await askServer({ about: "result", source: { ...whole.source, dropped: patches } }, wanted);
    if (said?.answer) return openResult(said.answer);
    if (said) {
      gone = new Set(agreed);
      refuse(said.error);
    }
    return null;
  }

  function change(patches) {
    gone = patches;
    error = "";
    changed();
    ask();
  }

  function refuse(reason) {
    error = reason;
    changed();
  }

  function toggle(patch) {
    const patches = new Set(gone);
    if (!patches.delete(patch)) patches.add(patch);
    if (patches.size === whole.patches) refuse("At least one patch must stay.");
    else change(patches);
  }

  return {
    start,
    toggle,
    putBack: () => change(new Set()),
    gone: () => gone,
    whole: () => whole,
    error: () => error,
  };
}
