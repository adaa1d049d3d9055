// The guided tour: its words, its questions and its numbers, on a real result of which two patches are dropped.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeResult, similarities } from "../../vit_demo/web/frontend/stage/result.js";
import { sumOf } from "../../vit_demo/web/frontend/stage/views/steps/contributions.js";
import {
  filterPixels,
  inputPixels,
  productsOf,
  short,
  signedPixels,
} from "../../vit_demo/web/frontend/stage/views/steps/painting.js";
import { shownRows } from "../../vit_demo/web/frontend/stage/views/steps/patchFigures.js";
import { questionOf } from "../../vit_demo/web/frontend/stage/views/steps/quiz.js";
import { NUM_STEPS, titleOf, wordsOf } from "../../vit_demo/web/frontend/stage/views/steps/texts.js";
import {
  decodeNumbers,
  factsOf,
  patchOfToken,
  settledAfter,
  settleTour,
} from "../../vit_demo/web/frontend/stage/views/steps/tour.js";
import { assertClose, fixture, randomNumbers } from "./helpers.js";

const result = decodeResult(fixture.payload);
const shared = decodeNumbers(fixture.steps.shared);
const block = decodeNumbers(fixture.steps.block);
const facts = factsOf(result, shared);
const patchTokens = Array.from(block.weights, (_, token) => patchOfToken(result, token)); // the patch of each token
const FIRST = { step: 0, patch: null, block: null, head: 0, filter: null, fromClassToken: false };
const WORDS_A_MINUTE = 200;
const steps = Array.from({ length: NUM_STEPS }, (_, step) => step);

const others = {
  "no classes, registers": { ...facts, classes: 0, hasClasses: false, isOfTokens: true, registers: 4, prediction: "" },
  "mean of patches": { ...facts, hasClassToken: false, pool: "mean", positions: "sincos" },
  "one head": { ...facts, heads: 1, headWidth: facts.width, mixesHeads: false, blocks: 1 },
  "attention pooling": { ...facts, classes: 0, hasClasses: false, hasClassToken: false, pool: "attention" },
  "rotary, gated": { ...facts, readsClassToken: false, positions: "none", gated: true },
  "normed, parallel": { ...facts, positions: "normed", hidden: 0 },
  "two vectors": { ...facts, pool: "cls+mean", features: 2 * facts.width, channels: 3 },
};

test("numbers arrive as they were sent", () => {
  const { rows, columns } = result;
  assert.deepEqual([facts.width, facts.heads, facts.patchSize, facts.patchValues], [64, 4, 4, 16]);
  assert.equal(shared.kernel.length, shared.filters.length * facts.patchValues);
  assert.equal(shared.contrast.length, rows * columns);
  assert.deepEqual(shared.labels.depth_class, fixture.steps.depths);
  const probabilities = [...shared.logits].map((logit) => Math.exp(logit - shared.logsumexp[0]));
  assertClose(probabilities, fixture.steps.probabilities, 1e-5);
  assertClose(shared.depth_top.slice(-1), fixture.steps.probabilities.slice(0, 1), 1e-5);
});

test("products are summed over the channels", () => {
  const [left, right] = [randomNumbers(12, 1), randomNumbers(12, 2)];
  const expected = [0, 1, 2, 3].map((i) => [0, 4, 8].reduce((sum, c) => sum + left[c + i] * right[c + i], 0));
  assertClose(productsOf(left, right, 3), expected, 1e-6);
});

test("similarities of positions are those of the embeddings", () => {
  const found = similarities(shared.positions, facts.patches, fixture.steps.query);
  assertClose(found, fixture.steps.similarity, 0.01);
});

test("each step has a title, one to three sentences and two shapes, for every network", () => {
  for (const each of [facts, ...Object.values(others)]) {
    for (const step of steps) {
      const { sentences, before, after } = wordsOf(step, each);
      assert.match(titleOf(step), /^[A-Z]/);
      assert.ok(sentences.length >= 1 && sentences.length <= 3);
      for (const sentence of sentences) assert.match(sentence, /^[A-Z*].*\.$/);
      for (const [shape, meaning] of [before, after]) {
        assert.match(shape, /^\[1(, \d+)+\]$|^\d+ × \d+$/);
        assert.ok(meaning);
      }
      assert.ok(![...sentences, before, after].join().match(/undefined|NaN|null|[{|]/));
    }
  }
});

test("the shapes are those of the tensors", () => {
  const tokens = `[1, ${result.numTokens}, 64]`;
  const after = (step, f = facts) => wordsOf(step, f).after[0];
  assert.equal(wordsOf(0, facts).before[0], "[1, 1, 28, 28]");
  assert.equal(after(1), "[1, 49, 64]");
  assert.equal(after(2), tokens);
  assert.equal(after(3), `[1, 4, ${result.numTokens}, ${result.numTokens}]`);
  assert.equal(after(7), "[1, 10]");
  assert.equal(after(7, others["no classes, registers"]), "[1, 64]");
});

test("words suit the network", () => {
  const text = (f) => steps.flatMap((step) => wordsOf(step, f).sentences).join(" ");
  assert.match(text(others["no classes, registers"]), /4 registers.*no classifier head/s);
  assert.match(text(others["mean of patches"]), /no class token.*sines and cosines.*the mean of all patch tokens/s);
  assert.match(text(others["one head"]), /There is one head.*nothing mixes them/s);
  assert.match(
    text(others["attention pooling"]),
    /attention pooling reads its tokens.*is computed from what attention/s,
  );
  assert.match(text(others["rotary, gated"]), /starts the same for every picture\..*no position embedding.*a gate/s);
  assert.doesNotMatch(text(others["rotary, gated"]), /will be collected|pushed almost to zero/);
  assert.match(text(others["normed, parallel"]), /A norm then scales.*its part cannot be told apart/s);
});

test("at least four questions, each with its right answer among the options", () => {
  const asked = steps.map((step) => questionOf(step, state(step))).filter(Boolean);
  assert.ok(asked.length >= 4);
  for (const { prompt, options, answer, why } of asked) {
    assert.match(prompt, /\?$/);
    assert.ok(options.length >= 2 && new Set(options).size === options.length);
    assert.ok(answer >= 0 && answer < options.length);
    assert.match(why, /\.$/);
  }
});

function state(step, part = {}) {
  return { result, facts, shared, block, tour: settleTour({ ...FIRST, step }, result, shared), ...part };
}

test("the tour takes at most five minutes to read", () => {
  const questions = steps.map((step) => questionOf(step, state(step))).filter(Boolean);
  const asked = questions.flatMap(({ prompt, options, why }) => [prompt, ...options, why]);
  const words = [...steps.flatMap((step) => [titleOf(step), ...wordsOf(step, facts).sentences]), ...asked].join(" ");
  assert.ok(words.split(/\s+/).length <= 5 * WORDS_A_MINUTE);
});

test("answers are computed from the numbers", () => {
  const strongest = questionOf(3, state(3));
  const share = strongest.marks.map(([marked]) => marked);
  const map = Array.from({ length: result.numPatches }, (_, patch) => block.weights[patchTokens.indexOf(patch)] ?? 0);
  const { patch: asked } = state(3).tour;
  assert.ok(!share.includes(asked), "a patch is no answer to a question about itself");
  assert.equal(Math.max(...map.with(asked, 0)), map[share[strongest.answer]]);
  assert.match(strongest.prompt, /outlined patch, row \d, column \d, attend to most in head 1 of block \d\?$/);
  assert.match(strongest.why, /^Attention goes where a key fits the query\./, "a reason before the numbers");
  const noChange = { ...block, attention: new Float32Array(64), mlp: new Float32Array(64).fill(1) };
  assert.equal(questionOf(5, state(5, { block: noChange })).answer, 1);
  const settled = questionOf(6, state(6, { shared: { ...shared, depth_class: [1, 1, 1, 1, 1, 7, 7] } }));
  assert.equal(settled.options[settled.answer], "after block 5 to 6");
  const second = questionOf(7, state(7));
  assert.equal(second.options[second.answer], shared.labels.classes[1]);
  const near = questionOf(2, state(2));
  assert.equal(near.options[near.answer], "those right next to it");
});

test("questions without an answer are left out", () => {
  assert.equal(questionOf(2, state(2, { facts: { ...facts, rows: 2, columns: 2 } })), null);
  assert.equal(questionOf(7, state(7, { shared: { ...shared, labels: {} } })), null);
  const similarity = { ...shared, depth_similarity: [0, 0.1, 0.2, 0.9, 0.9, 0.9, 1] };
  const asked = questionOf(6, state(6, { facts: others["no classes, registers"], shared: similarity }));
  assert.match(asked.options[asked.answer], /almost the same/);
});

test("a class settles where it leads to the end", () => {
  assert.equal(settledAfter([3, 3, 3]), 0);
  assert.equal(settledAfter([3, 5, 3]), 2);
  assert.equal(settledAfter([5, 3, 3]), 1);
});

test("choices that do not exist in a result are replaced", () => {
  const settled = settleTour(
    { step: 99, patch: 0, block: 12, head: -1, filter: 99, fromClassToken: "yes" },
    result,
    shared,
  );
  assert.deepEqual({ ...settled, patch: 0 }, { ...FIRST, patch: 0, block: 3, fromClassToken: true });
  assert.ok(result.tokenOf[settled.patch] >= 0, "patch 0 is dropped");
  assert.ok(shared.contrast[settled.patch] > 0, "there is ink in the patch");
  const kept = { step: 4, patch: 9, block: 1, head: 2, filter: 3, fromClassToken: false };
  assert.deepEqual(settleTour(kept, result, shared), kept);
  assert.equal(
    settleTour({ ...FIRST, fromClassToken: true }, { ...result, hasClassToken: false }, shared).fromClassToken,
    false,
  );
});

test("a token belongs to its patch", () => {
  assert.equal(patchOfToken(result, 0), -1);
  assert.equal(patchOfToken(result, 1), 1, "patch 0 is dropped");
});

test("colours: positive and negative numbers, an input as it was, a filter around grey", () => {
  const both = { plus: [1, 2, 3], minus: [4, 5, 6] };
  assert.deepEqual([...signedPixels([2, -2, 0], 2, both)], [1, 2, 3, 255, 4, 5, 6, 255, 1, 2, 3, 0]);
  const network = { channels: 1, mean: [0.5], std: [0.25] };
  assert.deepEqual([...inputPixels(new Float32Array([2, -2]), network)], [255, 255, 255, 255, 0, 0, 0, 255]);
  const colour = { channels: 3, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] };
  assert.deepEqual([...inputPixels(new Float32Array([1, -1, 1]), colour)], [255, 0, 255, 255]);
  assert.deepEqual([...filterPixels(new Float32Array([1, 0, -1]))], [255, 128, 1, 255]);
});

test("a digit is ink on paper in every figure", () => {
  const pixels = inputPixels(new Float32Array([2, -2]), { channels: 1, mean: [0.5], std: [0.25], paper: true });
  assert.deepEqual([...pixels], [40, 40, 40, 255, 252, 252, 252, 255]);
  assert.match(wordsOf(0, facts).sentences.join(" "), /inverted: bright ink on dark paper\.$/);
  assert.doesNotMatch(wordsOf(0, { ...facts, channels: 3 }).sentences.join(" "), /paper/);
});

test("of a picture in many rows, the sequence shows the first, the last and those around the chosen patch", () => {
  assert.deepEqual(shownRows({ rows: 7 }, 3), [0, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(shownRows({ rows: 14 }, 7), [0, 1, 6, 7, 8, 13]);
  assert.deepEqual(shownRows({ rows: 40 }, 39), [0, 1, 38, 39]);
});

test("attention alone is said to take sixteen times the work", () => {
  const { why } = questionOf(0, state(0));
  assert.match(why, /four, so there are \d+\. .*four times the work; attention, .* about sixteen times\.$/);
});

test("what each head, each MLP and the rest add is written as a sum that is the logit", () => {
  const parts = decodeNumbers(fixture.steps.contributions);
  assertClose(parts.logit, fixture.steps.logit, 1e-3);
  const [terms, total] = sumOf(parts).split(" ≈ ");
  const names = ["all heads", "all MLPs", "first tokens", "biases"];
  const values = names.map((name) =>
    Number(
      terms
        .split(`${name} `)[1]
        .match(/^\(?([−-]?[\d.]+)/)[1]
        .replace("−", "-"),
    ),
  );
  assert.equal(
    terms
      .replaceAll(/[^a-zA-Z ]/g, "")
      .replaceAll(/ +/g, " ")
      .trim(),
    names.join(" "),
  );
  assertClose(
    values[0],
    parts.heads.reduce((sum, value) => sum + value, 0),
    0.006,
  );
  assertClose(
    values.reduce((sum, value) => sum + value, 0),
    Number(total),
    0.03,
  );
  assertClose(Number(total), fixture.steps.logit, 0.006);
});

test("numbers are short", () => {
  assert.deepEqual([0, 1.234, -0.5, 0.0012].map(short), ["0.00", "1.23", "−0.50", "0.0012"]);
});
