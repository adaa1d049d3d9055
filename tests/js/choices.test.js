// What can be shown of the visitor's choices, which request a map needs, and which methods there are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { FIRST_VIEW } from "../../vit_demo/web/frontend/shared/link.js";
import { createChannel } from "../../vit_demo/web/frontend/shared/pageState.js";
import {
  changesWith,
  FIRST_GUESS,
  firstPointing,
  isStep,
  validFor,
  viewOf,
} from "../../vit_demo/web/frontend/stage/choices.js";
import { classMethod, describeMethods } from "../../vit_demo/web/frontend/stage/methods.js";
import { isDefaultMap, mapFields } from "../../vit_demo/web/frontend/stage/onDemand.js";
import { comparedWith, offeredOf } from "../../vit_demo/web/frontend/stage/views/ask/naming.js";
import { fixture } from "./helpers.js";

const methods = describeMethods(fixture.methods);
const firstChoices = () => ({ ...FIRST_VIEW, ...firstPointing() });
const result = {
  numBlocks: 6,
  numHeads: 4,
  rows: 7,
  columns: 7,
  numPatches: 49,
  hasClassToken: true,
  pool: "cls",
  tokenOf: Int32Array.from({ length: 49 }, (_, patch) => (patch === 9 ? -1 : patch + 1)),
  traces: new Map([[5, {}]]),
  predictions: [
    { index: 7, label: "seven" },
    { index: 1, label: "one" },
  ],
};

test("until a block's trace is here, its class token is shown", () => {
  const choices = { ...firstChoices(), block: 2, pinned: 4, direction: "to" };
  const { query, direction, isComplete } = viewOf(result, methods.attention, choices);
  assert.deepEqual([query, direction, isComplete], [null, "from", false]);
  const loaded = viewOf(result, methods.attention, { ...choices, block: 5 });
  assert.deepEqual([loaded.query, loaded.direction, loaded.isComplete], [4, "to", true]);
});

test("while patches are rubbed out pointing reads the map; else it is the query, and a dropped patch never is", () => {
  const choices = { ...firstChoices(), verb: "look", block: 5, hovered: 3 };
  assert.equal(viewOf(result, methods.attention, choices).query, 3);
  assert.equal(viewOf(result, methods.attention, { ...choices, pinned: 8 }).query, 8);
  assert.equal(viewOf(result, methods.attention, { ...choices, pinned: 9 }).query, null);
  assert.equal(viewOf(result, methods.attention, { ...choices, verb: "rub" }).query, null);
});

test("choices outlive a result as long as they mean the same", () => {
  const view = { ...FIRST_VIEW, block: 3, head: 2, pinned: 5, label: 1, method: "relevance" };
  assert.deepEqual(changesWith(view, result, { ...result }), {});
  const { features, ...finer } = changesWith(view, result, { ...result, rows: 14, columns: 14 });
  assert.deepEqual([finer, features.pinned], [{ pinned: 25 }, null], "the same place: row 1, column 6 of 7 by 7");
  const photo = { ...result, photo: { image: "a" } };
  const another = { ...result, photo: { image: "b" }, rows: 14, columns: 14 };
  assert.equal(changesWith(view, photo, another).pinned, null, "another photo");
  const other = { ...result, numBlocks: 12, predictions: [{ index: 1, label: "goldfish" }] };
  assert.deepEqual(changesWith(view, result, other), { block: null, head: -1, label: null });
});

test("choices from an address that a result does not have are replaced", () => {
  const sections = { isOffered: (name) => name === "attention" };
  const valid = (choices, shown = result) => validFor(shown, { ...firstChoices(), ...choices }, methods, sections);
  const { section, method, block, head, pinned, label } = valid({
    section: "weather",
    method: "constructor",
    block: 9,
    head: 7,
    pinned: 49,
    label: 5,
  });
  assert.deepEqual([section, method, block, head, pinned, label], ["attention", "attention", 5, -1, null, null]);
  assert.equal(valid({ block: null }).block, 5, "the last");
  const good = { section: "attention", method: "relevance", block: 2, head: 3, pinned: 48, label: 1 };
  assert.deepEqual(valid(good), { ...firstChoices(), ...good });
  assert.equal(valid(good, { ...result, predictions: [] }).method, "attention");
  const { method: awaited, ...rest } = valid({ ...good, hovered: 5, against: 7 }, FIRST_GUESS);
  assert.equal(awaited, "relevance", "until a result is there nothing speaks against a method");
  assert.deepEqual(
    [rest.block, rest.head, rest.pinned, rest.hovered, rest.label, rest.against],
    [0, 3, ...Array(4).fill(null)],
  );
  const dropped = (patches) => valid({ dropped: patches }, { ...result, numPatches: 3 }).dropped;
  assert.deepEqual([[1, 2, 3], [3, 4], [0, 1, 2], null].map(dropped), [[1, 2], null, null, null]);
});

test("a request names what matters to its method and nothing else", () => {
  const choices = { ...firstChoices(), block: 3, head: 2, pinned: 5, label: 1 };
  const fields = (method) => mapFields(methods, result, { ...choices, method });
  assert.deepEqual(fields("attention"), { method: "attention", block: 3, head: 2, direction: "from", query: 5 });
  assert.deepEqual(fields("rollout"), { method: "rollout" });
  assert.deepEqual(fields("norm_attention"), { method: "norm_attention", block: 3 });
  assert.deepEqual(fields("relevance"), { method: "relevance", label: 1 });
  assert.deepEqual(mapFields(methods, result, { ...choices, method: "relevance", label: 99 }).label, 7);
});

test("another class is compared with, unless the map is about none, the model lacks it, or it is the same", () => {
  const choices = { ...firstChoices(), label: 7, against: 1 };
  const sent = (part) => mapFields(methods, result, { ...choices, method: "relevance", ...part });
  assert.deepEqual(sent({}), { method: "relevance", label: 7, against: 1 });
  assert.deepEqual(sent({ label: 1, against: null }), { method: "relevance", label: 1 });
  assert.deepEqual(sent({ label: null, against: 7 }), { method: "relevance", label: 7 }, "7 is the predicted class");
  assert.deepEqual(sent({ against: 99 }), { method: "relevance", label: 7 });
  assert.deepEqual(sent({ method: "rollout" }), { method: "rollout" });
  assert.equal(viewOf(result, methods.rollout, choices).against, null);
  const view = viewOf(result, methods.attnlrp, choices);
  assert.match(methods.attnlrp.subject(result, view), /^for \*seven rather than one\* · AttnLRP/);
  assert.equal(methods.attnlrp.reading(result, view, 0, 2), "evidence for *seven rather than one*: *2.00\u00a0logits*");
  assert.equal(
    methods.occlusion.reading(result, view, 0, -2),
    "evidence for *one rather than seven*: *2.00\u00a0logits*",
  );
  const alone = viewOf(result, methods.occlusion, firstChoices());
  const first = { ...result.predictions[0], probability: 0.9999, scores: "softmax" };
  for (const [loss, words] of [
    [0, "keeps"],
    [9, "instead of"],
  ]) {
    assert.match(methods.occlusion.reading({ ...result, predictions: [first] }, alone, 0, loss), new RegExp(words));
  }

  const settle = (part, after = result) => {
    const view = { ...firstChoices(), ...part };
    const kept = { ...view, ...changesWith(view, result, after) };
    return validFor(after, kept, methods, { isOffered: () => true }).against;
  };
  assert.equal(settle({ against: 1 }), 1);
  assert.deepEqual([settle({ against: 7 }), settle({ against: 5 })], [null, null]);
  assert.equal(
    settle({ against: 1 }, { ...result, predictions: [result.predictions[0], { index: 1, label: "cat" }] }),
    null,
  );
});

test("randomization is measured on the default map of a method only", () => {
  assert.ok(isDefaultMap(result, { method: "rollout" }));
  assert.ok(isDefaultMap(result, { method: "attention", block: 5, head: -1, query: null, direction: "from" }));
  for (const part of [{ block: 4 }, { head: 0 }, { query: 3 }, { direction: "to" }]) {
    assert.ok(!isDefaultMap(result, { method: "attention", block: 5, head: -1, ...part }));
  }
});

test("every registered method is on the page, one without words of its own too", () => {
  assert.deepEqual(
    Object.keys(methods),
    fixture.methods.map(({ name }) => name),
  );
  assert.ok(methods[classMethod(methods)].classSpecific);
  assert.equal(classMethod(methods), "libra_fullgrad");
  const added = {
    name: "new_method",
    title: "New method",
    description: "What is new.",
    class_specific: true,
    many_passes: false,
    recommended: "",
    signed: true,
    floor: { value: 0.5, reason: "Too small.", per_token: true },
    options: [{ name: "block", kind: "block" }],
  };
  const { new_method: method } = describeMethods([...fixture.methods, added]);
  const view = { label: 1 };
  assert.equal(method.label, "New method");
  assert.equal(method.map, null); // the server computes it
  assert.equal(method.subject(result, view), "for *one* · New method");
  assert.equal(method.sentence(result, view), "What is new.");
  assert.equal(method.reading(result, view, 0, 0.5), "*0.50*");
  assert.deepEqual(method.uses, ["block"]);
  assert.deepEqual(method.style({ numTokens: 50 }), { signed: true, floor: 0.01 });
});

test("what a map of attention is of: token, block, heads and method", () => {
  const words = methods.attention.subject(result, { block: 5, head: -1, direction: "from", query: null });
  assert.equal(words, "From the *class token* · block 6 of 6, mean of 4 heads · Attention");
});

test("every method has its words for every view", () => {
  for (const method of Object.values(methods)) {
    for (const query of [null, 3]) {
      for (const direction of ["from", "to"]) {
        for (const [hasClassToken, pool] of [
          [true, "cls"],
          [false, "mean"],
          [false, "attention"],
        ]) {
          const shown = {
            ...result,
            hasClassToken,
            pool,
            predictions: [{ index: 7, label: "seven", probability: 0.9 }],
          };
          const view = { block: 1, head: -1, direction, query, label: null };
          const words = [
            method.subject(shown, view),
            method.sentence(shown, view),
            method.reading(shown, view, 3, 0.25),
          ];
          for (const text of words) assert.doesNotMatch(text, /undefined|NaN|null/);
          assert.ok(method.sentence(shown, view).endsWith("."));
        }
      }
    }
  }
});

test("a channel forgets subscribers that have left the page", () => {
  const channel = createChannel("first");
  const heard = [];
  const [here, left] = [{ isConnected: true }, { isConnected: true }];
  channel.subscribe(here, (value) => heard.push(["here", value]));
  channel.subscribe(left, (value) => heard.push(["left", value]));
  assert.equal(channel.latest(), "first");
  left.isConnected = false;
  channel.publish("second");
  left.isConnected = true;
  channel.publish("third");
  assert.deepEqual(heard, [
    ["here", "second"],
    ["here", "third"],
  ]);
  assert.equal(channel.latest(), "third");
});

test("a choice is a step of the history; a slider, a number and a patch are not", () => {
  const before = { ...firstChoices(), network: { start: "ViT-Tiny", fields: {} } };
  const { features, tour } = before;
  const steps = [
    ...[{ section: "steps" }, { plain: true }, { label: 3 }, { compare: [] }, { tour: { ...tour, step: 2 } }],
    ...[{ features: { ...features, mode: "pca" } }, { features: { ...features, second: { example: "lion" } } }],
    { network: { start: "einops ViT", fields: {} } },
  ];
  const others = [
    ...[{ block: 2 }, { pinned: 3 }, { opacity: 0.1 }, { tour: { ...tour, patch: 5 } }],
    ...[{ features: { ...features, k: 7, block: 1 } }, { network: { start: "ViT-Tiny", fields: { depth: 3 } } }],
  ];
  for (const part of steps) assert.ok(isStep(part, before), JSON.stringify(part));
  for (const part of others) assert.ok(!isStep(part, before), JSON.stringify(part));
});

test("the classes that a network knows are offered by any part of their name, and compared with the answer", () => {
  const named = (index, label, name = label) => ({ index, label, name });
  const predictions = [
    named(5, "Braunbär", "brown bear"),
    named(7, "Katzenbär", "red panda"),
    named(2, "Löwe", "lion"),
    named(4, "rocking chair"),
  ];
  const result = { predictions, source: { preset: "photos-tiny" } };
  for (const [text, expected] of [
    ["", [5, 7, 2, 4]],
    ["BÄR", [5, 7]],
    ["red p", [7]],
    ["rocking", [4]],
    ["axolotl", []],
  ]) {
    const offered = offeredOf(result, text).map(({ index }) => index);
    assert.deepEqual(offered, expected, text);
  }
  assert.deepEqual([offeredOf(null, "lion"), offeredOf({ predictions: [] }, "")], [[], []]);
  const many = { predictions: Array.from({ length: 1000 }, (_, index) => named(index, `class ${index}`)) };
  assert.ok(offeredOf(many, "class").length <= 60);
  for (const [name, expected] of [
    ["red panda", { label: 7, against: 5 }],
    ["RED Panda", { label: 7, against: 5 }],
    ["katzenbär", { label: 7, against: 5 }],
    ["brown bear", { label: 5, against: 7 }],
    ["rocking", null],
    ["axolotl", null],
  ]) {
    assert.deepEqual(comparedWith(result, name), expected, name);
  }
  assert.equal(comparedWith({ ...result, predictions: predictions.slice(0, 1) }, "brown bear"), null, "with what?");
  assert.equal(comparedWith({ ...result, predictions: [] }, "lion"), null, "it knows none");
});
