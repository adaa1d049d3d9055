// The second picture of the features.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FEATURE_MODES } from "../../vit_demo/web/frontend/shared/link.js";
import { MODES } from "../../vit_demo/web/frontend/stage/views/features/modes.js";
import { createSecondPicture, examplesOf } from "../../vit_demo/web/frontend/stage/views/features/view.js";

const control = () => ({ addEventListener() {}, dataset: {} });
const second = createSecondPicture(control(), control(), { photos: [{ name: "lion", title: "Lion" }] });
const [drawing, photo] = [{ pixelated: true }, { pixelated: false }];

test("an example belongs beside a picture of its kind", () => {
  assert.deepEqual(second.get({ example: "lion" }, photo).source, { example: "lion" });
  assert.deepEqual(second.get({ example: "digit-3" }, drawing).source, { example: "digit-3" });
  assert.equal(second.get({ example: "lion" }, drawing), null);
  assert.equal(second.get({ example: "digit-3" }, photo), null);
  assert.equal(examplesOf(true, []).length, 10);
});

test("what a link may name but nobody has is none", () => {
  for (const choice of [null, { example: "unknown" }, { own: "own-0" }]) assert.equal(second.get(choice, photo), null);
});

test("a link may hold each mode that there is", () => {
  assert.deepEqual(Object.keys(MODES), FEATURE_MODES);
});

test("a choice replaces a photo that is still being uploaded", async () => {
  const listeners = {};
  const listening = (name) => ({
    ...{ addEventListener: (_, callback) => (listeners[name] = callback), dataset: {}, replaceChildren() {} },
    ...{ files: [{ name: "own.jpg" }] },
  });
  const [select, input] = ["select", "input"].map(listening);
  const [chosen, news] = [[], []];
  let sent;
  const upload = () => new Promise((resolve) => (sent = resolve));
  const menu = createSecondPicture(select, input, {
    ...{ photos: [{ name: "lion", title: "Lion" }], upload, exampleNow: () => null },
    ...{ onChoose: (choice) => chosen.push(choice), onNews: (sentence) => news.push(sentence) },
  });
  globalThis.document = { createElement: () => ({ append() {} }) };
  menu.show(null, photo);
  listeners.input();
  select.value = "lion";
  listeners.select();
  sent({ path: "/uploaded" });
  await new Promise((resolve) => setTimeout(resolve, 0));
  delete globalThis.document;
  assert.deepEqual(chosen, [{ example: "lion" }]);
  assert.equal(news.at(-1), "");
});
