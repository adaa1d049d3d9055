// @ts-check
// The page's one state: the open tab, what each tab holds, and the view of the stage.
//
// A state is never changed in place, so parts that are the same object are the same.

/**
 * @typedef {{picture: number, patch: number}} Place Picture 1 is the second.
 * @typedef {{preset: string, patchSize: number, method: string, label: number | null, without: boolean}} Column
 * @typedef {object} View
 * @property {number | null} lesson whose task is shown above the stage
 * @property {string} section
 * @property {string} method
 * @property {boolean} plain whether the picture is shown without a map
 * @property {number | null} block
 * @property {number} head -1 for the mean of all
 * @property {string} direction "from" or "to"
 * @property {number | null} pinned a patch
 * @property {number | null} label the index of a class
 * @property {number | null} against that of another one, which it is compared with
 * @property {number[] | null} dropped patches in their order, or null for none
 * @property {number[][] | null} silent (block, head) of silent heads in their order, or null for none
 * @property {number | null} beat with how few squares somebody else has changed the answer
 * @property {number} opacity
 * @property {boolean} smooth whether neighbouring patches blend
 * @property {string} scale "shared" by the maps of a picture, or a map's "own"
 * @property {{mode: string, block: number | null, k: number, background: boolean, opacity: number, pinned: Place | null, second: {example?: string, own?: string} | null}} features
 *   `second` is an example, or one of the visitor's own, which no link holds.
 * @property {{step: number, patch: number | null, block: number | null, head: number, filter: number | null, fromClassToken: boolean}} tour
 * @property {Column[] | null} compare
 * @property {{start: string, fields: Record<string, any>} | null} network what the visitor builds, as in views/build/network.js
 * @property {Record<string, any> | null} training how the network was trained that is looked into, as `begin` takes it
 */

/**
 * @typedef {"digits" | "photos"} Task
 * @typedef {{width: number, points: number[][]}} Stroke
 * @typedef {{digit?: number, strokes?: Stroke[], isAdded?: boolean, example?: string, upload?: string, name?: string, refused?: string, file?: File}} Picture
 *   A drawing is {digit} (an example), {example} (a digit for tests) or {strokes}, which may be added to a class; a photo {example}, {upload, name} (also one of a digit) or {refused},
 *   which is a sentence about a file that cannot be used, or one of a link, which is to be uploaded. `words` are the classes of a model that takes any; null for its own.
 * @typedef {{picture: Picture | null, preset: string, patchSize: number, fit?: string, words?: string[] | null}} Tab
 * @typedef {{task: Task, digits: Tab, photos: Tab, view: View}} State The open tab, what each holds, and the view.
 */

/** @type {Task[]} */
export const TASKS = ["digits", "photos"];

/** How a change enters the browser's history: a step of its own, or part of the step before. */
export const PUSH = "push";
export const REPLACE = "replace";
/** A change that came from the address or the history. */
export const RESTORE = "restore";

const NO_CLASSES = { label: null, against: null };
const NOTHING_LEFT_OUT = { dropped: null, silent: null, beat: null };

/** `subscribe(element, callback)` calls back with what is published, for as long as the element is on the page. */
export function createChannel(/** @type {any} */ latest = null) {
  const subscribers = new Set();

  /** Those who subscribe later get it by `latest()`; `how` it came about is told as well. */
  function publish(value, how = "") {
    latest = value;
    for (const subscriber of subscribers) {
      if (subscriber.element.isConnected) subscriber.callback(latest, how);
      else subscribers.delete(subscriber);
    }
  }

  return { publish, latest: () => latest, subscribe: (element, callback) => subscribers.add({ element, callback }) };
}

export function createPageState() {
  const { publish, latest, subscribe } = createChannel(); // null until the page is opened; a stage without inputs has a view alone
  const get = /** @type {() => State} */ (latest);

  /** Opens the page with a state; a component that is mounted again gets the one that there is. */
  const open = (/** @type {any} */ first) => publish(get()?.task ? get() : first, RESTORE);

  /** Opens a tab, with the parts that change. A class and patches belong to the picture of their tab. */
  function chooseTask(/** @type {Task} */ task, /** @type {Partial<Tab>} */ part = {}, how = PUSH) {
    const state = get();
    if (task === state.task) return changeTab(task, part, how);
    const view = { ...state.view, pinned: null, ...NO_CLASSES, ...NOTHING_LEFT_OUT };
    publish({ ...state, task, [task]: { ...state[task], ...part }, view }, PUSH);
  }

  /**
   * Changes a tab. A class that was chosen for one picture does not stay for the next, nor does what was left out; what
   * a link chose for a photo that is not in it stays for the photo that is uploaded then.
   */
  function changeTab(/** @type {Task} */ task, /** @type {Partial<Tab>} */ part, how = PUSH) {
    const state = get();
    if (isSubset(part, state[task])) return;
    const isNewPicture = "picture" in part;
    const isOfLink = part.picture?.upload && state[task].picture?.refused;
    const view =
      task !== state.task || isOfLink
        ? state.view
        : { ...state.view, ...NOTHING_LEFT_OUT, ...(isNewPicture && NO_CLASSES) };
    publish({ ...state, [task]: { ...state[task], ...part }, view }, how);
  }

  function changeView(/** @type {Partial<View>} */ part, how = PUSH) {
    const state = get();
    if (!isSubset(part, state.view)) publish({ ...state, view: { ...state.view, ...part } }, how);
  }

  /** Subscribers are called back with each new state and how it came about, in their order. */
  return { open, chooseTask, changeTab, changeView, restore: (next) => publish(next, RESTORE), get, subscribe };
}

const isSubset = (part, whole) => Object.entries(part).every(([name, value]) => Object.is(whole[name], value));

/** The state of this page; the components share it by importing it. */
export const pageState = createPageState();

// How the parts of the page talk to each other: the stage, the pad and the small photo import the same channels.

/**
 * What the stage is to show: {payload, restored, isNewest(), onShown()}. Without a payload it keeps its result; `restored`
 * tells whether the view came from the address, so that it holds for another model, too. The stage calls `onShown()` when
 * it shows it, and does not show what is no longer the newest.
 */
export const newResult = createChannel();

/** How the request for the newest result goes: {state, sentence, canRetry}, see `createStatus` of `stage/sections.js`. */
export const resultStatus = createChannel({ state: "done", sentence: "" });

/** Whether a result is awaited: the one on the stage belongs to a state before. */
export const isAwaited = () => resultStatus.latest().state === "pending";

/** The visitor wants the newest result requested again. */
export const retryResult = createChannel();

/** The result on the stage, or null. */
export const shownResult = createChannel();

/** What the model saw of the result on the stage: {digit, photo}, each null where there is none. */
export const modelInput = createChannel({ digit: null, photo: null });

/** What a button of the picture asks of the photo input: "choose", "live", "hold", "stop" or "remove". */
export const photoAct = createChannel();

/** The name by which the visitor wants what is on the stage to be taught. */
export const toTeach = createChannel();

/** What the photo input has to say, one sentence or "". */
export const photoNews = createChannel("");

/** The models of the menu by name, entries of Python's `model_entry`; one that is downloaded is added. */
export const menuModels = createChannel(new Map());

/** A source of a result, with the words that are its classes if its model takes any. */
export const withWords = (source, words) =>
  words && menuModels.latest().get(source.preset)?.takes_words ? { ...source, words } : source;

/** A choice that this browser stores; null for none, and where storage is closed to a page in a frame. */
export function readSetting(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Stores a choice for later visits; where storage is closed it holds until the page is left. */
export function storeSetting(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Nothing else depends on it.
  }
}
