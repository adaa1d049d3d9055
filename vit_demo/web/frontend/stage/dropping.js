// @ts-check
// Dropped patches: the visitor takes patches out of the sequence, and the model runs on the tokens that are left. They are
// hatched in every picture.

import { patchBox } from "../shared/geometry.js";
import { english } from "../shared/language.js";
import { createRequestIds } from "../shared/requests.js";
import { openResult } from "./result.js";

const HATCH = 7; // CSS pixels between two lines

/**
 * `prepare(result)` is awaited before `show(result)` gets the result without the dropped patches; `onChange(part)` is
 * called with the choices that follow when a patch is dropped or restored, or cannot be.
 */
export function createDropping(request, { prepare, show, onChange, open = openResult }) {
  const requests = createRequestIds();
  let whole = /** @type {any} */ (null); // the result with all its patches
  let dropped = new Set();
  let confirmed = new Set(); // the patches that the shown result is without
  let error = "";

  const listed = () => [...dropped].sort((a, b) => a - b);

  const changed = () => onChange({ pinned: null, dropped: dropped.size ? listed() : null });

  /** Begins with a result, which has all its patches, or is shown where they cannot be restored. */
  function start(result) {
    requests.start();
    whole = result;
    dropped = new Set(result.dropped);
    confirmed = new Set(result.dropped);
    error = "";
  }

  /** Drops the patches of a link, or of a step of the history, and no others. */
  function restore(patches) {
    const wanted = (patches ?? []).filter((patch) => patch < whole.numPatches);
    const isSame = wanted.length === dropped.size && wanted.every((patch) => dropped.has(patch));
    if (isSame || wanted.length === whole.numPatches) return;
    dropped = new Set(wanted);
    error = "";
    update();
  }

  /** Ends with the result: a reply that is still to come shows nothing. */
  const cancel = () => requests.start();

  async function update() {
    const isCurrent = requests.start();
    const patches = listed();
    const next = patches.length ? await resultWithout(patches, isCurrent) : whole;
    if (next && isCurrent()) await prepare(next);
    if (!next || !isCurrent()) return;
    confirmed = new Set(patches);
    show(next);
  }

  async function resultWithout(patches, isCurrent) {
    const source = { ...whole.source, dropped: patches };
    const reply = await request({ kind: "result", source }, { isCurrent });
    if (reply?.result) return open(reply.result);
    if (reply) {
      dropped = new Set(confirmed);
      setError(reply.error);
    }
    return null;
  }

  function setError(sentence) {
    error = sentence;
    changed();
  }

  function restoreAll() {
    dropped = new Set();
    setError("");
    update();
  }

  /** Drops or restores a patch under a brush; the model runs when the brush is lifted (`commit`). */
  function brush(patch, isDropped) {
    const patches = new Set(dropped);
    if (isDropped) patches.add(patch);
    else patches.delete(patch);
    if (patches.size === whole.numPatches) return setError(english("At least one patch must stay."));
    dropped = patches;
    setError("");
  }

  /** Drops a patch, or restores it. */
  function toggle(patch) {
    brush(patch, !dropped.has(patch));
    if (!error) update();
  }

  return {
    start,
    restore,
    cancel,
    toggle,
    brush,
    commit: update,
    restoreAll,
    dropped: () => dropped,
    whole: () => whole,
    error: () => error,
  };
}

/** Dropped patches: grey, hatched, nothing of the picture left. */
export function hatchPatches(context, box, result, dropped) {
  context.save();
  context.beginPath();
  for (const patch of dropped) {
    const { left, top, width, height } = patchBox(patch, box, result);
    context.rect(left, top, width, height);
  }
  context.fillStyle = "#6f727a";
  context.fill();
  context.clip();
  context.beginPath();
  for (let x = -box.height; x < box.width; x += HATCH) {
    context.moveTo(x, 0);
    context.lineTo(x + box.height, box.height);
  }
  context.strokeStyle = "#8d9099";
  context.lineWidth = HATCH / 4;
  context.stroke();
  context.restore();
}
