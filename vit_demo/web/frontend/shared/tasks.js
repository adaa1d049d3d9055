// @ts-check
// Work on a result that a visitor starts and may cancel; what it found is kept as long as the result.

/**
 * A subject is {result, fields}: its task is that of the same result and equal fields. `getShown()` returns the subject that
 * can be worked on now, or null; `onUpdate()` is called when a task changes.
 *
 * `of(subject)` returns its task, {running, progress, error} and what `start` began with and `put` added.
 */
export function createTasks(getShown, onUpdate) {
  const tasks = new WeakMap(); // result -> Map from the fields to a task
  const tasksOf = ({ result }) => tasks.get(result) ?? tasks.set(result, new Map()).get(result);
  const keyOf = ({ fields }) => JSON.stringify(fields);
  const of = (subject) => subject && tasksOf(subject).get(keyOf(subject));

  /** Another task of the subject may have begun since. */
  function forget(subject, task) {
    if (of(subject) === task) tasksOf(subject).delete(keyOf(subject));
  }

  /**
   * Starts a task. `steps({put, isCurrent, onProgress})` does the work and resolves to its last reply: null if the visitor
   * went elsewhere, which `isCurrent()` tells; then the task is forgotten.
   */
  async function start(subject, first, steps) {
    const task = { running: true, progress: null, error: "", ...first };
    tasksOf(subject).set(keyOf(subject), task);
    const put = (part) => {
      Object.assign(task, part);
      onUpdate();
    };
    onUpdate();
    const reply = await steps({
      put,
      isCurrent: () => task.running && of(getShown()) === task,
      onProgress: (progress) => put({ progress }),
    });
    if (!reply && task.running) forget(subject, task);
    put({ running: false, error: reply?.error ?? "" });
  }

  /** What is computed stops when nobody waits for it. */
  function cancel(subject) {
    const task = of(subject);
    task.running = false;
    forget(subject, task);
    onUpdate();
  }

  return { of, start, cancel };
}
