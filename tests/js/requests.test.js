// Requests: repeated until done, and late replies dropped, in whatever order they arrive.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, createReplyCache, sendPhoto, sendRequest } from "../../vit_demo/web/frontend/shared/requests.js";
import { createDropping } from "../../vit_demo/web/frontend/stage/dropping.js";
import { servedMap } from "../../vit_demo/web/frontend/stage/onDemand.js";

const encode = (...values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");
/** Maps on the stage, and those that are requested for the next result. */
function mapsOf(request) {
  const replies = createReplyCache(request, () => {});
  const get = (result, fields) => servedMap(replies, result, fields);
  return { get, prefetch: (result, fields) => servedMap(replies, result, fields, "next map").firstReply };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Requests that the test replies to, one by one and in any order. */
function heldRequests() {
  const held = [];
  const request = (fields, options = {}) =>
    new Promise((resolve) => {
      const reply = (value) => resolve(!options.isCurrent || options.isCurrent() ? value : null);
      held.push({ fields, reply, progress: options.onProgress });
    });
  return { held, request };
}

test("a request is repeated until its result is there, and progress is passed on", async () => {
  const replies = [{ done: 0, total: 0 }, { done: 1, total: 4 }, { result: { map: "" } }];
  const sent = [];
  const progress = [];
  const server = {
    async request(fields) {
      sent.push(fields);
      return replies.shift();
    },
  };
  const reply = await sendRequest(server, { kind: "map" }, { onProgress: (share) => progress.push(share) });
  assert.deepEqual(reply, { result: { map: "" } });
  assert.deepEqual(sent, [{ kind: "map" }, { kind: "map" }, { kind: "map" }]);
  assert.deepEqual(progress, [null, 0.25]);
});

test("an upload that the server refuses says what the server says; without an answer, the connection is named", async () => {
  const { fetch } = globalThis;
  const { upload } = connect("http://127.0.0.1");
  try {
    for (const status of [411, 413, 429]) {
      const error = `The server's own sentence of ${status}.`;
      globalThis.fetch = async () => new Response(JSON.stringify({ error }), { status });
      assert.deepEqual(await sendPhoto(upload, new File(["photo"], "photo.jpg")), { error });
    }
    for (const answer of [new Response("<html>", { status: 502 }), null]) {
      globalThis.fetch = async () => answer ?? Promise.reject(new TypeError("lost"));
      assert.match((await sendPhoto(upload, new File(["photo"], "photo.jpg"))).error, /check the connection/);
    }
  } finally {
    globalThis.fetch = fetch;
  }
});

test("a failed request is one sentence, and so is no reply", async () => {
  const sentence = { error: "The server did not respond: try again.", lost: true };
  assert.deepEqual(await sendRequest({ request: () => Promise.reject(new Error("lost")) }, {}), sentence);
  assert.deepEqual(await sendRequest({ request: async () => undefined }, {}), sentence);
  assert.deepEqual(await sendRequest({ request: async () => ({ error: "No." }) }, {}), { error: "No." });
});

test("a request that is no longer current is neither repeated nor replied to", async () => {
  let current = true;
  let sent = 0;
  const server = {
    async request() {
      sent++;
      current = false;
      return { done: 1, total: 2 };
    },
  };
  assert.equal(await sendRequest(server, {}, { isCurrent: () => current }), null);
  assert.equal(sent, 1);
  current = true;
  const late = {
    async request() {
      current = false;
      return { result: "of what was shown before" };
    },
  };
  assert.equal(await sendRequest(late, {}, { isCurrent: () => current }), null);
  assert.equal(await sendRequest(server, {}, { isCurrent: () => false }), null);
  assert.equal(sent, 1);
});

test("a reply is requested once for a result, and after a failure again", async () => {
  const { held, request } = heldRequests();
  let updates = 0;
  const replies = createReplyCache(request, () => updates++);
  const result = { source: "a digit" };
  const get = (block) => replies.get(result, { kind: "tokens", block }, async (reply) => `decoded ${reply}`);
  const entry = get(5);
  assert.equal(get(5), entry);
  assert.deepEqual(
    held.map(({ fields }) => fields),
    [{ kind: "tokens", source: "a digit", block: 5 }],
  );
  held[0].progress(0.5);
  assert.deepEqual([entry.isSlow, entry.isLoading, entry.progress, entry.value], [true, true, 0.5, null]);
  held[0].reply({ result: "tokens" });
  await settle();
  assert.deepEqual([entry.isLoading, entry.value, entry.error], [false, "decoded tokens", ""]);
  assert.ok(updates > 0);
  get(4);
  held[1].reply({ error: "Too many." });
  await settle();
  assert.equal(get(4).error, "Too many.");
  assert.equal(held.length, 2); // drawing alone repeats no request
  replies.retry();
  assert.equal(get(4).error, "");
  held[2].reply({ error: "Too many." });
  await settle();
  assert.equal(get(5), entry);
  assert.equal(get(4).error, "");
  assert.equal(held.length, 4);
});

test("what another of its kind replaces is not requested, or its reply dropped", async () => {
  const { held, request } = heldRequests();
  const replies = createReplyCache(request, () => {});
  const result = { source: "a digit" };
  const decode = (reply) => reply;
  const passed = replies.get(result, { kind: "tokens", block: 4 }, decode, { delay: 1 });
  replies.get(result, { kind: "tokens", block: 3 }, decode, { delay: 1 });
  const other = replies.get(result, { kind: "steps" }, decode);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(
    held.map(({ fields }) => fields.block),
    [undefined, 3],
  );
  replies.get({ source: "another" }, { kind: "tokens", block: 3 }, decode);
  held[1].reply({ result: "late" });
  held[0].reply({ result: "numbers" });
  await settle();
  assert.equal(passed.value, null);
  assert.equal(other.value, "numbers");
  replies.get(result, { kind: "tokens", block: 3 }, decode);
  assert.equal(held.length, 4); // what was dropped is requested again
});

test("the map of a result that is not shown yet is requested once", async () => {
  const { held, request } = heldRequests();
  const maps = mapsOf(request);
  const [result, fields] = [{ source: "a digit" }, { method: "relevance", label: 1 }];
  const prefetched = maps.prefetch(result, fields);
  held[0].progress(0.5);
  await prefetched; // a slow map does not hold the picture back
  const entry = maps.get(result, fields);
  assert.deepEqual([entry.isSlow, entry.progress, entry.value], [true, 0.5, null]);
  held[0].reply({ result: { map: encode(7) } });
  await settle();
  assert.deepEqual([...entry.value], [7]);
  assert.equal(held.length, 1);
});

function droppingOf(request) {
  const shown = [];
  let chosen = null;
  const dropping = createDropping(request, {
    chosen: () => ({ dropped: chosen, silent: null }),
    keptClass: () => ({}),
    prepare: async () => {},
    show: (result) => shown.push(result),
    onChange({ dropped }) {
      chosen = dropped;
    },
    open: async (payload) => payload,
  });
  const whole = { numPatches: 4, source: { digit: "a digit" }, dropped: [], silent: [] };
  dropping.start(whole);
  function restore(patches) {
    chosen = patches;
    dropping.follow();
  }
  function click(patch) {
    dropping.brush(patch);
    dropping.lift();
  }
  return { dropping, shown, whole, restore, click };
}

test("of two results without patches that arrive out of order, the latest is shown", async () => {
  const { held, request } = heldRequests();
  const { click, shown } = droppingOf(request);
  click(3);
  click(1);
  assert.deepEqual(
    held.map(({ fields }) => fields.source.dropped),
    [[3], [1, 3]],
  );
  held[1].reply({ result: "without both" });
  await settle();
  held[0].reply({ result: "without one" });
  await settle();
  assert.deepEqual(shown, ["without both"]);
});

test("a reply about dropped patches is not shown once the picture is gone, or they are restored", async () => {
  for (const leave of ["cancel", "restoreAll"]) {
    const { held, request } = heldRequests();
    const { dropping, click, shown, whole } = droppingOf(request);
    click(3);
    dropping[leave]();
    await settle();
    held[0].reply({ result: "without one" });
    await settle();
    assert.deepEqual(shown, leave === "cancel" ? [] : [whole]);
  }
});

test("after a failure the patches are those of the shown result again", async () => {
  const { held, request } = heldRequests();
  const { dropping, click } = droppingOf(request);
  click(2);
  held[0].reply({ result: { dropped: [2], silent: [] } });
  await settle();
  click(3);
  held[1].reply({ error: "No." });
  await settle();
  dropping.follow();
  assert.equal(held.length, 2);
  assert.deepEqual([[...dropping.dropped()], dropping.error()], [[2], "No."]);
});

test("patches of a link or the history are dropped once, and those under a brush when it is lifted", async () => {
  const { held, request } = heldRequests();
  const { dropping, shown, whole, restore } = droppingOf(request);
  restore([1, 2]);
  restore([1, 2]);
  held[0].reply({ result: { dropped: [1, 2], silent: [] } });
  await settle();
  // A brush that begins at a dropped patch restores what is under it.
  for (const patch of [2, 0]) {
    dropping.brush(patch);
    dropping.follow(); // as each frame does
  }
  assert.equal(held.length, 1);
  dropping.lift();
  assert.deepEqual(held[1].fields.source.dropped, [1]);
  restore(null);
  await settle();
  held[1].reply({ result: "late" });
  await settle();
  assert.deepEqual([shown.length, shown[1]], [2, whole]);
});

test("at least one patch stays", () => {
  const { held, request } = heldRequests();
  const { dropping, click } = droppingOf(request);
  for (const patch of [0, 1, 2, 3]) click(patch);
  assert.deepEqual([...dropping.dropped()], [0, 1, 2]);
  assert.equal(dropping.error(), "At least one patch must stay.");
  assert.equal(held.length, 3);
});

test("a prefetched map does not replace the one that is shown", async () => {
  const { held, request } = heldRequests();
  const maps = mapsOf(request);
  const fields = { method: "relevance", label: 1 };
  const shown = maps.get({ source: "a digit" }, fields);
  maps.prefetch({ source: "the next digit" }, fields);
  held[0].reply({ result: { map: encode(1) } });
  held[1].reply({ result: { map: encode(2) } });
  await settle();
  assert.deepEqual([...shown.value], [1]);
});
