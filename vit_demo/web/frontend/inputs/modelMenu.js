// @ts-check
// The model menu, with the jobs that bring a model to the server, and the patch sizes.

import { createRadios, isNew, make, makeOptions, setText } from "../shared/dom.js";
import { currentLanguage, english, formatDecimals, formatInteger, translate } from "../shared/language.js";
import { isTrained, sizeOf } from "../shared/link.js";
import { readWords } from "../shared/linkFields.js";
import { PUSH, RESTORE, storeSetting } from "../shared/pageState.js";
import { createRequestIds, sendRequest } from "../shared/requests.js";

/** The photo model that was chosen last, in the browser's storage. */
export const PHOTO_MODEL = "vit_demo.photo-model";

const OWN = "own";
const CUSTOM_HINT = english("A ViT, DeiT or DINOv2 of timm or transformers, with safetensors weights.");

/**
 * Starts the menu in its element. `models` maps names to the entries of Python's `model_entry`; `offer` is the name of the
 * model that the photo tab offers, `own` that of drawings which is led back to from one that was trained here. `show(state)` shows the state; `use(model, how)` chooses a model that needs no download.
 * `linked` is the model that a link names and that must be downloaded: `open(model)` gets it and uses it, as part of the
 * state of the link unless the visitor chooses anything before; `leave()` ends that; `isAwaited()` tells whether it is
 * under way and nothing was chosen.
 */
export function createMenu(element, { pageState, server, models, offer, own, customModels }) {
  const find = (selector) => element.querySelector(selector);
  const [select, custom, box, job, offered] = ["#preset", ".custom", ".custom input", ".job", ".offer"].map(find);
  const sizes = createPatchSizes(find("#patch-size"), (value) => {
    const { task } = pageState.get();
    pageState.changeTab(task, { patchSize: value });
  });
  const words = createWords(find(".words"), (words) => pageState.changeTab("photos", { words }));
  const jobs = createModelJob(server, { onChange: showJob, onReady: install });
  let isAsking = false; // whether the box for a model of the Hub is open
  let isLinked = false; // whether the model of a link is awaited

  function cancel() {
    isLinked = false;
    jobs.cancel();
  }

  function choose(name) {
    const model = models.get(name);
    isAsking = name === OWN;
    cancel();
    if (!isAsking && model.on_machine) use(model);
    else if (!isAsking) jobs.start(model);
    show(pageState.get());
    if (isAsking) box.focus();
  }

  function use(model, how = PUSH, patchSize = model.default_patch_size) {
    pageState.changeTab(model.task, { preset: model.name, patchSize }, how);
    if (model.task === "photos") storeSetting(PHOTO_MODEL, model.name);
  }

  /** A model is on the server now. */
  function install(entry, { patchSize }) {
    const wasLinked = isLinked;
    isLinked = false;
    models.set(entry.name, { ...entry, on_machine: true });
    isAsking = false;
    const state = pageState.get();
    const tab = { ...state[entry.task], preset: entry.name, patchSize: sizeOf(entry, patchSize) };
    if (wasLinked) pageState.restore({ ...state, [entry.task]: tab });
    else use(entry, PUSH, tab.patchSize);
    show(pageState.get());
  }

  function showJob(current) {
    if (current?.error && isTrained(current.model.name) && isLinked && pageState.get().view.training) {
      isLinked = false;
      pageState.changeView({ section: "build" }, RESTORE); // where the network can be trained again
    }
    job.hidden = !current;
    custom.classList.toggle("busy", Boolean(current && !current.error));
    if (!current) return;
    setText(find(".job-text"), jobText(current));
    job.classList.toggle("failed", Boolean(current.error));
    find(".job .track i").style.width = current.total ? `${(100 * current.done) / current.total}%` : "0";
  }

  function label({ title, on_machine: isHere, megabytes }) {
    if (isHere) return title;
    return translate("{title} · download, {megabytes} MB", { title: translate(title), megabytes });
  }

  function list(task) {
    const entries = [...models.values()].filter((model) => model.task === task);
    const options = (members) => members.map((m) => [m.name, label(m)]);
    const group = (title, members) =>
      members.length && make("optgroup", { label: title }, ...makeOptions(options(members)));
    const own = { name: OWN, title: english("Your own, from the Hub …"), on_machine: true };
    const here = entries.filter((model) => model.on_machine);
    const away = entries.filter((model) => !model.on_machine);
    if (task === "photos" && customModels) away.push(own);
    if (!isNew(select, [currentLanguage(), options(here), options(away)])) return;
    select.replaceChildren(
      ...[group(english("On this machine"), here), group(english("From the Hub"), away)].filter(Boolean),
    );
  }

  function show(state) {
    const { preset, patchSize, fit, words: chosen } = state[state.task];
    const model = models.get(preset);
    list(state.task);
    select.value = preset;
    const canAsk = isAsking && state.task === "photos";
    custom.hidden = !canAsk;
    setText(find(".about-own"), canAsk ? CUSTOM_HINT : "");
    setText(find(".summary"), canAsk || state.task === "digits" ? "" : model.summary);
    words.show(model.takes_words && !canAsk ? (chosen ?? model.words) : null);
    const isMeasured = state.task === "digits" || fit === "crop";
    sizes.set(model, patchSize, { isMeasured, isWhole: state.task === "photos" && fit === "keep" });
    showOffer(canAsk ? null : model);
  }

  /** The way back from a network that the visitor taught or trained; else a model with more classes than the chosen one. */
  function showOffer(model) {
    const before = models.get(model?.base ?? (isTrained(model?.name) ? own : ""));
    const larger = model?.task === "photos" ? models.get(offer) : null;
    offered.hidden = !before && !(larger && model.num_classes && model.num_classes < larger.num_classes);
    if (offered.hidden) return;
    offered.dataset.model = (before ?? larger).name;
    if (before) return setText(offered, translate("*Back to {name}*", { name: translate(before.title) }));
    const values = {
      few: model.num_classes,
      many: formatInteger(larger.num_classes),
      name: larger.title.split(",")[0],
      megabytes: larger.megabytes,
    };
    const offerText = larger.on_machine
      ? translate("{few} classes. *Switch to {name}: {many} classes*", values)
      : translate("{few} classes. *Switch to {name}: {many} classes, {megabytes} MB*", values);
    setText(offered, offerText);
  }

  select.addEventListener("change", () => choose(select.value));
  offered.addEventListener("click", () => choose(offered.dataset.model));
  custom.addEventListener("submit", (event) => {
    event.preventDefault();
    isLinked = false;
    if (box.value.trim()) jobs.start({ name: box.value.trim() });
  });
  find("[data-job=cancel]").addEventListener("click", cancel);
  find("[data-job=retry]").addEventListener("click", jobs.retry);
  find("[data-job=back]").addEventListener("click", () => {
    cancel();
    isAsking = false;
    show(pageState.get());
    select.focus();
  });

  pageState.subscribe(element, (_, how) => {
    if (how === PUSH) isLinked = false;
  });

  const linked = {
    open(model) {
      isLinked = true;
      jobs.start({ ...models.get(model.name), ...model });
    },
    leave: () => isLinked && cancel(),
    isAwaited: () => isLinked,
  };
  return { show, use, linked };
}

// Bringing a model to the server: a job with its progress, which stops when nobody requests it any more.

/**
 * `start(model)` requests a model, {name, title, ...}, until it is there, and calls `onReady(entry, model)` with its entry
 * for the menu; `onChange(job)` gets null, or {model, done, total, error}: bytes, and a sentence if it failed.
 */
function createModelJob(server, { onChange, onReady }) {
  const startRequest = createRequestIds();
  let job = /** @type {any} */ (null);

  function change(next) {
    job = next;
    onChange(job);
  }

  async function start(model) {
    const isCurrent = startRequest();
    change({ model, done: 0, total: 0, error: "" });
    const onProgress = (_, { done = 0, total = 0 }) => change({ ...job, done, total });
    const reply = await sendRequest(
      server,
      { kind: "model", name: model.name, taught: model.taught },
      { isCurrent, onProgress },
    );
    if (!reply || !isCurrent()) return;
    if (reply.error) return change({ ...job, error: reply.error });
    change(null);
    onReady(reply.result, model);
  }

  function cancel() {
    startRequest();
    change(null);
  }

  return { start, cancel, retry: () => job && start(job.model) };
}

/** What a job is doing, in words. */
function jobText({ model, done, total, error }) {
  if (error) return error;
  const title = translate(model.title ?? model.name);
  if (!total) return translate("Downloading {title} …", { title });
  const [loaded, all] = [done, total].map((bytes) => Math.round(bytes / 1e6));
  const percentage = Math.floor((100 * done) / total);
  return translate("Downloading {title}: {loaded} of {all} MB, {percentage} %", { title, loaded, all, percentage });
}

// The choice of a patch size, which shows at once what each size trades: squares and accuracy; on a wide screen, tokens and operations.

const MOST_WITHOUT_SCROLLING = 5;

/**
 * Each row of the choice: its name, and its value for a size (an entry of Python's `describe_patch_size`). A whole photo has as
 * many squares as fit into its shape.
 */
const squaresOf = (isWhole) => [
  english("squares"),
  ({ side }) => (isWhole ? `≤\u00a0${formatInteger(side ** 2)}` : formatInteger(side ** 2)),
];
const RIGHT = english("% right");
const COSTS = [
  [english("tokens"), ({ tokens }) => formatInteger(tokens)],
  // The columns are too narrow for a unit.
  [english("M operations"), ({ operations: n }) => formatDecimals(n / 1e6, n < 1e7 ? 1 : 0, true)],
];

/**
 * `set(model, value, {isMeasured, isWhole})` shows the sizes of a model in `host`, `isMeasured` whether their accuracies hold,
 * `isWhole` whether a photo keeps its shape.
 */
function createPatchSizes(host, onChange) {
  const [names, bar] = host.children;
  const radios = createRadios(bar, onChange);

  function set({ sizes }, value, { isMeasured, isWhole }) {
    const accuracyOf = ({ accuracy }) => (isMeasured && accuracy !== null ? formatDecimals(accuracy, 1) : "–");
    const right = sizes.some(({ accuracy }) => accuracy !== null) ? [[RIGHT, accuracyOf]] : [];
    const rows = [squaresOf(isWhole), ...right, ...COSTS];
    host.classList.toggle("scrolls", sizes.length > MOST_WITHOUT_SCROLLING);
    const titles = [english("pixels"), ...rows.map(([name]) => name)];
    names.replaceChildren(...titles.map((title) => make("span", {}, title)));
    const options = sizes.map((each) => [each.size, String(each.size), rows.map(([, read]) => read(each))]);
    radios.set(options, value);
  }

  return { set };
}

// The words of a model that takes any as its classes. They are used when they are entered, not letter by letter.

/** Starts the form. `onWords(words)` gets a list, or null for the model's own; `show(words)` shows them, null hides it. */
function createWords(/** @type {HTMLFormElement} */ form, onWords) {
  const box = /** @type {HTMLInputElement} */ (form.querySelector("input"));
  let shown = "";

  function enter() {
    if (box.value.trim() !== shown) onWords(readWords(box.value));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    enter();
  });
  box.addEventListener("change", enter);

  return {
    show(/** @type {string[] | null} */ words) {
      form.hidden = !words;
      if (!words || words.join(", ") === shown) return;
      shown = box.value = words.join(", ");
    },
  };
}
