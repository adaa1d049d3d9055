// @ts-check
// Dropped patches: the visitor takes patches out of the sequence, and the model runs on the tokens that are left. They are
// hatched in every picture.

import { english } from "../shared/language.js";
import { createRequestIds } from "../shared/requests.js";
import { openResult } from "./result.js";

/**
 * `chosen()` are the dropped patches of the page's view, or null; `keptClass()` is {label} of the class that stays explained,
 * or {}; `prepare(result)` is awaited before `show(result)` gets the
 * result without them; `onChange(part)` is called with the choices that follow when a patch is dropped or restored, or
 * cannot be.
 */
export function createDropping(request, { chosen, keptClass, prepare, show, onChange, open = openResult }) {
  const startRequest = createRequestIds();
  let whole = /** @type {any} */ (null); // the result with all its patches
  let shown = /** @type {any} */ (null);
  let acts = /** @type {number[][]} */ ([]); // what was rubbed out before each act
  let wanted = []; // the patches without which a result is shown or under way
  let isErasing = /** @type {boolean | null} */ (null); // whether the brush drops patches; null while it is lifted
  let error = "";

  const listed = () => chosen() ?? whole.dropped;
  const dropped = () => new Set(listed());

  const choose = (patches) => onChange({ pinned: null, ...keptClass(), dropped: patches.length ? patches : null });

  /** Begins with a result, which has all its patches, or is shown where they cannot be restored. */
  function start(result) {
    startRequest();
    whole = shown = result;
    acts = [];
    wanted = result.dropped;
    isErasing = null;
    error = "";
  }

  /** Ends with the result: a reply that is still to come shows nothing. */
  const cancel = () => startRequest();

  /** Shows the result without the patches that are chosen now, whoever chose them: a click, a link or the history. */
  async function follow() {
    const patches = listed();
    if (isErasing !== null || isSame(patches, wanted)) return;
    const isCurrent = startRequest();
    wanted = patches;
    const known = [whole, shown].find((each) => isSame(each.dropped, patches));
    const next = known ?? (await resultWithout(patches, isCurrent));
    if (next && isCurrent()) await prepare(next);
    if (!next || !isCurrent()) return;
    shown = next;
    show(next);
  }

  async function resultWithout(patches, isCurrent) {
    const source = { ...whole.source, dropped: patches };
    const reply = await request({ kind: "result", source }, { isCurrent });
    if (reply?.result) return open(reply.result);
    if (reply) {
      wanted = shown.dropped;
      error = reply.error;
      choose(wanted);
    }
    return null;
  }

  function restoreAll() {
    error = "";
    keepAct();
    choose([]);
    follow();
  }

  /** What is rubbed out now can be had again by `undo()`. */
  const keepAct = () => acts.push(listed());

  /** Takes back the last act. */
  function undo() {
    if (!acts.length) return;
    error = "";
    choose(acts.pop() ?? []);
    follow();
  }

  /** Drops patches under a brush, or restores them if it begins at a dropped one; `lift()` it, and the model runs. */
  function brush(patch) {
    const patches = dropped();
    if (isErasing === null) keepAct();
    isErasing ??= !patches.has(patch);
    if (isErasing) patches.add(patch);
    else patches.delete(patch);
    const isLast = patches.size === whole.numPatches;
    error = isLast ? english("At least one patch must stay.") : "";
    choose(isLast ? listed() : [...patches].sort((a, b) => a - b));
  }

  function lift() {
    isErasing = null;
    follow();
  }

  return {
    ...{ start, follow, cancel, brush, lift, restoreAll, keepAct, undo, dropped },
    canUndo: () => acts.length > 0,
    isBrushing: () => isErasing !== null,
    whole: () => whole,
    error: () => error,
  };
}

const isSame = (patches, others) => String(patches) === String(others);
