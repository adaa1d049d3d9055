// The columns of a comparison: {preset, patchSize, method, label}; label is the index of a class, null for the predicted one.

import { formatSignificant, translate } from "../../../shared/language.js";
import { MOST_COLUMNS } from "../../../shared/viewLink.js";
import { scaleEnd } from "../../colours.js";

export const FEWEST = 2;
export const MOST = MOST_COLUMNS;

const FIRST = 3;

/** The columns to begin with: the picture on the stage, and the same model at its nearest other patch sizes. */
export function firstColumns({ preset, patch_size: current }, sizes, method) {
  const distance = (size) => Math.abs(Math.log(size / current)); // of 2, 4 and 14, 2 is nearest to 4
  const nearest = sizes.filter((size) => size !== current).sort((a, b) => distance(a) - distance(b));
  const shown = [current, ...nearest.slice(0, FIRST - 1)].sort((a, b) => a - b);
  return shown.map((patchSize) => ({ preset, patchSize, method, label: null }));
}

/**
 * The columns that a visitor or a link chose, as far as their models, sizes and methods exist; null for fewer than two.
 * `models` are those of the picture on the stage.
 */
export function offeredColumns(chosen, models, methods) {
  const exists = ({ preset, patchSize, method }) =>
    Object.hasOwn(methods, method) &&
    models.find(({ name }) => name === preset)?.sizes.some(({ size }) => size === patchSize);
  const columns = (chosen ?? []).filter(exists);
  return columns.length < FEWEST ? null : columns;
}

/** What a request about a column repeats: the same picture in another model or at another patch size. */
export const sourceOf = (source, { preset, patchSize }) => ({
  ...source,
  preset,
  patch_size: patchSize,
  dropped: [],
});

/** Another model for a column, at the same patch size if it has that; a class of one model is none of another. */
export function withModel(column, { name, sizes, default_patch_size: usual }) {
  const hasSize = sizes.some(({ size }) => size === column.patchSize);
  return { ...column, preset: name, patchSize: hasSize ? column.patchSize : usual, label: null };
}

/** One end of the colour scale for all maps with the same unit: a Map from the unit; `maps` is a list of {unit, map, style}. */
export function scaleEnds(maps) {
  const ends = new Map();
  for (const { unit, map, style } of maps) ends.set(unit, Math.max(ends.get(unit) ?? 0, scaleEnd(map, style)));
  return ends;
}

/** The patch of one grid that holds the middle of a patch of another, when both cover the same picture. */
export function samePlace(patch, from, to) {
  const row = Math.floor(patch / from.columns);
  const column = patch % from.columns;
  const along = (place, count, wanted) => Math.min(wanted - 1, Math.floor(((place + 0.5) * wanted) / count));
  return along(row, from.rows, to.rows) * to.columns + along(column, from.columns, to.columns);
}

/** Bytes of one block's attention weights in float32, were they stored. */
export const attentionBytes = ({ numHeads, numTokens }) => 4 * numHeads * numTokens ** 2;

/** Bytes in the largest unit that leaves at least one. */
export function formatBytes(bytes) {
  const units = [translate("bytes"), "kB", "MB", "GB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value < 100 && power ? formatSignificant(value, 2) : Math.round(value)}\u00a0${units[power]}`;
}
