// The drawing: strokes add up, an example gives way, and each act can be undone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createSketch } from "../../vit_demo/web/frontend/pad/sketch.js";
import { PENS } from "../../vit_demo/web/frontend/pad/strokes.js";

const EIGHT = [
  [0.5, 0.2],
  [0.5, 0.8],
];
const ONE = [
  [0.4, 0.1],
  [0.4, 0.9],
];

/** A sketch with an 8 on its paper; `told` are the pictures that the page heard of, and whether each was a step. */
function opened() {
  const told = [];
  const sketch = createSketch();
  const digits = { 8: [EIGHT], 1: [ONE] };
  sketch.open({ digits, onChange: (picture, isStep) => told.push({ picture, isStep }) });
  sketch.show({ digit: 8 });
  return { sketch, told };
}

function stroke(sketch, [first, ...others]) {
  sketch.begin(first);
  sketch.extend(others);
  sketch.end();
}

const ACROSS = [
  [0.2, 0.5],
  [0.8, 0.5],
];
const DOWN = [
  [0.3, 0.2],
  [0.3, 0.8],
];
const near = (found, expected) =>
  found.length === expected.length &&
  found.every(([x, y], i) => Math.abs(x - expected[i][0]) < 1 / 4095 && Math.abs(y - expected[i][1]) < 1 / 4095);
const shows = (sketch, ...expected) => {
  const found = sketch.strokes().map(({ points }) => points);
  assert.ok(
    found.length === expected.length && found.every((points, i) => near(points, expected[i])),
    JSON.stringify(found),
  );
};

test("a picture that is only shown is told to nobody, and cannot be undone", () => {
  const { sketch, told } = opened();
  shows(sketch, EIGHT);
  assert.deepEqual([told, sketch.canUndo(), sketch.isOwn(), sketch.isEmpty()], [[], false, false, false]);
});

test("a stroke on an example starts a drawing of one's own, and undo brings the example back", () => {
  const { sketch, told } = opened();
  sketch.begin(DOWN[0]);
  shows(sketch, [DOWN[0]]);
  assert.ok(sketch.isDrawing() && sketch.isOwn() && !told.length, "the page hears of its end");
  sketch.extend(DOWN.slice(1));
  sketch.end();
  shows(sketch, DOWN);
  assert.ok(sketch.isOwn() && !sketch.isDrawing());
  sketch.undo();
  shows(sketch, EIGHT);
  assert.deepEqual([told.length, told[1].picture, sketch.isOwn(), sketch.canUndo()], [2, { digit: 8 }, false, false]);
});

test("strokes add up; undo takes back one, a clear, or an example", () => {
  const { sketch, told } = opened();
  stroke(sketch, DOWN);
  stroke(sketch, ACROSS);
  shows(sketch, DOWN, ACROSS);
  sketch.clear();
  assert.ok(sketch.isEmpty());
  sketch.clear();
  sketch.undo();
  shows(sketch, DOWN, ACROSS);
  sketch.example(1);
  shows(sketch, ONE);
  assert.deepEqual([told.at(-1).picture, told.at(-1).isStep], [{ digit: 1 }, true]);
  for (const expected of [[DOWN, ACROSS], [DOWN], [EIGHT]]) {
    sketch.undo();
    shows(sketch, ...expected);
  }
  const count = told.length;
  sketch.undo();
  assert.equal(told.length, count, "there is nothing left to undo");
});

test("a stroke that is cancelled, or undone while it is drawn, leaves what was there", () => {
  const { sketch, told } = opened();
  sketch.begin(DOWN[0]);
  sketch.cancel();
  shows(sketch, EIGHT);
  sketch.extend(DOWN);
  sketch.end();
  assert.deepEqual([told, sketch.isOwn(), sketch.isDrawing()], [[], false, false]);
});

test("the eraser changes an example, and erases nothing from an empty paper", () => {
  const { sketch, told } = opened();
  sketch.choosePen("eraser");
  stroke(sketch, ACROSS);
  shows(sketch, EIGHT, ACROSS);
  assert.equal(sketch.strokes()[1].width, PENS.eraser);
  sketch.clear();
  stroke(sketch, ACROSS);
  assert.deepEqual([sketch.isEmpty(), told.length], [true, 2]);
});

test("each pen has its width, which a stroke keeps", () => {
  const { sketch } = opened();
  for (const pen of ["thin", "thick", "medium"]) {
    sketch.choosePen(pen);
    assert.equal(sketch.pen(), pen);
    stroke(sketch, DOWN);
  }
  assert.deepEqual(
    sketch.strokes().map(({ width }) => width),
    [PENS.thin, PENS.thick, PENS.medium],
  );
});

test("what the page writes by itself is nobody's, and a stroke ends it", () => {
  const { sketch, told } = opened();
  sketch.write([{ width: PENS.medium, points: ACROSS }]);
  assert.ok(sketch.isWritten() && !sketch.isOwn() && !sketch.isDrawing());
  shows(sketch, ACROSS);
  sketch.write(null);
  shows(sketch, EIGHT);
  sketch.write([{ width: PENS.medium, points: ACROSS }]);
  stroke(sketch, DOWN);
  shows(sketch, DOWN);
  assert.deepEqual([sketch.isWritten(), told.length], [false, 1]);
});

test("whoever shows the drawing hears of every change within a stroke", () => {
  const { sketch } = opened();
  let heard = 0;
  sketch.subscribe({ isConnected: true }, () => heard++);
  const before = heard;
  stroke(sketch, DOWN);
  assert.equal(heard - before, 3);
});
