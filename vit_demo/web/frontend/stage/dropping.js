// @ts-check
// What is left out: the visitor takes patches out of the sequence, and the model runs on the tokens that are left, or makes
// heads silent. Both are hatched, and taken back by one undo.

import { english } from "../shared/language.js";
import { createRequestIds } from "../shared/requests.js";
import { openResult } from "./result.js";

/** @typedef {{dropped: number[], silent: number[][]}} Omitted */

/**
 * `chosen()` is {dropped, silent} of the page's view, each null for none: patches, and (block, head) of heads; `keptClass()` is {label} of the class that stays explained,
 * or {}; `prepare(result)` is awaited before `show(result)` gets the
 * result without them; `onChange(part)` is called with the choices that follow when something is left out or restored, or
 * cannot be.
 */
export function createDropping(request, { chosen, keptClass, prepare, show, onChange, open = openResult }) {
  const startRequest = createRequestIds();
  let whole = /** @type {any} */ (null); // the result with all its patches
  let shown = /** @type {any} */ (null);
  let acts = /** @type {Omitted[]} */ ([]); // what was left out before each act
  let wanted = /** @type {Omitted} */ ({ dropped: [], silent: [] }); // without which a result is shown or under way
  let isErasing = /** @type {boolean | null} */ (null); // whether the brush drops patches; null while it is lifted
  let error = "";
  const brushed = new Set(); // the patches that were left out by hand, as texts

  /** @returns {Omitted} */
  function listed() {
    const { dropped, silent } = chosen();
    return { dropped: dropped ?? whole.dropped, silent: silent ?? whole.silent };
  }
  const dropped = () => new Set(listed().dropped);

  /** Chooses what is left out, of which a part stays as it is. */
  function choose(part) {
    const { dropped, silent } = { ...listed(), ...part };
    const orNull = (list) => (list.length ? list : null);
    onChange({ pinned: null, ...keptClass(), dropped: orNull(dropped), silent: orNull(silent) });
  }

  /** Begins with a result, which has all its patches, or is shown where they cannot be restored. */
  function start(result) {
    startRequest();
    whole = shown = result;
    acts = [];
    wanted = omittedOf(result);
    brushed.clear();
    isErasing = null;
    error = "";
  }

  /** Ends with the result: a reply that is still to come shows nothing. */
  const cancel = () => startRequest();

  /** Shows the result without what is chosen now, whoever chose them: a click, a link or the history. */
  async function follow() {
    const omitted = listed();
    if (isErasing !== null || isSame(omitted, wanted)) return;
    const isCurrent = startRequest();
    wanted = omitted;
    const known = [whole, shown].find((each) => isSame(each, omitted));
    const next = known ?? (await resultWithout(omitted, isCurrent));
    if (next && isCurrent()) await prepare(next);
    if (!next || !isCurrent()) return;
    shown = next;
    show(next);
  }

  async function resultWithout(omitted, isCurrent) {
    const source = { ...whole.source, ...omitted };
    const reply = await request({ kind: "result", source }, { isCurrent });
    if (reply?.result) return open(reply.result);
    if (reply) {
      wanted = omittedOf(shown);
      error = reply.error;
      choose(wanted);
    }
    return null;
  }

  function restoreAll() {
    error = "";
    keepAct();
    choose({ dropped: [], silent: [] });
    follow();
  }

  /** What is left out now can be had again by `undo()`. */
  const keepAct = () => acts.push(listed());

  /** Takes back the last act. */
  function undo() {
    if (!acts.length) return;
    error = "";
    choose(acts.pop());
    follow();
  }

  /** Leaves out these patches, or heads, and no others of their kind, as one act, perhaps the one before. */
  function leaveOut(/** @type {Partial<Omitted>} */ part, isSameAct = false) {
    error = "";
    if (!isSameAct) keepAct();
    choose(part);
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
    if (!isLast) choose({ dropped: [...patches].sort((a, b) => a - b) });
    else choose({});
    brushed.add(String(listed().dropped));
  }

  function lift() {
    isErasing = null;
    follow();
  }

  return {
    ...{ start, follow, cancel, brush, lift, restoreAll, keepAct, undo, dropped, leaveOut },
    silent: () => listed().silent,
    canUndo: () => acts.length > 0,
    isByHand: ({ dropped }) => brushed.has(String(dropped)),
    isBrushing: () => isErasing !== null,
    whole: () => whole,
    error: () => error,
  };
}

const omittedOf = ({ dropped, silent }) => ({ dropped, silent });
const isSame = (one, other) =>
  String(one.dropped) === String(other.dropped) && String(one.silent) === String(other.silent);
