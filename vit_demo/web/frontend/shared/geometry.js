// @ts-check
// Rectangles and patches. A box is {left, top, width, height}; a grid {rows, columns}; a patch its index, row by row.

/**
 * The largest size [width, height] with the proportions of `size` that fits into `space`, in whole units.
 *
 * @param {number[]} size
 * @param {number[]} space
 */
export function fitInside([width, height], [spaceWidth, spaceHeight]) {
  const scale = Math.min(spaceWidth / width, spaceHeight / height);
  return [Math.round(width * scale), Math.round(height * scale)];
}

/** The part of a box between [left, top, right, bottom], each a share (0 to 1) of its sides. */
export function partOf(box, [left, top, right, bottom]) {
  return {
    left: box.left + left * box.width,
    top: box.top + top * box.height,
    width: (right - left) * box.width,
    height: (bottom - top) * box.height,
  };
}

/** The patch under the point (x, y) when `grid` fills `box`; null outside of it. */
export function patchAt(x, y, box, { rows, columns }) {
  const row = Math.floor(((y - box.top) / box.height) * rows);
  const column = Math.floor(((x - box.left) / box.width) * columns);
  return row < 0 || column < 0 || row >= rows || column >= columns ? null : row * columns + column;
}

/** The [row, column] of a patch, counted from 0. */
export const cellOf = (patch, { columns }) => [Math.floor(patch / columns), patch % columns];

/** The box of a patch when `grid` fills `box`. */
export function patchBox(patch, box, grid) {
  const [row, column] = cellOf(patch, grid);
  const [width, height] = [box.width / grid.columns, box.height / grid.rows];
  return { left: box.left + column * width, top: box.top + row * height, width, height };
}

/** The patch that lies [down, right] of another, held at the edges. */
export function neighbour(patch, [down, right], { rows, columns }) {
  const [row, column] = cellOf(patch, { columns });
  const held = (place, count) => Math.min(count - 1, Math.max(0, place));
  return held(row + down, rows) * columns + held(column + right, columns);
}

export const middlePatch = ({ rows, columns }) => Math.floor(rows / 2) * columns + Math.floor(columns / 2);

/** The patch of one grid that holds the middle of a patch of another, when both cover the same picture. */
export function samePlace(patch, from, to) {
  const [row, column] = cellOf(patch, from);
  const along = (place, count, wanted) => Math.min(wanted - 1, Math.floor(((place + 0.5) * wanted) / count));
  return along(row, from.rows, to.rows) * to.columns + along(column, from.columns, to.columns);
}
