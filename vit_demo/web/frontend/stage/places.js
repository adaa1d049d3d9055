// @ts-check
// Where a map is strong: its strongest patch with its value, and how concentrated the rest is, from its values alone.

import { english, translate } from "../shared/language.js";
import { placeOf } from "./format.js";

const MOST = 0.5; // of a sum is most of it
const FEW = 1 / 4; // of the patches are few: a map that needs more of them for most of its sum is spread
const SUBSTANTIAL = 1 / 3; // of what speaks for the class is what speaks against it

/**
 * The `strongest` patch, -1 if no value is above 0; and how many patches hold half of the sum of the others, 0 if they have
 * none. Values below 0 do not count.
 *
 * @param {ArrayLike<number>} map one value for each patch
 */
export function concentration(map) {
  const order = Array.from(map, (value, patch) => ({ value, patch }));
  const [first, ...others] = order.filter(({ value }) => value > 0).sort((one, other) => other.value - one.value);
  let left = MOST * (1 - 1e-6) * others.reduce((sum, { value }) => sum + value, 0); // float32 rounds
  const last = others.findIndex(({ value }) => {
    left -= value;
    return left <= 0;
  });
  return { strongest: first?.patch ?? -1, numOfRest: last + 1 };
}

/** How concentrated the rest is: nothing, few patches, or many. */
const REST = {
  none: english("Strongest: {place}, {value}; nothing anywhere else"),
  few: english(
    "Strongest: {place}, {value}; half of the others’ sum in 1 of {all} patches|Strongest: {place}, {value}; half of the others’ sum in {count} of {all} patches",
  ),
  spread: english("Strongest: {place}, {value}; the rest is spread over the whole picture"),
};

/** The sentence about a map of a method, without its full stop. */
export function placesText({ format }, map, result) {
  const all = result.numPatches - result.dropped.length;
  const { strongest, numOfRest: count } = concentration(map);
  const kind = count === 0 ? "none" : count > FEW * all ? "spread" : "few";
  const named = (patch) => ({ place: placeOf(result, patch), value: format(map[patch]) });
  const words =
    strongest < 0
      ? translate("No patch speaks for the class")
      : translate(REST[kind], { ...named(strongest), count, all });
  const sumOf = (sign) => map.reduce((sum, value) => sum + Math.max(0, sign * value), 0);
  if (!sumOf(-1) || sumOf(-1) <= SUBSTANTIAL * sumOf(1)) return words;
  const against = concentration(map.map((value) => -value)).strongest;
  return words + translate("; strongest against it: {place}, {value}", named(against));
}
