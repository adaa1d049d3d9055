// The page's one state: the open tab, what each tab holds, and the view of the stage.
//
//   task     "digits" or "photos", the open tab
//   digits   {picture, preset, patchSize}; a picture is {digit} (an example), {strokes} or null
//   photos   {picture, preset, patchSize, fit}; a picture is {example}, {upload, name}, null or {refused}, which
//            is a sentence about a file that cannot be used
//   view     what the stage shows of a result, as FIRST_VIEW in viewLink.js
//
// A state is never changed in place, so parts that are the same object are the same.

export const TASKS = ["digits", "photos"];

/** How a change enters the browser's history: a step of its own, or part of the step before. */
export const PUSH = "push";
export const REPLACE = "replace";
/** A change that came from the address or the history. */
export const RESTORE = "restore";

export function createPageState() {
  const followers = new Set();
  let state = null;

  function set(next, how) {
    state = next;
    for (const follower of followers) {
      if (follower.element.isConnected) follower.callback(state, how);
      else followers.delete(follower);
    }
  }

  /** Opens the page with a state; a component that is mounted again gets the one that there is. */
  const open = (first) => set(state ?? first, RESTORE);

  /** Opens a tab. A class and patches belong to the picture of their tab. */
  function chooseTask(task) {
    if (task === state.task) return;
    set({ ...state, task, view: { ...state.view, pinned: null, label: null, dropped: null } }, PUSH);
  }

  /** Changes a tab. A class that was chosen for one picture does not stay for the next, nor do patches that were dropped. */
  function changeTab(task, part, how = PUSH) {
    if (isSubset(part, state[task])) return;
    const isNewPicture = "picture" in part && task === state.task;
    const view =
      task !== state.task ? state.view : { ...state.view, dropped: null, ...(isNewPicture && { label: null }) };
    set({ ...state, [task]: { ...state[task], ...part }, view }, how);
  }

  /** Changes the picture of a tab, and opens it. */
  function showPicture(task, picture) {
    const view = { ...state.view, label: null, dropped: null, pinned: task === state.task ? state.view.pinned : null };
    set({ ...state, task, [task]: { ...state[task], picture }, view }, PUSH);
  }

  function changeView(part, how = PUSH) {
    if (isSubset(part, state.view)) return;
    set({ ...state, view: { ...state.view, ...part } }, how);
  }

  return {
    open,
    chooseTask,
    changeTab,
    showPicture,
    changeView,
    restore: (next) => set(next, RESTORE),
    get: () => state,
    /** Calls back with each new state and how it came about, in the order of following, while the element is on the page. */
    follow: (element, callback) => followers.add({ element, callback }),
  };
}

const isSubset = (part, whole) => Object.entries(part).every(([name, value]) => Object.is(whole[name], value));

/** The state of this page; the components share it by importing it. */
export const pageState = createPageState();
