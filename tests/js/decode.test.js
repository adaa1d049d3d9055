// Decoding, against numbers that Python's encoder wrote: see fixture() in tests/test_javascript.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeFloat16, decodeFloat32, decodeMaps, decodeResult } from "../../vit_demo/web/frontend/stage/result.js";
import { assertClose, fixture } from "./helpers.js";

test("bytes and float32 arrive as Python sent them", () => {
  const { encoded, values } = fixture.float32;
  assert.deepEqual([...decodeFloat32(encoded)], values.map(Math.fround));
  const maps = decodeMaps(fixture.maps.encoded);
  assert.deepEqual([...maps.levels], fixture.maps.levels);
  assert.deepEqual([...maps.peaks], fixture.maps.peaks.map(Math.fround));
});

test("every half-precision number is numpy's, subnormal, infinite and negative ones included", () => {
  const { encoded, values } = fixture.float16;
  const decoded = decodeFloat16(encoded);
  assert.equal(decoded.length, 65536);
  values.forEach((value, i) => {
    const expected = { inf: Infinity, "-inf": -Infinity, nan: Number.NaN }[value] ?? value;
    assert.ok(Object.is(decoded[i], expected), `bits ${i}: ${decoded[i]} is not ${expected}`);
  });
});

test("a payload becomes a result with one token for each patch that is left", () => {
  const result = decodeResult(fixture.payload);
  const { rows, columns, numPatches, numTokens, tokenOf, dropped } = result;
  assert.equal(numPatches, rows * columns);
  assert.deepEqual([...dropped], fixture.dropped);
  assert.equal(numTokens, fixture.payload.num_prefix_tokens + numPatches - dropped.length);
  const tokens = [...tokenOf].filter((token) => token >= 0);
  assert.deepEqual(
    tokens,
    tokens.map((_, i) => i + fixture.payload.num_prefix_tokens),
  );
  for (const patch of dropped) assert.equal(tokenOf[patch], -1);
  assert.equal(result.rollout.levels.length, numPatches);
  assert.deepEqual([...result.traces.keys()].sort(), fixture.blocks);
  assertClose(result.predictions[0].probability, fixture.probability, 0);
  assert.deepEqual(
    result.predictions.map(({ label }) => label),
    fixture.payload.predictions.labels,
  );
});
