// The tour's numbers: requested once for each result, patch and block, and decoded.

import { decodeBytes, decodeFloat16, decodeFloat32 } from "../../decode.js";

const decodeInt32 = (text) => new Int32Array(decodeBytes(text).buffer);
const WHOLE_NUMBERS = ["filters", "keyed", "classes", "depth_class"];

/** A reply of the kinds "steps", "steps_patch" and "steps_block": every array by its name, the rest as it is. */
export function decodeNumbers(reply) {
  const decoded = Object.entries(reply).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    if (name === "positions") return [name, decodeFloat16(value)];
    return [name, (WHOLE_NUMBERS.includes(name) ? decodeInt32 : decodeFloat32)(value)];
  });
  return Object.fromEntries(decoded);
}

/**
 * `get(result, kind, fields)` returns the numbers, or null while they are on their way; then `onUpdate()` is called.
 * `error(result)` is one sentence about the last request of a result that failed, or "". `retry()` forgets failures.
 */
export function createStepData(request, onUpdate) {
  const stores = new WeakMap(); // result -> Map from the fields of a request to {numbers, error}
  let current = null;

  const storeOf = (result) => stores.get(result) ?? stores.set(result, new Map()).get(result);

  async function load(result, entry, fields, forget) {
    const reply = await request({ ...fields, source: result.source }, { isCurrent: () => result === current });
    if (!reply) forget();
    else if (reply.error) entry.error = reply.error;
    else entry.numbers = decodeNumbers(reply.result);
    onUpdate();
  }

  function get(result, kind, fields = {}) {
    current = result;
    const store = storeOf(result);
    const wanted = { kind, ...fields };
    const key = JSON.stringify(wanted);
    if (!store.has(key)) {
      const entry = { numbers: null, error: "" };
      store.set(key, entry);
      load(result, entry, wanted, () => store.delete(key));
    }
    return store.get(key)?.numbers ?? null;
  }

  const error = (result) => [...storeOf(result).values()].find((entry) => entry.error)?.error ?? "";

  function retry() {
    if (!current) return;
    const store = storeOf(current);
    for (const [key, entry] of store) if (entry.error) store.delete(key);
  }

  return { get, error, retry };
}
