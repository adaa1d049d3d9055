// The line below the picture: no name is cut at an end of the strip, and one that is cut in the rope is told by the title.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createLine } from "../../vit_demo/web/frontend/stage/line.js";
import "./helpers.js";

const [WIDTH, LETTER] = [120, 9]; // CSS pixels

/** A line of this width, with `written`, [text, x, alignment] of each name. */
function lineOf() {
  const written = [];
  const context = new Proxy(
    {
      measureText: (text) => ({ width: LETTER * text.length }),
      fillText: (text, x) => written.push([text, x, context.textAlign]),
    },
    { get: (target, name) => target[name] ?? (() => {}), set: Reflect.set },
  );
  const node = () => ({
    dataset: {},
    addEventListener() {},
    setAttribute() {},
    removeAttribute() {},
    replaceChildren() {},
  });
  const canvas = { ...node(), clientWidth: WIDTH, clientHeight: 32, getContext: () => context };
  const host = { ...node(), querySelector: (name) => (name === "canvas" ? canvas : node()) };
  Object.assign(globalThis, {
    ResizeObserver: class {
      observe() {}
    },
    devicePixelRatio: 1,
    document: { createElement: () => ({ ...node(), append() {} }) },
    getComputedStyle: () => ({ getPropertyValue: () => "" }),
  });
  return { ...createLine(host, { onScrub() {} }), canvas, written };
}

test("a guess is written within its part of the strip, wherever it was surest", () => {
  for (const at of [0, 0.1, 0.9, 1])
    for (const label of ["0", "7", "heart"]) {
      const { update, written } = lineOf();
      const guess = { label, isSure: false, from: 0, to: 1, surest: { at, probability: 0.5 } };
      const parts = [{ length: 1, probability: 0.5 }];
      update({ kind: "strip", parts, guesses: [guess], at: null, live: false, words: "", hint: "" });
      const [[text, x]] = written;
      assert.equal(text, `${label}?`);
      const half = (LETTER * text.length) / 2;
      assert.ok(x - half >= 0 && x + half <= WIDTH, `${text} at ${x}`);
    }
});

test("the title of the rope has the names that are cut in it, and the strip has none", () => {
  const { update, canvas, written } = lineOf();
  const words = "*jellyfish* is 1.6 times as likely as *something else*";
  update({ kind: "rope", left: "jellyfish", right: "something else", place: 0.1, words, short: "1.6 to 1" });
  assert.ok(written.every(([text]) => text.endsWith("…")));
  assert.equal(canvas.title, "jellyfish is 1.6 times as likely as something else");
  update({ kind: "none" });
  assert.equal(canvas.title, "");
});
