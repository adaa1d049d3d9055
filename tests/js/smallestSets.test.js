// The sets of patches that are enough or needed: what is requested, in which order, when it ends, and in which words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createTasks } from "../../vit_demo/web/frontend/shared/tasks.js";
import { captionOf, findSets, spokenPatches } from "../../vit_demo/web/frontend/stage/views/smallestSets/sets.js";

const found = (patches, more = {}) => ({
  patches,
  probability: 0.81,
  prediction: "one",
  is_minimal: true,
  passes: 40,
  ...more,
});

/** The requests and the sets of a search whose replies are known. */
async function search(replies) {
  const sent = [];
  let state = { sets: [] };
  const send = async (fields) => {
    sent.push(fields);
    return replies[sent.length - 1];
  };
  const last = await findSets(send, (part) => {
    state = { ...state, ...part };
  });
  return { sent, last, ...state };
}

test("each further set is looked for without the patches of those before; three ways are all", async () => {
  const replies = [[1, 2], [9], [5], [6, 7]].map((patches) => ({ result: found(patches) }));
  const { sent, sets, isDone } = await search(replies);
  assert.deepEqual(sent, [
    { wanted: "enough", without: [] },
    { wanted: "needed" },
    { wanted: "enough", without: [1, 2] },
    { wanted: "enough", without: [1, 2, 5] },
  ]);
  assert.deepEqual(
    sets.map(({ wanted, isOther }) => `${wanted} ${Boolean(isOther)}`),
    ["enough false", "needed false", "enough true", "enough true"],
  );
  assert.ok(isDone);
});

test("the smallest set that is enough comes first, whenever it was found", async () => {
  const replies = [[1, 2, 3, 4], [9], [5, 6, 7], [8, 10]].map((patches) => ({ result: found(patches) }));
  const { sets } = await search(replies);
  assert.deepEqual(
    sets.map(({ patches, isOther }) => [patches.length, Boolean(isOther)]),
    [
      [2, false],
      [1, false],
      [3, true],
      [4, true],
    ],
  );
});

test("the search ends when there is no other way, and goes on where no patch is needed", async () => {
  const none = { result: { patches: null } };
  const { sent, isDone } = await search([{ result: found([1]) }, none, none]);
  assert.deepEqual([sent.length, isDone], [3, true]);
});

test("an error or a visitor who went elsewhere ends the search with what was found", async () => {
  for (const last of [{ error: "Busy." }, null]) {
    const ended = await search([{ result: found([1]) }, last]);
    assert.deepEqual([ended.last, ended.sets.length, ended.isDone], [last, 1, false]);
  }
});

const target = { index: 7, label: "seven", probability: 0.9 };
const result = { columns: 5, numPatches: 20, dropped: [3], predictions: [target, { index: 1, label: "one" }] };
const caption = (set, about = target) => captionOf(set, result, about).replaceAll("\u00a0", " ");

test("captions say how many patches of how many, what the model says, and what is not certain", () => {
  const enough = (patches, more) => ({ wanted: "enough", isOther: false, ...found(patches, more) });
  assert.equal(
    caption(enough([4, 5])),
    "*2 of 19 patches are enough*, the fewest found: 81.0 % for seven, 90.0 % with all patches.",
  );
  assert.match(caption(enough([4])), /^\*1 of 19 patches is enough\*/);
  assert.match(caption(enough([4], { is_minimal: false })), / The search ended after 40 tries: fewer may do\.$/);
  assert.match(caption({ ...enough([4, 5]), isOther: true }), /^\*Another way to see it\*: 2 other patches, 81/);
  assert.match(caption({ wanted: "enough", isOther: true, patches: null }), /^\*There is no other way\*/);
});

test("of a class that is not predicted, the needed patches are those that halve its probability", () => {
  const needed = { wanted: "needed", isOther: false, ...found([4, 5]) };
  assert.equal(caption(needed), "*Without these 2* the model says one: 81.0 % is left for seven.");
  const other = { index: 1, label: "one", probability: 0.02 };
  assert.match(caption(needed, other), /^\*Without these 2\* less than half is left/);
  const none = { wanted: "needed", patches: null };
  assert.match(caption(none), /seven stays the prediction/);
  assert.match(caption(none, other), /one keeps half of its probability/);
});

test("screen readers get the patches row by row", () => {
  const list = "row 1, column 5; row 2, columns 1, 3";
  assert.equal(spokenPatches({ wanted: "enough", patches: [7, 4, 5] }, result), `Nothing but these patches. ${list}`);
  assert.match(
    spokenPatches({ wanted: "needed", patches: [7, 4, 5] }, result),
    /^Everything but these patches\. row 1/,
  );
});

/** Tasks of which one is shown, and that end when the test says so. */
function tasksOf(shown) {
  let end;
  const tasks = createTasks(
    () => shown.now,
    () => {},
  );
  const steps = async ({ isCurrent, put }) => {
    const reply = await new Promise((resolve) => {
      end = resolve;
    });
    if (!isCurrent()) return null;
    put({ sets: [1] });
    return reply;
  };
  const start = (subject) => {
    const ended = tasks.start(subject, { sets: [] }, steps);
    return async (reply) => {
      end(reply);
      await ended;
    };
  };
  return { tasks, start };
}

test("a task keeps what it found; it is forgotten when the visitor went elsewhere, or cancelled it", async () => {
  const one = { result: {}, fields: { label: 1 } };
  const shown = { now: one };
  const { tasks, start } = tasksOf(shown);
  await start(one)({ error: "" });
  const same = { result: one.result, fields: { label: 1 } };
  assert.deepEqual([tasks.of(same).sets, tasks.of(same).running], [[1], false]);

  const other = { ...one, fields: { label: 2 } };
  const endOther = start(other);
  await endOther({}); // while the first is shown
  assert.equal(tasks.of(other), undefined);

  shown.now = other;
  const endCancelled = start(other);
  const task = tasks.of(other);
  tasks.cancel(other);
  assert.ok(task.isForgotten && tasks.of(other) === undefined);
  await endCancelled({});
  assert.deepEqual(task.sets, []);

  const endKept = start(other);
  tasks.cancel(other, true);
  await endKept({});
  assert.equal(tasks.of(other).running, false);
});
