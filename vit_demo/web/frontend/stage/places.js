// @ts-check
// Where a map is strong: one sentence from its values.
//
// A uniform map needs half of all patches for half of its sum. A map that needs at most half as many stands out somewhere:
// its strongest patches are named by the places in which they lie together.

import { english, translate } from "../shared/language.js";
import { placeOf } from "./format.js";

const MOST = 0.5; // of the sum is most of it
const SEARCHED = 0.6; // of the sum is in the patches that are looked at, so that most of it can be in a few places
const MOST_PLACES = 2;
const SUBSTANTIAL = 1 / 3; // of what speaks for the class is what speaks against it

/**
 * Where a map is strong: `isSpread` if it needs more than a quarter of `count` patches for half of its sum; else the `patches`
 * that hold most of the sum, and the places where they are, if one or two hold it. Values below 0 do not count.
 *
 * @param {ArrayLike<number>} map one value for each patch
 * @param {{rows: number, columns: number}} grid
 * @returns {{isSpread: boolean, patches: number[], centres: number[]}} the patch in the middle of each place, the strongest first
 */
export function strongPlaces(map, grid, count = map.length) {
  const values = Array.from(map, (value) => Math.max(0, value));
  const sum = values.reduce((total, value) => total + value, 0);
  const order = values.map((_, patch) => patch).sort((one, other) => values[other] - values[one]);
  const first = firstOf(order, (patch) => values[patch], MOST * sum);
  if (!sum || first.length > count / 4) return { isSpread: true, patches: [], centres: [] };
  const weightOf = (place) => place.reduce((total, patch) => total + values[patch], 0);
  const searched = firstOf(order, (patch) => values[patch], SEARCHED * sum);
  const places = connected(searched, grid).sort((one, other) => weightOf(other) - weightOf(one));
  const named = firstOf(places, weightOf, MOST * sum);
  const isNamed = named.length <= MOST_PLACES;
  const centres = named.map((place) => centreOf(place, values, grid));
  return { isSpread: false, patches: isNamed ? named.flat() : first, centres: isNamed ? centres : [] };
}

/** The first items whose weights reach a sum. */
function firstOf(items, weightOf, wanted) {
  let left = wanted * (1 - 1e-6); // float32 rounds
  const end = items.findIndex((item) => {
    left -= weightOf(item);
    return left <= 0;
  });
  return items.slice(0, end + 1);
}

/** Patches in groups that touch each other, at a side or a corner. */
function connected(patches, { columns }) {
  const left = new Set(patches);
  const touches = (one, other) => Math.abs((one % columns) - (other % columns)) <= 1;
  return patches.flatMap((start) => {
    if (!left.delete(start)) return [];
    const place = [start];
    for (const patch of place) {
      for (const row of [patch - columns, patch, patch + columns]) {
        const near = [row - 1, row, row + 1].filter((other) => touches(patch, other) && left.delete(other));
        place.push(...near);
      }
    }
    return [place];
  });
}

/** The patch at the mean of the rows and columns of others, weighted by their values. */
function centreOf(place, values, { columns }) {
  const sum = place.reduce((total, patch) => total + values[patch], 0);
  const mean = (along) => Math.round(place.reduce((total, patch) => total + along(patch) * values[patch], 0) / sum);
  return mean((patch) => Math.floor(patch / columns)) * columns + mean((patch) => patch % columns);
}

/** What a map shows: in general, in a few places, and in many. */
const TEXTS = {
  attention: [
    english("The attention is spread over the whole picture"),
    english(
      "Most of the attention lies in one patch, {places}|Most of the attention lies in {count} patches around {places}",
    ),
    english("Most of the attention lies in {count} patches all over the picture"),
  ],
  evidence: [
    english("The evidence is spread over the whole picture"),
    english(
      "Most of the evidence lies in one patch, {places}|Most of the evidence lies in {count} patches around {places}",
    ),
    english("Most of the evidence lies in {count} patches all over the picture"),
  ],
  map: [
    english("The map is spread over the whole picture"),
    english("Most of the map lies in one patch, {places}|Most of the map lies in {count} patches around {places}"),
    english("Most of the map lies in {count} patches all over the picture"),
  ],
};

/** The sentence about a map of a method, without its full stop. */
export function placesText({ classSpecific, isShare }, map, result) {
  const count = result.numPatches - result.dropped.length;
  const { isSpread, patches, centres } = strongPlaces(map, result, count);
  const [spread, around, scattered] = TEXTS[classSpecific ? "evidence" : isShare ? "attention" : "map"];
  const text = isSpread ? spread : centres.length ? around : scattered;
  const words = translate(text, { count: patches.length, places: placesOf(centres, result) });
  return words + againstText(map, result, count);
}

/** What speaks against the class, if it is substantial: values below 0. */
function againstText(map, result, count) {
  const sumOf = (sign) => map.reduce((sum, value) => sum + Math.max(0, sign * value), 0);
  if (sumOf(-1) <= SUBSTANTIAL * sumOf(1)) return "";
  const { centres } = strongPlaces(
    map.map((value) => -value),
    result,
    count,
  );
  return centres.length
    ? translate("; much speaks against it, around {places}", { places: placesOf(centres, result) })
    : translate("; much speaks against it, in many places");
}

/** One place in words, or two: "row 4, column 5 and row 9, column 2". */
function placesOf(centres, result) {
  const [one, other] = centres.map((patch) => placeOf(result, patch));
  return other ? translate("{one} and {other}", { one, other }) : one;
}
