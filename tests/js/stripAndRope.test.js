// The line below the picture: no name is cut, neither at an end of the strip nor in the rope.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createStripAndRope } from "../../vit_demo/web/frontend/stage/stripAndRope.js";
import "./helpers.js";

const [WIDTH, LETTER] = [240, 0.5]; // CSS pixels; of the size of the letters

/** A line of this width, with `written`, [text, x, alignment, width] of each line of a name. */
function lineOf() {
  const written = [];
  const context = new Proxy(
    {
      measureText: (text) => ({ width: LETTER * Number.parseFloat(context.font.split(" ")[1]) * text.length }),
      fillText: (text, x) => written.push([text, x, context.textAlign, context.measureText(text).width]),
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
  const canvas = { ...node(), getContext: () => context };
  const host = { ...node(), querySelector: (name) => (name === "canvas" ? canvas : node()) };
  Object.assign(globalThis, {
    ResizeObserver: class {
      constructor(tell) {
        this.observe = () => tell([{ contentRect: { width: WIDTH, height: 32 } }]);
      }
    },
    devicePixelRatio: 1,
    document: { createElement: () => ({ ...node(), append() {} }), body: { className: "" } },
    getComputedStyle: () => ({ getPropertyValue: () => "" }),
  });
  return { ...createStripAndRope(host, { onScrub() {} }), canvas, written };
}

test("a guess is written within its part of the strip, wherever it was surest", () => {
  for (const at of [0, 0.1, 0.9, 1])
    for (const label of ["0", "7", "heart"]) {
      const { update, written } = lineOf();
      const guess = { label, isSure: false, from: 0, to: 1, surest: { at, probability: 0.5 } };
      const parts = [{ length: 1, probability: 0.5 }];
      update({ kind: "strip", parts, guesses: [guess], at: null, live: false, words: "", hint: "" });
      const [[text, x, , width]] = written;
      assert.equal(text, `${label}?`);
      const half = width / 2;
      assert.ok(x - half >= 0 && x + half <= WIDTH, `${text} at ${x}`);
    }
});

test("names at the ends of the rope are whole, on two lines where they are long, and apart from each other", () => {
  for (const [left, right] of [
    ["7", "1?"],
    ["golden retriever", "tabby cat"],
    ["suspension bridge", "computer keyboard?"],
  ]) {
    const { update, written } = lineOf();
    update({ kind: "rope", left, right, place: 0.1, words: `*${left}* is 1.6 times as likely`, short: "1.6 times" });
    const [ofLeft, ofRight] = ["left", "right"].map((side) => written.filter(([, , align]) => align === side));
    assert.deepEqual(
      [ofLeft, ofRight].map((lines) => lines.map(([text]) => text).join(" ")),
      [left, right],
    );
    for (const lines of [ofLeft, ofRight]) {
      assert.ok(lines.length <= 2, `${lines}`);
      for (const [text, , , width] of lines) assert.ok(width <= WIDTH / 3, `${text}: ${width}`);
    }
  }
});
