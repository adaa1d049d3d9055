// The scale that the maps of one picture share.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createScales } from "../../vit_demo/web/frontend/stage/scales.js";
import { assertClose } from "./helpers.js";

const evidence = { label: "evidence", uses: [], style: () => ({ signed: true, floor: 0.1 }) };
const picture = (digit) => ({ source: { digit }, photo: null });

test("maps of a picture without some patches share the largest scale until all are back", () => {
  const { styleOf } = createScales();
  const [whole, without, other] = [picture(8), picture(8), picture(7)];
  const end = (of, result, ...map) => styleOf(of, result, evidence, {}, Float32Array.from(map), {}).end;

  assertClose(end(whole, whole, 2.62, -1), 2.62, 1e-6);
  assertClose(end(whole, without, 0.5, -5.66), 5.66, 1e-6);
  assertClose(end(whole, without, 1, -1), 5.66, 1e-6);
  assertClose(end(whole, whole, 2.62, -1), 2.62, 1e-6);
  assertClose(end(whole, without, 1, -1), 2.62, 1e-6);
  assertClose(end(other, other, 0.5, 0), 0.5, 1e-6);
  assert.equal(styleOf(whole, without, evidence, {}, Float32Array.of(3), { scale: "own" }).end, undefined);
});
