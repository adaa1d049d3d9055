// What was said while a drawing grew, and which of it was a guess.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createMoments, guessesOf } from "../../vit_demo/web/frontend/stage/moments.js";

const resultOf = (index, probability = 0.9, source = { preset: "digits-small", patch_size: 7 }) => ({
  predictions: [{ index, label: `${index}`, probability }],
  source,
});
const isUnsure = ({ predictions: [{ probability }] }) => probability < 0.6;
/** A line down the paper, as long as this. */
const line = (length, x = 0.5) => [
  {
    width: 0.08,
    points: [
      [x, 0.1],
      [x, 0.1 + length],
    ],
  },
];
const said = (moments) => moments.list().map(({ result }) => result.predictions[0].index);

test("moments stay while their ink does, and go with it", () => {
  const moments = createMoments();
  const grow = (length, index, x) => {
    moments.follow(line(length, x));
    moments.add(resultOf(index), length);
  };
  for (const [length, index] of [
    [0.2, 1],
    [0.4, 7],
    [0.6, 9],
  ])
    grow(length, index);
  assert.deepEqual(said(moments), [1, 7, 9]);
  moments.follow(line(0.4));
  assert.deepEqual(said(moments), [1, 7], "what was said of ink that was undone is forgotten");
  grow(0.3, 4, 0.2);
  assert.deepEqual(said(moments), [4], "another drawing begins anew");
  moments.follow([]);
  assert.deepEqual(said(moments), []);
});

test("the ordinary result takes the place of the last answer, whose ink is the same but for rounding", () => {
  const moments = createMoments();
  moments.follow(line(0.5));
  moments.add(resultOf(1), 0.2);
  moments.add(resultOf(7), 0.5);
  moments.add(resultOf(2), 0.497, { isLast: true });
  assert.deepEqual(said(moments), [1, 2]);
  moments.add(resultOf(3), 0.7, { isLast: true });
  assert.deepEqual(said(moments), [1, 2, 3], "longer ink is another moment");
});

test("what another network said is none of its moments", () => {
  const sources = [{ patch_size: 4 }, { preset: "digits-tiny" }];
  for (const other of sources) {
    const moments = createMoments();
    moments.follow(line(0.5));
    moments.add(resultOf(1), 0.2);
    moments.add(resultOf(7), 0.5);
    moments.add(resultOf(2, 0.9, { preset: "digits-small", patch_size: 7, ...other }), 0.5, { isLast: true });
    assert.deepEqual(said(moments), [2]);
  }
});

test("a visitor leads back to any moment but the last, which is now", () => {
  const moments = createMoments();
  moments.follow(line(0.6));
  for (const [index, length] of [
    [1, 0.2],
    [7, 0.4],
    [9, 0.6],
  ])
    moments.add(resultOf(index), length);
  for (const [wanted, at] of [
    [0, 0],
    [1, 1],
    [2, null],
    [5, null],
    [-3, 0],
    [null, null],
  ]) {
    moments.scrub(wanted);
    assert.deepEqual([moments.at(), moments.scrubbed()?.length ?? null], [at, at === null ? null : [0.2, 0.4][at]]);
  }
  moments.scrub(1);
  moments.follow(line(0.25));
  assert.equal(moments.at(), null, "a moment that is gone is not looked at");
});

test("a drawing has a bounded number of moments", () => {
  const moments = createMoments();
  for (let i = 0; i < 1000; i++) moments.add(resultOf(1), i);
  assert.equal(moments.list().length, 900);
  assert.equal(moments.list().at(-1).length, 999, "the oldest are forgotten");
});

test("guesses cover the ink in their order, and each is marked where it was surest", () => {
  const answers = [
    [1, 0.7, 0],
    [1, 0.9, 100],
    [7, 0.5, 300],
    [1, 0.95, 310],
    [9, 0.8, 900],
    [9, 0.4, 1000],
  ];
  const moments = answers.map(([index, probability, time], i) => ({
    result: resultOf(index, probability),
    length: (i + 1) / 10,
    time,
  }));
  const guesses = guessesOf(moments, isUnsure);
  assert.deepEqual(
    guesses.map(({ label, from, to, isSure }) => [label, from, to, isSure]),
    [
      ["1", 0, 0.4, true],
      ["9", 0.4, 0.6, false],
    ],
  );
  assert.deepEqual(guesses[0].surest, { at: (0.3 + 0.4) / 2, probability: 0.95 });
  assert.deepEqual(guessesOf([], isUnsure), []);
  const nameless = { result: { predictions: [] }, length: 0.1, time: 0 };
  assert.deepEqual(guessesOf([nameless], isUnsure), [], "a network without classes guesses nothing");
});
