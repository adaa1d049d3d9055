// What is kept of a task that takes long, of which the visitor may go elsewhere, or cancel it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createTasks } from "../../vit_demo/web/frontend/shared/tasks.js";

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
  assert.equal(tasks.of(other), undefined);
  await endCancelled({});
  assert.deepEqual(task.sets, []);
});
