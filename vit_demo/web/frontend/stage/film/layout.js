// @ts-check
// Where everything of a film is: the picture in the upper left corner, the tokens in rows beside it, the blocks below, each a
// level to which the token that collects goes down. And what of it is at a place.

import { fitInside, patchAt } from "../../shared/geometry.js";
import { between, boxBetween, curveAt, curvesAt, ease, pointOf } from "./curves.js";

const GAP = 14; // CSS pixels between the picture and the tokens, and these and the blocks
const EDGE = 12; // to the right of the tokens, for the line that names their strips and the one to the answer
const NAME = 18; // for the name of the token that collects
const FOOT = 30; // for the line to the answer
const [LARGE, LARGEST] = [28, 34]; // of a token's square: up to the first there are more rows, and more height is given to them
const LEAST_LEVEL = 18; // of a block, if many tokens want its place
const BESIDE = 8; // of the card from what it leaves free
const STEPS = 24; // places of the card that are tried, across and down
const SMALLEST_NUMBER = { width: 29, height: 14 }; // CSS pixels of a cell in which a number can be read

/**
 * The arrangement of so many cells in the fewest rows with large squares, each with a strip below it. The first column is that
 * of the token that collects.
 */
function gridOf(count, width, height) {
  const columnsOf = (rows) => 1 + Math.ceil(count / rows);
  const size = (rows) => Math.min((0.88 * width) / columnsOf(rows), 0.58 * (height / rows - 5), LARGEST);
  let rows = 1;
  while (rows < count && size(rows) < LARGE && size(rows + 1) > size(rows)) rows++;
  const columns = columnsOf(rows);
  return { columns, side: size(rows), width: Math.min(width / columns, 46), height: height / rows };
}

function boxOf(size, left, top, side) {
  const [width, height] = fitInside(size, [side, side]);
  return { left, top, width, height };
}

/** How many blocks share the height at a moment: the first ones fill it, and make room for each that follows. */
export function levelsAt({ beat, share, block }, { numBlocks }) {
  const shown = beat.kind === "collect" ? block + ease(share / 0.25) : beat.kind === "look" ? block : 0;
  return beat.kind === "read" || beat.kind === "end" ? numBlocks : Math.min(numBlocks, Math.max(1.2, shown));
}

/** The layout of a film in a space with room for so many blocks; `film` is that of `filmOf`. All in CSS pixels. */
export function layoutOf([width, height], { result, numbers, film }, levels = result.numBlocks) {
  const { numTokens, numBlocks, hasClassToken } = result;
  const side = Math.round(Math.min(168, Math.max(72, Math.min(0.27 * height, 0.24 * width))));
  const left = Math.max(side, 0.19 * width) + GAP; // names are written there
  const first = hasClassToken && film.collector === 0 ? 0 : 1; // what is followed has a place of its own
  const count = numTokens - 1 + first;
  const most = Math.max(side, Math.min(0.46 * height, height - GAP - FOOT - LEAST_LEVEL * numBlocks));
  const gridIn = (high) => gridOf(count, width - left - EDGE, high - NAME);
  let high = side;
  while (high < most && gridIn(high).side < LARGE) high = Math.min(most, high + 4);
  const grid = gridIn(high);
  const cellAt = (i) => {
    const [row, column] = i ? [Math.floor((i - 1) / (grid.columns - 1)), 1 + ((i - 1) % (grid.columns - 1))] : [0, 0];
    return {
      x: left + (column + 0.5) * grid.width,
      y: NAME + row * grid.height,
      bottom: NAME + (row + 1) * grid.height - 3,
    };
  };
  const stripHeight = grid.height - grid.side - 5;
  const isWritten = 0.9 * grid.width >= SMALLEST_NUMBER.width && stripHeight >= 2 * SMALLEST_NUMBER.height;
  const components = numbers.components.length;
  const top = high + GAP;
  const space = (height - top - FOOT) / levels;
  return {
    ...{
      width,
      height,
      top,
      space,
      isWritten,
      grid,
      cells: isWritten ? Math.min(components, Math.floor(stripHeight / 14)) : components,
    },
    stripHeight,
    seen: boxOf(result.size, 0, 0, side),
    whole: boxOf(result.size, 0, 0, Math.min(width, height)), // as on the first screen
    large: boxOf(result.size, left, top, height - top), // while its squares become tokens
    collector: cellAt(0),
    lastOfRow: cellAt(Math.min(count, grid.columns - 1)),
    cell: (/** @type {number} */ token) => cellAt(token + first),
    level: (/** @type {number} */ block) => top + space * (block + 0.6),
    full: Math.min(64, 0.66 * space), // the height of all attention
    radius: Math.min(11, Math.max(5, 0.4 * grid.side), 0.36 * space),
  };
}

/** Where the picture is: large until its squares have flown, then, `gone` of the way, round the tokens into its corner. */
export function pictureAt({ whole, large, seen }, flown, gone) {
  const from = /** @type {any} */ (boxBetween(whole, large, ease(flown / 0.4)));
  const top = between(from.top, seen.top, ease((gone - 0.5) / 0.5)); // once it is beside them
  return /** @type {any} */ ({ ...boxBetween(from, seen, ease(gone / 0.6)), top });
}

/** What is at a place: {patch} of the picture, {token} with its strip, or a curve of curves.js; null for nothing. */
export function partAt(layout, scene, moment, x, y) {
  if (!moment.index) return null; // the picture is whole
  const { result } = scene;
  const patch = moment.index > 1 ? patchAt(x, y, layout.seen, result) : null;
  if (patch !== null) return { patch };
  const isNear = (token) => {
    const cell = layout.cell(token);
    return Math.abs(x - cell.x) <= layout.grid.width / 2 && y >= cell.y && y <= cell.bottom;
  };
  const token = Array.from({ length: result.numTokens }, (_, i) => i).find(isNear);
  return token === undefined ? curveAt(curvesAt(layout, scene, moment), x, y) : { token };
}

/** What the card about a part leaves free, points [x, y]: first the part itself, then what was said after each block. */
export function keptFree(layout, { result }, { depth }, part) {
  const cell = part.points ? null : layout.cell(part.token);
  const half = layout.grid.side / 2;
  const own = cell
    ? [cell.y, (cell.y + cell.bottom) / 2, cell.bottom].flatMap((y) => [-half, 0, half].map((by) => [cell.x + by, y]))
    : Array.from({ length: 25 }, (_, i) => pointOf(part.points, i / 24));
  const { x } = layout.collector;
  const levels = Array.from({ length: Math.min(depth, result.numBlocks) }, (_, block) => layout.level(block));
  return [own, levels.flatMap((y) => [0, 0.3, 0.6, 0.9].map((back) => [x * (1 - back), y]))];
}

/** Where in a space a card of a size covers least of what is kept free, most of all of what comes first, near a place. */
export function placeOfCard([width, height], [wide, high], [own, others], [x, y]) {
  let best = { cost: Number.POSITIVE_INFINITY, left: 0, top: 0 };
  const room = [Math.max(0, width - wide), Math.max(0, height - high)];
  for (let i = 0; i <= STEPS; i++)
    for (let j = 0; j <= STEPS; j++) {
      const [left, top] = [(room[0] * i) / STEPS, (room[1] * j) / STEPS];
      const [right, bottom] = [left + wide, top + high];
      const isUnder = ([px, py]) =>
        px > left - BESIDE && px < right + BESIDE && py > top - BESIDE && py < bottom + BESIDE;
      const covered = (points) => points.filter(isUnder).length;
      const away = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
      const aside = Math.abs(left + wide / 2 - x);
      const near = away + 0.1 * aside;
      if (near >= best.cost) continue;
      const cost = 1e6 * covered(own) + 1e4 * covered(others) + near;
      if (cost < best.cost) best = { cost, left, top };
    }
  return best;
}

/** What the keys lead through at a moment, each {part, at}: the newest curves, then the tokens. */
export function partsAt(layout, scene, moment) {
  if (!moment.index) return [];
  const tokens = Array.from({ length: scene.result.numTokens }, (_, token) => {
    const { x, bottom } = layout.cell(token);
    return { part: { token }, at: [x, bottom] };
  });
  const newest = curvesAt(layout, scene, moment).filter(({ block }) => block === moment.block);
  return [...newest.map((part) => ({ part, at: pointOf(part.points, 0.5) })), ...tokens];
}
