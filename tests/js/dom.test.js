// What the helpers for the page decide without it.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { isNew, put } from "../../vit_demo/web/frontend/shared/dom.js";

test("what a host shows is new once, whatever it is made of, and nothing is written to the page", () => {
  const big = Array.from({ length: 999 }, (_, i) => [i, `class ${i}`]);
  const contents = () => [null, 0, "0", [], [1], [1, 2], [[1], "2"], { a: [1] }, { a: [2] }, { b: [1] }, [big, "en"]];
  const host = Object.freeze({});
  for (const [index, content] of contents().entries()) {
    assert.ok(isNew(host, content), `content ${index}`);
    assert.ok(!isNew(host, contents()[index]), `content ${index} again`);
    assert.ok(isNew({}, content), "another host");
  }
});

test("what an element has already is not written again", () => {
  const written = [];
  const node = new Proxy(
    { hidden: false, title: "" },
    { set: (...given) => written.push(given[1]) && Reflect.set(...given) },
  );
  put(node, { hidden: false, title: "a", ariaLabel: "b" });
  assert.deepEqual(written.splice(0), ["title", "ariaLabel"]);
  put(node, { hidden: true, title: "a", ariaLabel: "b" });
  assert.deepEqual(written, ["hidden"]);
});
