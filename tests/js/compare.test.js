// The columns of a comparison.

import assert from "node:assert/strict";
import { test } from "node:test";
import { samePlace } from "../../vit_demo/web/frontend/shared/geometry.js";
import { menuModels } from "../../vit_demo/web/frontend/shared/pageState.js";
import {
  attentionBytes,
  firstColumns,
  offeredColumns,
  scaleEnds,
  sourceOf,
  withModel,
} from "../../vit_demo/web/frontend/stage/views/compare/column.js";

test("a comparison begins with the nearest patch sizes, the current one among them", () => {
  const sizesFor = (current, sizes) =>
    firstColumns({ preset: "p", patch_size: current }, sizes, "attention").map(({ patchSize }) => patchSize);
  assert.deepEqual(sizesFor(4, [2, 4, 7, 14]), [2, 4, 7]);
  assert.deepEqual(sizesFor(14, [2, 4, 7, 14]), [4, 7, 14]);
  assert.deepEqual(sizesFor(16, [16]), [16]);
});

test("a column's source differs in model and patch size only, with all patches", () => {
  const source = { digit: "data:", preset: "a", patch_size: 4, fit: "crop", dropped: [3] };
  assert.deepEqual(sourceOf(source, { preset: "b", patchSize: 7 }), {
    digit: "data:",
    preset: "b",
    patch_size: 7,
    fit: "crop",
    dropped: [],
    silent: [],
  });
  const column = { preset: "b", patchSize: 7, without: true };
  assert.deepEqual(
    sourceOf(source, column, [[1, 0]]).silent,
    [[1, 0]],
    "or without the heads that are silent on the stage",
  );
});

test("a column of a model that takes words has those of the picture's, another one none", () => {
  menuModels.publish(new Map([["clip", { takes_words: true }]]));
  const source = { example: "lion", preset: "clip", patch_size: 16, fit: "crop", dropped: [], words: ["a", "b"] };
  assert.deepEqual(sourceOf(source, { preset: "clip", patchSize: 16 }).words, ["a", "b"]);
  assert.ok(!("words" in sourceOf(source, { preset: "b", patchSize: 16 })));
});

test("another model keeps the patch size that it has, and no class", () => {
  const column = { preset: "a", patchSize: 7, method: "relevance", label: 3 };
  const model = { name: "b", sizes: [{ size: 4 }, { size: 7 }], default_patch_size: 4 };
  assert.deepEqual(withModel(column, model), { preset: "b", patchSize: 7, method: "relevance", label: null });
  assert.equal(withModel({ ...column, patchSize: 2 }, model).patchSize, 4);
});

test("maps of one unit share the end of their scale, a floor counts, and shares are measured in even ones", () => {
  const style = { signed: true, floor: 0 };
  const ends = scaleEnds([
    { unit: "share", map: Float32Array.of(0.1, 0.4), style, per: 1 / 17 },
    { unit: "share", map: Float32Array.of(0.2), style, per: 1 / 50 },
    { unit: "score", map: Float32Array.of(-3, 2), style, per: 1 },
    { unit: "faint", map: Float32Array.of(0.001), style: { floor: 0.5 }, per: 1 },
  ]);
  assert.ok(Math.abs(ends.get("share") - 10) < 1e-5, "0.2 of 50 tokens is more than 0.4 of 17");
  assert.equal(ends.get("score"), 3);
  assert.equal(ends.get("faint"), 0.5);
});

test("the same place in another grid holds the middle of the patch", () => {
  const grid = (rows, columns) => ({ rows, columns });
  assert.equal(samePlace(0, grid(7, 7), grid(14, 14)), 15);
  assert.equal(samePlace(48, grid(7, 7), grid(2, 2)), 3);
  for (let patch = 0; patch < 12; patch++) assert.equal(samePlace(patch, grid(3, 4), grid(3, 4)), patch);
});

test("bytes of the attention weights of a block", () => {
  assert.equal(attentionBytes({ numHeads: 3, numTokens: 197 }), 3 * 197 * 197 * 4);
});

test("of the columns of a link those stay whose model, size and method exist, if two do", () => {
  const models = [{ name: "a", sizes: [{ size: 4 }, { size: 7 }] }];
  const methods = { rollout: {} };
  const column = { preset: "a", patchSize: 4, method: "rollout", label: null };
  const good = [column, { ...column, patchSize: 7, label: 3 }];
  const bad = [{ preset: "b" }, { patchSize: 5 }, { method: "constructor" }].map((part) => ({ ...column, ...part }));
  assert.deepEqual(offeredColumns([bad[0], good[0], bad[1], good[1], bad[2]], models, methods), good);
  assert.equal(offeredColumns([...bad, good[0]], models, methods), null);
  assert.equal(offeredColumns(null, models, methods), null);
});
