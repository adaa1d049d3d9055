// The page's state and its history.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeEntry, encodeEntry, syncHistory } from "../../vit_demo/web/frontend/shared/browserHistory.js";
import { createPageState, PUSH, REPLACE } from "../../vit_demo/web/frontend/shared/pageState.js";
import { page } from "./page.js";

const element = { isConnected: true };

function opened() {
  const pageState = createPageState();
  pageState.open(page.first);
  return pageState;
}

test("a tab keeps what it holds while the other is open, and a class stays with its picture", () => {
  const pageState = opened();
  pageState.changeTab("digits", { patchSize: 7 });
  pageState.changeView({ label: 3, pinned: 5, method: "rollout" });
  pageState.chooseTask("photos");
  assert.deepEqual([pageState.get().view.label, pageState.get().view.pinned], [null, null]);
  assert.equal(pageState.get().view.method, "rollout");
  pageState.changeTab("photos", { picture: { example: "tower" } });
  pageState.chooseTask("digits");
  const { digits, photos } = pageState.get();
  assert.equal(digits.patchSize, 7);
  assert.deepEqual(photos.picture, { example: "tower" });
  pageState.changeView({ label: 3 });
  pageState.changeTab("digits", { patchSize: 4 });
  assert.equal(pageState.get().view.label, 3, "another patch size is the same picture");
  pageState.changeTab("digits", { picture: { digit: 1 } });
  assert.equal(pageState.get().view.label, null);
});

test("what a link chose for a photo that is not in it stays for the photo that is uploaded then, and for no other", () => {
  const pageState = opened();
  pageState.chooseTask("photos", { picture: { refused: "The link is about a photo of its author's." } });
  pageState.changeView({ label: 4, against: 2, dropped: [3] });
  pageState.changeTab("photos", { picture: { upload: "/x", name: "x" } });
  const { label, against, dropped } = pageState.get().view;
  assert.deepEqual([label, against, dropped], [4, 2, [3]]);
  pageState.changeTab("photos", { picture: { upload: "/y", name: "y" } });
  assert.deepEqual([pageState.get().view.label, pageState.get().view.dropped], [null, null]);
  pageState.changeTab("photos", { picture: { refused: "The link is about a photo of its author's." } });
  pageState.changeView({ label: 4, dropped: [3] });
  pageState.changeTab("photos", { picture: { example: "lion" } });
  assert.deepEqual([pageState.get().view.label, pageState.get().view.dropped], [null, null], "an example is another");
});

test("a change that changes nothing tells nobody, and a state is never changed in place", () => {
  const pageState = opened();
  const before = pageState.get();
  const heard = [];
  pageState.subscribe(element, (_, how) => heard.push(how));
  pageState.changeTab("digits", { patchSize: 4 });
  pageState.changeView({ method: "attention" });
  pageState.chooseTask("digits");
  assert.deepEqual(heard, []);
  pageState.changeTab("digits", { patchSize: 7 }, REPLACE);
  pageState.chooseTask("photos", { picture: { upload: "/x", name: "x" } });
  assert.deepEqual([heard, pageState.get().task], [[REPLACE, PUSH], "photos"]);
  assert.equal(before.digits.patchSize, 4);
});

test("a step of the history holds both tabs and their uploads", () => {
  const state = { ...page.first, task: "photos" };
  state.digits = { ...state.digits, picture: { digit: 3 }, patchSize: 7 };
  state.photos = { ...state.photos, picture: { upload: "/u/cat.jpg", name: "cat.jpg" }, fit: "keep" };
  const entry = structuredClone(encodeEntry(state, page));
  assert.deepEqual(decodeEntry(entry, page), { state, model: null });
  for (const broken of [null, {}, { task: "photos" }, { ...entry, links: 3 }, { ...entry, task: "x" }]) {
    assert.equal(decodeEntry(broken, page), null);
  }
  const wrong = { ...entry, uploads: { photos: { upload: 5, name: "cat.jpg" }, digits: 3 } };
  assert.match(decodeEntry(wrong, page).state.photos.picture.refused, /not in it/);
  state.digits = { ...state.digits, picture: { upload: "/u/four.jpg", name: "four.jpg" } };
  assert.deepEqual(decodeEntry(structuredClone(encodeEntry(state, page)), page), { state, model: null });
});

/** A browser with a history, as far as the page uses it. */
function createBrowser(hash = "") {
  const listeners = {};
  const browser = {
    location: { hash },
    steps: [{ entry: null, hash }],
    at: 0,
    history: {
      get state() {
        return browser.steps[browser.at].entry;
      },
      pushState(entry, _, to) {
        browser.steps.splice(++browser.at, Number.POSITIVE_INFINITY, { entry, hash: to });
        browser.location.hash = to;
      },
      replaceState(entry, _, to) {
        browser.steps[browser.at] = { entry, hash: to };
        browser.location.hash = to;
      },
    },
    addEventListener: (name, callback) => {
      listeners[name] = callback;
    },
    go(by) {
      browser.at += by;
      browser.location.hash = browser.steps[browser.at].hash;
      listeners.popstate({ state: browser.history.state });
    },
    leave: () => listeners.pagehide(),
  };
  browser.parent = browser;
  return browser;
}

/** The menu, if no link names a model that must be downloaded. */
const noModel = { open: assert.fail, leave() {}, isAwaited: () => false };

test("choices are steps of the history, strokes and sliders are not", () => {
  const browser = createBrowser();
  const pageState = createPageState();
  assert.equal(syncHistory(element, pageState, page, noModel, browser), null);
  pageState.open(page.first);
  assert.equal(browser.location.hash, "", "a page that was only opened keeps its address");
  pageState.changeTab("digits", { patchSize: 7 });
  pageState.changeView({ block: 2 }, REPLACE);
  pageState.changeView({ block: 3 }, REPLACE);
  pageState.chooseTask("photos");
  assert.equal(browser.steps.length, 3);
  assert.match(browser.steps[1].hash, /block=4/, "the slider changed the step it was in");
  browser.go(-2);
  assert.deepEqual(pageState.get(), page.first);
  browser.go(1);
  assert.equal(pageState.get().digits.patchSize, 7);
  pageState.changeView({ block: 1 }, REPLACE);
  browser.leave();
  assert.match(browser.location.hash, /block=2/, "nothing is lost when the page is left");
});

test("in a frame of Hugging Face the visitor's address bar is told, and nobody else", () => {
  const browser = createBrowser();
  const told = [];
  browser.parent = { postMessage: (...message) => told.push(message) };
  const pageState = createPageState();
  syncHistory(element, pageState, page, noModel, browser);
  pageState.open(page.first);
  pageState.changeTab("digits", { patchSize: 7 });
  assert.deepEqual(told, [[{ hash: "#patch_size=7" }, "https://huggingface.co"]]);
});

test("a link to a model that must be downloaded keeps its address until the visitor chooses something", () => {
  const link = "#tab=photos&model=vit-s16&patch_size=16&block=10";
  const browser = createBrowser(link);
  const pageState = createPageState();
  const calls = [];
  let isAwaited = true;
  const linked = {
    open: ({ name }) => calls.push(name),
    leave: () => calls.push("leave"),
    isAwaited: () => isAwaited,
  };
  const { state } = syncHistory(element, pageState, page, linked, browser);
  pageState.open(state);
  pageState.changeView({ block: 5 }, REPLACE); // the stage, for the model that takes its place
  browser.leave();
  assert.equal(browser.location.hash, link);
  pageState.subscribe(element, (_, how) => {
    if (how === PUSH) isAwaited = false;
  });
  pageState.changeView({ section: "build" });
  assert.match(browser.location.hash, /^#tab=photos&(?!model).*section=build/);
  pageState.changeView({ opacity: 0.5 }, REPLACE);
  browser.leave();
  assert.match(browser.location.hash, /opacity=50/);
  browser.go(-1);
  assert.equal(browser.location.hash, link);
  browser.go(1);
  assert.deepEqual(calls, ["vit-s16", "leave"]);
});
