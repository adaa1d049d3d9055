// One result for the newest state of the page: late replies are dropped, failures keep the result of the same picture alone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createResults, LOST } from "../../vit_demo/web/frontend/inputs/results.js";
import { createPageState, newResult, RESTORE, resultStatus } from "../../vit_demo/web/frontend/shared/pageState.js";
import { page } from "./page.js";

let element = { isConnected: true };
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Results whose requests the test replies to in any order; `open(onShown)` is what the stage does with one. */
function heldResults(open = (onShown) => onShown?.()) {
  element.isConnected = false; // that of the test before
  element = { isConnected: true };
  const pageState = createPageState();
  const held = [];
  const shown = [];
  const server = {
    request: ({ source }) => new Promise((resolve) => held.push({ source, reply: (value) => resolve(value) })),
  };
  const drawingOf = (strokes) => `drawing of ${strokes.length}`;
  const results = createResults(server, {
    drawingOf,
    previewOf: ({ example }) => `preview of ${example}`,
    opening: page.first,
    firstPause: 1,
  });
  pageState.subscribe(element, results.update);
  newResult.subscribe(element, ({ payload, restored, isNewest, onShown }) => {
    assert.ok(isNewest());
    shown.push({ payload, restored });
    open(onShown);
  });
  pageState.open(page.first);
  shown.length = 0;
  return { pageState, held, shown, results };
}

test("a reply that is not for the newest state is dropped, in whatever order they come", async () => {
  const { pageState, held, shown } = heldResults();
  pageState.changeTab("digits", { patchSize: 7 });
  pageState.chooseTask("photos");
  pageState.chooseTask("digits");
  assert.equal(held.length, 3);
  for (const i of [1, 2, 0]) {
    held[i].reply({ result: `result ${i}` });
    await settle();
  }
  assert.deepEqual(
    shown.map(({ payload }) => payload),
    ["result 2"],
  );
  assert.deepEqual(held[1].source, {
    example: "lion",
    preset: "photos-tiny",
    patch_size: 12,
    fit: "crop",
    dropped: [],
  });
  assert.equal(resultStatus.latest().state, "done");
});

test("a page that a link opens shows a copy of its picture, or none, until the result is there", async () => {
  const { pageState, held, shown } = heldResults();
  pageState.restore({ ...page.first, task: "photos" });
  assert.deepEqual(shown[0].payload, { empty: true, message: "", picture: "preview of lion" });
  held[0].reply({ result: "the lion" });
  await settle();
  pageState.restore(page.first);
  const payloads = shown.slice(1).map(({ payload }) => payload);
  assert.deepEqual(payloads, ["the lion"], "later the result of before stays until then");
});

test("back at what is shown nothing is requested, and what was shown before comes from memory", async () => {
  const { pageState, held, shown } = heldResults();
  pageState.changeTab("digits", { patchSize: 7 });
  pageState.changeTab("digits", { patchSize: 4 });
  assert.equal(resultStatus.latest().state, "done");
  assert.deepEqual(shown.at(-1).payload, null, "the result on the stage is the right one");
  held[0].reply({ result: "late" });
  await settle();
  assert.equal(shown.length, 1);
  pageState.changeTab("digits", { patchSize: 7 });
  held[1].reply({ result: "seven" });
  await settle();
  pageState.chooseTask("photos");
  held[2].reply({ result: "lion" });
  await settle();
  pageState.chooseTask("digits");
  assert.deepEqual([held.length, shown.at(-1).payload], [3, "seven"]);
});

test("a result that is still being opened when another state comes is neither shown nor done", async () => {
  const { pageState, held } = heldResults(() => {});
  let late = null;
  newResult.subscribe(element, (message) => {
    late ??= message;
  });
  pageState.changeTab("digits", { patchSize: 7 });
  held[0].reply({ result: "seven" });
  await settle();
  assert.equal(resultStatus.latest().state, "pending", "until the stage shows it");
  pageState.chooseTask("photos");
  late.onShown();
  assert.ok(!late.isNewest());
  assert.equal(resultStatus.latest().state, "pending");
});

test("without a picture a sentence takes the result's place at once", () => {
  const { pageState, held, shown } = heldResults();
  pageState.changeTab("digits", { picture: null });
  assert.ok(shown[0].payload.empty && shown[0].payload.message.startsWith("Here: one digit"));
  assert.equal(held.length, 0);
});

test("a failure keeps the result and can be retried; a lost connection is retried by itself", async () => {
  const { pageState, held, shown, results } = heldResults();
  pageState.changeTab("digits", { patchSize: 7 });
  held[0].reply({ error: "No." });
  await settle();
  assert.deepEqual([shown.length, resultStatus.latest()], [0, { state: "failed", sentence: "No.", canRetry: true }]);
  results.retry();
  held[1].reply(undefined);
  await settle();
  assert.deepEqual(resultStatus.latest(), { state: "lost", sentence: LOST, canRetry: true });
  await new Promise((resolve) => setTimeout(resolve, 20));
  held[2].reply({ result: "seven" });
  await settle();
  assert.deepEqual([shown.at(-1).payload, resultStatus.latest().state], ["seven", "done"]);
});

test("of a photo that is refused there is one sentence, and nothing of the picture before", async () => {
  const { pageState, held, shown } = heldResults();
  const empty = (message) => ({ empty: true, message });
  for (const sentence of ["Too small.", "No photo."]) {
    pageState.chooseTask("photos", { picture: { upload: `/uploads/${sentence}.png`, name: "a.png" } });
    held.at(-1).reply({ error: sentence, retry: false });
    await settle();
    assert.deepEqual(shown.at(-1).payload, empty(sentence));
    assert.deepEqual(resultStatus.latest(), { state: "failed", sentence, canRetry: false });
  }
  pageState.chooseTask("photos", { picture: { refused: "This is not a picture." } });
  assert.deepEqual(shown.at(-1).payload, empty("This is not a picture."));
  pageState.chooseTask("photos", { picture: { refused: "Too large." } });
  assert.deepEqual([shown.at(-1).payload, held.length], [empty("Too large."), 2]);
  pageState.chooseTask("photos", { picture: { example: "lion" } });
  held[2].reply({ result: "lion" });
  await settle();
  assert.deepEqual([shown.at(-1).payload, resultStatus.latest().state], ["lion", "done"]);
});

test("while the connection is lost nothing of another picture is shown", async () => {
  const { pageState, held, shown } = heldResults();
  pageState.changeTab("digits", { picture: { digit: 3 } });
  held[0].reply(undefined);
  await settle();
  assert.deepEqual([shown.length, shown[0].payload], [1, { empty: true, message: LOST }]);
  assert.equal(resultStatus.latest().state, "lost");
  await new Promise((resolve) => setTimeout(resolve, 20));
  held[1].reply({ result: "three" });
  await settle();
  assert.deepEqual([shown.at(-1).payload, resultStatus.latest().state], ["three", "done"]);
});

test("what a link restores is said to be restored, even if it is still being computed", async () => {
  const { pageState, held, shown } = heldResults();
  const view = { ...page.first.view, block: 2, label: 3 };
  pageState.restore({ ...page.first, task: "photos", view });
  pageState.changeView({ method: "rollout" });
  held[0].reply({ result: "lion" });
  await settle();
  assert.deepEqual(shown.slice(1), [{ payload: "lion", restored: true }]); // after the copy of it
  pageState.restore({ ...page.first, task: "photos" });
  assert.equal(shown.length, 2, "another view of what is shown is no other result");
  pageState.subscribe(element, (_, how) => assert.notEqual(how, RESTORE));
});
