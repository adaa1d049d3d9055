// Which patch lies under a point, in pictures of any shape and place.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  fitInside,
  middlePatch,
  neighbour,
  partOf,
  patchAt,
  patchBox,
} from "../../vit_demo/web/frontend/shared/geometry.js";
import { assertClose } from "./helpers.js";

const GRIDS = [
  { rows: 7, columns: 7 },
  { rows: 4, columns: 5 },
  { rows: 1, columns: 9 },
  { rows: 37, columns: 22 },
];
const BOXES = [
  { left: 0, top: 0, width: 520, height: 520 },
  { left: 13.5, top: 207.25, width: 311, height: 640.5 },
  { left: -40, top: -900, width: 84, height: 21 },
];

test("the middle of each patch belongs to it, and its box holds the middle", () => {
  for (const grid of GRIDS) {
    for (const box of BOXES) {
      for (let patch = 0; patch < grid.rows * grid.columns; patch++) {
        const { left, top, width, height } = patchBox(patch, box, grid);
        assert.equal(patchAt(left + width / 2, top + height / 2, box, grid), patch);
      }
    }
  }
});

test("boxes of patches tile the whole box, row by row", () => {
  const [box, grid] = [BOXES[1], GRIDS[1]];
  const first = patchBox(0, box, grid);
  const last = patchBox(grid.rows * grid.columns - 1, box, grid);
  assertClose([first.left, first.top], [box.left, box.top], 1e-9);
  assertClose([last.left + last.width, last.top + last.height], [box.left + box.width, box.top + box.height], 1e-9);
  assertClose(patchBox(6, box, grid).left, box.left + box.width / 5, 1e-9); // row 1, column 1
  assertClose(patchBox(6, box, grid).top, box.top + box.height / 4, 1e-9);
});

test("outside of the picture there is no patch, and its far edges are outside", () => {
  const [box, grid] = [BOXES[1], GRIDS[1]];
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const middle = [box.left + 1, box.top + 1];
  for (const [x, y] of [
    [box.left - 0.1, middle[1]],
    [middle[0], box.top - 0.1],
    [right, middle[1]],
    [middle[0], bottom],
  ]) {
    assert.equal(patchAt(x, y, box, grid), null);
  }
  assert.equal(patchAt(box.left, box.top, box, grid), 0);
});

test("a picture of any shape fits into its box with its proportions", () => {
  assert.deepEqual(fitInside([224, 224], [600, 520]), [520, 520]);
  assert.deepEqual(fitInside([300, 150], [600, 520]), [600, 300]); // bars above and below
  assert.deepEqual(fitInside([150, 300], [600, 520]), [260, 520]); // bars beside it
  assert.deepEqual(fitInside([28, 28], [84, 64]), [64, 64]);
});

test("a click on the small photo finds the patch in the part that the model saw", () => {
  const canvas = { left: 100, top: 50, width: 80, height: 40 };
  const crop = [0.25, 0, 0.75, 1]; // the middle square of a photo twice as wide as high
  const inputBox = partOf(canvas, crop);
  assert.deepEqual(inputBox, { left: 120, top: 50, width: 40, height: 40 });
  const grid = { rows: 2, columns: 2 };
  assert.equal(patchAt(121, 51, inputBox, grid), 0);
  assert.equal(patchAt(159, 89, inputBox, grid), 3);
  assert.equal(patchAt(119, 60, inputBox, grid), null); // cut off
  assert.equal(patchAt(161, 60, inputBox, grid), null);
});

test("arrow keys stop at the edges", () => {
  const grid = GRIDS[1];
  assert.equal(neighbour(0, [-1, 0], grid), 0);
  assert.equal(neighbour(0, [0, -1], grid), 0);
  assert.equal(neighbour(0, [1, 0], grid), 5);
  assert.equal(neighbour(4, [0, 1], grid), 4);
  assert.equal(neighbour(19, [1, 0], grid), 19);
  assert.equal(middlePatch(grid), 12);
  assert.equal(middlePatch(GRIDS[0]), 24);
});
