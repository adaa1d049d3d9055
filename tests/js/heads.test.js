// Silent heads: one undo beside squares that are rubbed out, and what the first screen says of both.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { createDropping } from "../../vit_demo/web/frontend/stage/dropping.js";
import { frameOf, isWhole } from "../../vit_demo/web/frontend/stage/frame.js";
import {
  captionOf,
  commandOf,
  nameOf,
  pythonOf,
  valuesOf,
} from "../../vit_demo/web/frontend/stage/views/download/description.js";

const whole = { run: "whole", dropped: [], silent: [], numPatches: 4, source: { digit: "data:" } };

/** A dropping whose choices are kept as the page keeps them, and what was requested and shown. */
function start({ refuse = () => false } = {}) {
  let view = { dropped: null, silent: null };
  const asked = [];
  const shown = [];
  const request = async ({ source }) => {
    asked.push(source);
    return refuse(source) ? { error: "There is no such head." } : { result: source };
  };
  const dropping = createDropping(request, {
    chosen: () => view,
    keptClass: () => ({}),
    prepare: async () => {},
    show: (result) => shown.push(result),
    onChange({ dropped, silent }) {
      view = { dropped, silent };
    },
    open: async (source) => ({ ...source, run: JSON.stringify(source) }),
  });
  dropping.start(whole);
  return { dropping, asked, shown, view: () => view };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

test("one undo takes back squares and heads, in the order in which they went", async () => {
  const { dropping, shown, view } = start();
  dropping.brush(2);
  dropping.lift();
  dropping.leaveOut({ silent: [[0, 1]] });
  dropping.leaveOut({ dropped: [0, 1] });
  await settled();
  assert.deepEqual([shown.at(-1).dropped, shown.at(-1).silent], [[0, 1], [[0, 1]]]);
  const states = [];
  while (dropping.canUndo()) {
    dropping.undo();
    states.push(JSON.stringify(view()));
  }
  const expected = [
    { dropped: [2], silent: [[0, 1]] },
    { dropped: [2], silent: null },
    { dropped: null, silent: null },
  ];
  assert.deepEqual(
    states,
    expected.map((one) => JSON.stringify(one)),
  );
  await settled();
  assert.equal(shown.at(-1), whole, "which needs no request");
  dropping.leaveOut({ silent: [[0, 0]] });
  dropping.restoreAll();
  assert.deepEqual(view(), { dropped: null, silent: null });
});

test("what a search leaves out is one act, however often it finds fewer, and none by hand", async () => {
  const { dropping, view } = start();
  dropping.brush(3);
  dropping.lift();
  const isByHand = () => dropping.isByHand({ dropped: view().dropped ?? [] });
  assert.ok(isByHand());
  dropping.leaveOut({ dropped: [0, 1, 2] });
  for (const fewer of [[0, 1], [0]]) dropping.leaveOut({ dropped: fewer }, true);
  assert.ok(!isByHand());
  dropping.undo();
  assert.deepEqual(view().dropped, [3]);
  assert.ok(isByHand());
  dropping.start(whole);
  assert.ok(!dropping.isByHand({ dropped: [3] }), "of another picture");
});

test("a head that is refused is chosen no longer, and the next one works", async () => {
  const { dropping, shown, view } = start({ refuse: ({ silent }) => silent.some(([block]) => block > 5) });
  dropping.leaveOut({ silent: [[9, 0]] });
  await settled();
  assert.deepEqual([view().silent, dropping.error(), shown.length], [null, "There is no such head.", 0]);
  dropping.leaveOut({ silent: [[1, 0]] });
  await settled();
  assert.deepEqual([shown.at(-1).silent, dropping.error()], [[[1, 0]], ""]);
});

test("the headline says what it comes to without heads", () => {
  const resultOf = (index, probability, more) => ({
    predictions: [
      { index, name: `${index}`, label: `${index}`, probability, scores: "softmax" },
      { index: 9, name: "9", label: "9", probability: (1 - probability) / 2, scores: "softmax" },
    ],
    ...{ dropped: [], silent: [], confident: probability > 0.6, source: {}, pixelated: true, numPatches: 16 },
    ...{ numBlocks: 6, tokenOf: Int32Array.from({ length: 16 }, (_, i) => i) },
    ...more,
  });
  const all = resultOf(8, 0.99);
  const heads = [
    [1, 0],
    [3, 2],
  ];
  const frame = (result, verb) => {
    const choices = { pinned: null, hovered: null };
    const given = { verb, task: "digits", result, whole: all, live: false, moments: [], at: null, choices };
    return frameOf({ ...given, isOwn: true, isTried: true });
  };
  const told = (result, verb) => frame(result, verb).headline.text.replaceAll("\u00a0", " ").replaceAll("*", "");
  for (const verb of ["draw", "rub", "look"]) {
    assert.equal(told(resultOf(8, 0.9, { silent: heads }), verb), "Without 2 heads it still says 8: 90.0 %.");
    assert.equal(told(resultOf(3, 0.9, { silent: [[0, 0]] }), verb), "Without 1 head it says 3: 90.0 %.");
    const unsure = "Without 2 heads it is unsure: 8 45.0 %, 9 27.5 %.";
    assert.equal(told(resultOf(8, 0.45, { silent: heads }), verb), unsure);
    assert.equal(told(resultOf(8, 0.55, { silent: heads }), verb), "Without 2 heads it leans to 8: 55.0 %.");
    const both = (squares, probability = 0.9) => resultOf(8, probability, { silent: heads, dropped: squares });
    assert.equal(told(both([1]), verb), "Without 2 heads and 1 square it still says 8: 90.0 %.");
    assert.equal(told(both([1, 2, 3]), verb), "Without 2 heads and 3 squares it still says 8: 90.0 %.");
    assert.match(told(both([1, 2, 3], 0.45), verb), /^Without 2 heads and 3 squares it is unsure: 8 45.0 %/);
  }
  const unsure = frame(resultOf(8, 0.45, { silent: heads }), "draw");
  assert.deepEqual([unsure.doubt, unsure.answers.isUnsure, unsure.ask], ["unsure", true, "none"]);
  assert.match(unsure.mechanism, /and is unsure\.$/);
  const photo = { ...resultOf(8, 0.9, { silent: heads }), predictions: [], pixelated: false };
  assert.equal(told(photo, "look"), "The network reads the photo without 2 heads.");
  assert.deepEqual(
    [all, resultOf(8, 0.9, { silent: heads }), resultOf(8, 0.9, { dropped: [1] })].map((one) => isWhole(one, all)),
    [true, false, false],
  );
});

test("what is saved names the silent heads", () => {
  const method = {
    ...{ label: "Rollout", unit: "share", uses: [], classSpecific: false },
    subject: () => "Rollout",
    format: String,
  };
  const saved = (silent) => ({
    ...{ name: "rollout", method, methods: { rollout: method }, view: {}, map: Float32Array.of(0.5) },
    curves: { measured: () => [] },
    result: {
      ...{ silent, dropped: [], numPatches: 16, rows: 4, columns: 4, pixelated: true },
      predictions: [{ index: 8, name: "8", label: "8", probability: 0.9, scores: "softmax" }],
      source: { preset: "digits-small", patch_size: 7, dropped: [], silent },
    },
  });
  const two = saved([
    [1, 0],
    [3, 2],
  ]);
  assert.match(
    captionOf(two).join("\n").replaceAll("\u00a0", " "),
    /prediction 8, 90.0 % without 2 heads \(2.1, 4.3\)/,
  );
  assert.equal(nameOf(two), "drawing-8-rollout-without-2.1-4.3-digits-small-7");
  assert.match(pythonOf(two), /ex\.without\(heads=\[\[1,0\],\[3,2\]\]\)/);
  assert.match(commandOf(two), /--without-heads 1\.0,3\.2$/);
  assert.deepEqual(valuesOf(two, null).silent, two.result.silent);
  const many = saved(Array.from({ length: 9 }, (_, head) => [0, head]));
  assert.equal(nameOf(many), "drawing-8-rollout-without-9-heads-digits-small-7");
  assert.equal(nameOf(saved([])), "drawing-8-rollout-digits-small-7");
  assert.doesNotMatch(captionOf(saved([])).join(), /without/);
});
