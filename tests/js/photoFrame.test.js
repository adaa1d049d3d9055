// The first screen of a photo, and of a camera, as data.

import assert from "node:assert/strict";
import { test } from "node:test";

import { frameOf } from "../../vit_demo/web/frontend/stage/frame.js";
import "./helpers.js";

/** A result of a photo of so many classes, of which a live one has the first; the first is as likely as given. */
function photoResult(probability, { classes = 50, confident = probability >= 0.5, live = false } = {}) {
  const rest = (1 - probability) / (classes - 1);
  const predictions = Array.from({ length: live ? Math.min(12, classes) : classes }, (_, i) => ({
    ...{ index: (7 * i) % classes, name: `class ${i}`, label: `class ${i}`, scores: "softmax" },
    probability: i ? rest : probability,
  }));
  const shape = {
    numPatches: 100,
    numBlocks: 6,
    dropped: [],
    silent: [],
    pixelated: false,
    early: classes <= 12 ? [] : null,
  };
  return { ...shape, predictions, confident, note: "", source: {} };
}

const frame = (result, given = {}) =>
  frameOf({
    ...{ verb: "draw", task: "photos", result, whole: result, live: false, moments: [], at: null },
    ...{ choices: {}, map: null, isOwn: false, invites: false, found: null, ...given },
  });

test("what a camera sees is said as surely as the network is", () => {
  for (const live of [false, true]) {
    const say = (...options) => frame(photoResult(...options, { live }), { live }).headline;
    assert.equal(say(0.98).text, "It sees: *class 0*.");
    assert.match(
      frame(photoResult(0.55, { confident: false, live }), { live }).headline.text,
      /^It leans to \*class 0\*/,
    );
    assert.match(say(0.2).text, /^It is unsure: \*class 0\* 20.0.%, \*class 1\* 1.6.%\.$/);
    assert.equal(frame(photoResult(0.2, { live }), { live }).answers.isUnsure, true);
    assert.equal(say(0.98).next, "");
  }
});

test("what was said while a digit was drawn is not said of a photo", () => {
  const moments = ["one", "two"].map((label, i) => ({
    ...{ length: i + 1, time: 1000 * i },
    result: { ...photoResult(0.98), predictions: [{ index: i, label, probability: 0.98, scores: "softmax" }] },
  }));
  const { headline, line } = frame(photoResult(0.98), { moments });
  assert.deepEqual([headline.was, headline.text, line.kind], ["", "It sees: *class 0*.", "none"]);
});

test("a live result of many classes, of which twelve came, is one of many, and one of few has its places", () => {
  const many = frame(photoResult(0.9, { live: true }), { live: true }).answers;
  assert.deepEqual([many.isFixed, many.rows.length], [false, 12]); // a row that has not changed place yet has its number
  assert.deepEqual(
    many.rows.slice(0, 2).map(({ label }) => label),
    ["class 0", "class 1"],
  );
  const few = frame(photoResult(0.9, { classes: 10, live: true }), { live: true }).answers;
  assert.deepEqual(
    few.rows.map(({ index }) => index),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.ok(few.isFixed);
  assert.equal(frame(photoResult(0.9)).answers.rows.length, 5);
});
