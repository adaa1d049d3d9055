// Live answers: one request at a time, the newest picture next, silence where there is none; and the small PNG of a drawing.

import assert from "node:assert/strict";
import { test } from "node:test";
import zlib from "node:zlib";
import { greyPng } from "../../vit_demo/web/frontend/shared/greyPng.js";
import { createLive } from "../../vit_demo/web/frontend/shared/live.js";
import { connect } from "../../vit_demo/web/frontend/shared/requests.js";

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

/** A live asker whose requests the test answers, one by one; `asked` lists what was sent, `waits` the pauses. */
function start() {
  const [asked, answers, waits, replies] = [[], [], [], []];
  const live = createLive(
    (fields) => {
      asked.push(fields.state);
      return new Promise((resolve, reject) => replies.push({ resolve, reject }));
    },
    { onAnswer: (result, made) => answers.push([result, made.fields.state]), wait: async (time) => waits.push(time) },
  );
  const ask = (state) => live.ask(() => state && { fields: { state } });
  const reply = async (value) => {
    const { resolve, reject } = replies.shift();
    value === null ? reject(new Error("lost")) : resolve(value);
    await settle();
  };
  return { live, ask, asked, answers, waits, reply };
}

test("one request is under way at a time, and the next is made from the newest state when its answer is there", async () => {
  const { live, ask, asked, answers, reply } = start();
  let state = "a";
  for (state of ["a", "b", "c"]) live.ask(() => ({ fields: { state } }));
  await settle();
  assert.deepEqual(asked, ["a"]);
  state = "d";
  await reply({ result: 1 });
  assert.deepEqual(asked, ["a", "d"], "made only now");
  await reply({ result: 2 });
  ask(null);
  await settle();
  ask("e");
  await settle();
  assert.deepEqual(asked, ["a", "d", "e"], "there was nothing to ask in between");
  assert.deepEqual(answers, [
    [1, "a"],
    [2, "d"],
  ]);
});

test("progress lets the same be asked again, so that a slow model answers, too", async () => {
  const { ask, asked, answers, reply } = start();
  ask("a");
  await settle();
  ask("b");
  for (let i = 0; i < 3; i++) await reply({ done: 0, total: 0 });
  await reply({ result: 1 });
  assert.deepEqual([asked, answers], [["a", "a", "a", "a", "b"], [[1, "a"]]]);
});

test("told to wait, or without a reply, it asks on, more slowly, and as fast as before once it is answered", async () => {
  const { ask, asked, answers, waits, reply } = start();
  const failures = [{ error: "You send too many requests." }, null, ...Array(6).fill({ error: "The server is busy." })];
  for (const failure of failures) {
    ask("a");
    await settle();
    await reply(failure);
  }
  assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3000, 3000, 3000]);
  assert.deepEqual(answers, []);
  for (let i = 0; i < 6; i++) {
    ask("b");
    await settle();
    await reply({ result: i + 1 });
  }
  assert.deepEqual(waits.slice(-6), [1500, 750, 375, 187.5, 93.75, 0]);
  assert.deepEqual([asked.length, answers.length], [14, 6]);
});

test("what was asked before a stop is never shown, and does not hold up what is asked after it", async () => {
  const { live, ask, asked, answers, reply } = start();
  ask("a");
  await settle();
  ask("b");
  live.stop();
  ask("c");
  await settle();
  assert.deepEqual(asked, ["a", "c"]);
  ask("d");
  await reply({ result: "late" });
  assert.deepEqual([asked, answers], [["a", "c"], []], "one of the new ones is under way");
  await reply({ result: 1 });
  await reply({ result: 2 });
  assert.deepEqual(answers, [
    [1, "c"],
    [2, "d"],
  ]);
});

test("a picture that is made slowly, and stopped meanwhile, is not sent", async () => {
  const { live, asked } = start();
  let made = (_) => {};
  live.ask(() => new Promise((resolve) => (made = resolve)));
  live.stop();
  made({ fields: { state: "a" } });
  await settle();
  assert.deepEqual(asked, []);
});

test("a live request has a route of its own and names its page, others do not", async () => {
  const { fetch } = globalThis;
  const sent = [];
  globalThis.fetch = async (url, { body }) => {
    sent.push([url.split("/").pop(), JSON.parse(body).live]);
    return new Response("{}");
  };
  try {
    for (const page of [connect("http://a"), connect("http://a")]) {
      for (const live of [true, true, undefined]) await page.request({ kind: "result", live, source: {} });
    }
  } finally {
    globalThis.fetch = fetch;
  }
  assert.deepEqual(
    sent.map(([route]) => route),
    ["live", "live", "request", "live", "live", "request"],
  );
  const names = sent.map(([, name]) => name);
  assert.ok(names[0] === names[1] && names[3] === names[4] && names[0] !== names[3] && names[2] === undefined);
  assert.match(names[0], /^\w{6,}$/);
});

test("the small PNG of a drawing has its grey levels, and every checksum is right", async () => {
  const [width, height] = [5, 3];
  const data = Uint8ClampedArray.from({ length: 4 * width * height }, (_, i) => (i * 37) % 256);
  const url = await greyPng({ data, width, height });
  const file = Buffer.from(url.slice("data:image/png;base64,".length), "base64");
  assert.equal(file.subarray(1, 4).toString(), "PNG");
  const chunks = new Map();
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const [name, body] = [file.subarray(at + 4, at + 8), file.subarray(at + 8, at + 8 + length)];
    if (zlib.crc32) assert.equal(file.readUInt32BE(at + 8 + length), zlib.crc32(Buffer.concat([name, body])));
    chunks.set(name.toString(), body);
    at += 12 + length;
  }
  assert.deepEqual([...chunks.keys()], ["IHDR", "IDAT", "IEND"]);
  assert.deepEqual([chunks.get("IHDR").readUInt32BE(0), chunks.get("IHDR").readUInt32BE(4)], [width, height]);
  const rows = zlib.inflateSync(chunks.get("IDAT"));
  const levels = Array.from({ length: height }, (_, y) => [
    ...rows.subarray(y * (width + 1) + 1, (y + 1) * (width + 1)),
  ]);
  assert.deepEqual(
    levels.flat(),
    Array.from({ length: width * height }, (_, i) => data[4 * i]),
  );
});

test("the PNG of a whole pad is small, and null where the browser cannot compress", async () => {
  const side = 280;
  const data = new Uint8ClampedArray(4 * side * side).fill(255);
  for (let i = 0; i < 12000; i++) data[4 * (side * (60 + (i % 150)) + 100 + Math.floor(i / 150))] = (i * 7) % 256;
  assert.ok((await greyPng({ data: data.fill(0, 90000, 120000), width: side, height: side })).length < 20000);
  const { CompressionStream } = globalThis;
  delete globalThis.CompressionStream;
  try {
    assert.equal(await greyPng({ data, width: side, height: side }), null);
  } finally {
    globalThis.CompressionStream = CompressionStream;
  }
});
