// Bringing a model to the server: a job with its progress, which stops when nobody requests it any more.

import { translate } from "../shared/language.js";
import { createRequestIds, sendRequest } from "../stage/requests.js";

/**
 * `start(model)` requests a model, {name, title, ...}, until it is there, and calls `onReady(entry, model)` with its entry
 * for the menu; `onChange(job)` gets null, or {model, done, total, error}: bytes, and a sentence if it failed.
 */
export function createModelJob(server, { onChange, onReady }) {
  const ids = createRequestIds();
  let job = null;

  function change(next) {
    job = next;
    onChange(job);
  }

  async function start(model) {
    const isCurrent = ids.start();
    change({ model, done: 0, total: 0, error: "" });
    const onProgress = (_, { done, total }) => change({ ...job, done, total });
    const reply = await sendRequest(server, { kind: "model", name: model.name }, { isCurrent, onProgress });
    if (!reply || !isCurrent()) return;
    if (reply.error) return change({ ...job, error: reply.error });
    change(null);
    onReady(reply.result, model);
  }

  function cancel() {
    ids.start();
    change(null);
  }

  return { start, cancel, retry: () => job && start(job.model), isRunning: () => Boolean(job) };
}

/** What a job is doing, in words. */
export function jobText({ model, done, total, error }) {
  if (error) return error;
  const title = translate(model.title ?? model.name);
  if (!total) return translate("Downloading {title} …", { title });
  const [loaded, all] = [done, total].map((bytes) => Math.round(bytes / 1e6));
  const percentage = Math.floor((100 * done) / total);
  return translate("Downloading {title}: {loaded} of {all} MB, {percentage} %", { title, loaded, all, percentage });
}
