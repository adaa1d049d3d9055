// What the pad makes of fingers, and of a browser that hides drawings from pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import { listenToPointer } from "../../vit_demo/web/frontend/pad/canvas.js";
import { toDataUrl } from "../../vit_demo/web/frontend/pad/strokes.js";

test("a second finger makes a pinch, which leaves no stroke; the next finger draws", () => {
  const heard = {};
  const canvas = {
    addEventListener: (name, listener) => (heard[name] = listener),
    getBoundingClientRect: () => ({ left: 0, top: 0, width: 100, height: 100 }),
    setPointerCapture() {},
  };
  const done = [];
  const note = (name) => () => done.push(name);
  listenToPointer(canvas, { begin: note("begin"), extend: note("extend"), end: note("end"), cancel: note("cancel") });
  const finger = (pointerId, isPrimary) => ({
    ...{ pointerId, isPrimary, button: 0, clientX: 9, clientY: 9 },
    getCoalescedEvents: () => [],
  });
  const stroke = (...fingers) => {
    for (const one of fingers) heard.pointerdown(one);
    for (const one of fingers) heard.pointermove(one);
    for (const one of fingers) heard.lostpointercapture(one);
  };
  stroke(finger(1, true), finger(2, false));
  assert.deepEqual(done.splice(0), ["begin", "cancel"]);
  stroke(finger(3, true));
  assert.deepEqual(done, ["begin", "extend", "end"]);
});

test("where a canvas reads as white, no drawing is sent, as it would be white, too", () => {
  const context = new Proxy({}, { get: (at, name) => at[name] ?? (() => ({ data: at.pixels })), set: Reflect.set });
  const canvas = { getContext: () => context, toDataURL: () => "data:image/png;base64,AAAA" };
  globalThis.document = { createElement: () => canvas };
  try {
    const strokes = [
      {
        width: 0.1,
        points: [
          [0.2, 0.5],
          [0.8, 0.5],
        ],
      },
    ];
    for (const [read, expected] of [
      [0, canvas.toDataURL()],
      [255, null],
      [200, null],
    ]) {
      context.pixels = [read, read, read, 255];
      assert.equal(toDataUrl(strokes), expected);
    }
  } finally {
    delete globalThis.document;
  }
});
