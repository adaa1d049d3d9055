// The section Build: its sentences against what ViTConfig refuses, and the code that makes a network.

import assert from "node:assert/strict";
import { test } from "node:test";
import { formatCount } from "../../vit_demo/web/frontend/shared/language.js";
import { formatBytes } from "../../vit_demo/web/frontend/stage/format.js";
import { NUMBERS, networkOf, problemOf, pythonCode } from "../../vit_demo/web/frontend/stage/views/build/network.js";
import { fixture } from "./helpers.js";

const { networks, invalid, startingPoints } = fixture.build;

test("nothing is wrong with a network that there can be", () => {
  for (const { title, config, patchSize } of networks) assert.equal(problemOf(config, patchSize), null, title);
});

test("the hint of a number allows what is accepted", () => {
  const [{ config, patchSize }] = networks;
  for (const channels of [1, 2, 3]) assert.equal(problemOf({ ...config, in_channels: channels }, patchSize), null);
  const [, , hint, least, most] = NUMBERS.find(([field]) => field === "in_channels");
  assert.deepEqual([hint, least, most], ["1 grey, 3 colour", 1, 64]);
});

test("what ViTConfig refuses gets one sentence", () => {
  for (const config of invalid) {
    const [field, problem] = problemOf(config, config.patch_size);
    assert.ok(field in config, field);
    assert.match(problem, /^[A-Z0-9][^.]*( [^.]*)*\.$/, JSON.stringify(config));
  }
  const { config } = networks[0];
  assert.match(
    problemOf({ ...config, depth: Number.NaN }, 16).join(),
    /^depth,Depth: enter a whole number from 1 to 128/,
  );
  assert.match(problemOf({ ...config, embed_dim: 1e9 }, 16).join(), /^embed_dim,Width: enter a whole number/);
});

test("the code holds the fields that differ from the defaults", () => {
  const { defaults } = startingPoints;
  assert.match(pythonCode(defaults, defaults.patch_size, defaults), /config = ViTConfig\(\)\n/);
  const config = { ...defaults, pool: "mean", class_token: false, layer_scale: 0.1, pos_embed_grid: 14 };
  const code = pythonCode(config, 8, defaults);
  assert.ok(code.includes('    pool="mean",\n'));
  assert.ok(code.includes("    class_token=False,\n"));
  assert.ok(code.includes("    layer_scale=0.1,\n"));
  assert.ok(code.includes("model(images, patch_size=8)"));
  assert.ok(!code.includes("embed_dim"));
});

test("counts are short", () => {
  assert.deepEqual([0, 1642, 9999, 10_000, 5_717_416, 999_999, 1_253_683_200].map(formatCount), [
    "0",
    "1,642",
    "9,999",
    "10.0\u00a0k",
    "5.72\u00a0M",
    "1.00\u00a0M",
    "1.25\u00a0G",
  ]);
  assert.equal(formatBytes(465_708), "466\u00a0kB");
});

test("a changed patch size is that of the kernel, except in a flexible network", () => {
  const fixed = networkOf({ start: "ViT-Tiny", fields: { patch_size: 8, depth: 3 } }, startingPoints);
  assert.deepEqual([fixed.patchSize, fixed.config.patch_size, fixed.config.depth], [8, 8, 3]);
  const flexible = networkOf({ start: "digits-small", fields: { patch_size: 7 } }, startingPoints);
  const before = networkOf({ start: "digits-small", fields: {} }, startingPoints);
  assert.equal(flexible.patchSize, 7);
  assert.equal(flexible.config.patch_size, before.config.patch_size);
});
