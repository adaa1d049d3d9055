// Where the segments of a picture meet: lines that can be seen whatever colours somebody can tell apart.

/**
 * The sides between patches of different segments, each [column, row, column, row] of its ends, in patches.
 * `segments` holds the segment of each token; a dropped patch has none and no border.
 */
export function bordersOf({ rows, columns, tokenOf }, segments) {
  const segmentOf = (row, column) => {
    const token = tokenOf[row * columns + column];
    return token < 0 ? null : segments[token];
  };
  const borders = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const here = segmentOf(row, column);
      if (here === null) continue;
      const right = column + 1 < columns ? segmentOf(row, column + 1) : null;
      const below = row + 1 < rows ? segmentOf(row + 1, column) : null;
      if (right !== null && right !== here) borders.push([column + 1, row, column + 1, row + 1]);
      if (below !== null && below !== here) borders.push([column, row + 1, column + 1, row + 1]);
    }
  }
  return borders;
}
