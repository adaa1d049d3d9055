// Numbers and sentences as people read them.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { describeFit } from "../../vit_demo/web/frontend/inputs/photoInput.js";
import {
  formatArea,
  formatNumber,
  formatProbability,
  formatShare,
  placeOf,
  queryName,
  targetOf,
} from "../../vit_demo/web/frontend/stage/format.js";
import { compare, measureOf, testedClass } from "../../vit_demo/web/frontend/stage/onDemand.js";
import {
  axisTop,
  faithfulnessText,
  randomizationText,
} from "../../vit_demo/web/frontend/stage/views/faithfulness/findings.js";

const plain = (text) => text.replaceAll("\u00a0", " ");

test("a probability is never a rounded 0 or 100 %", () => {
  const cases = {
    0: "<0.1 %",
    0.0009: "<0.1 %",
    0.001: "0.1 %",
    0.5: "50.0 %",
    0.9994: "99.9 %",
    0.9996: ">99.9 %",
    1: "100.0 %",
  };
  for (const [value, text] of Object.entries(cases)) assert.equal(plain(formatProbability(Number(value))), text);
});

test("a small share has two decimals", () => {
  const cases = { 0: "0.00 %", 0.00001: "<0.01 %", 0.0012: "0.12 %", 0.01: "1.0 %", 0.352: "35.2 %" };
  for (const [value, text] of Object.entries(cases)) assert.equal(plain(formatShare(Number(value))), text);
});

test("numbers have two or three significant digits and a true minus", () => {
  const cases = [
    [0, "0"],
    [0.0001234, "0.00012"],
    [0.00000001, "<0.000001"],
    [-0.00000001, ">−0.000001"],
    [-0.01234, "−0.012"],
    [0.456, "0.46"],
    [12.345, "12.3"],
    [-7, "−7.00"],
  ];
  for (const [value, text] of cases) assert.equal(formatNumber(value), text);
  assert.equal(formatArea(0.5), "0.50");
});

test("an axis ends at the next round number", () => {
  assert.deepEqual([0.004, 0.05, 0.051, 0.6, 1, 1.1, 14.2, 1000].map(axisTop), [0.01, 0.05, 0.1, 1, 1, 2, 20, 1000]);
});

test("patches are counted from 1, row by row", () => {
  const result = { columns: 5, numBlocks: 2, hasClassToken: true, pool: "cls" };
  assert.equal(placeOf(result, 7), "row 2, column 3");
  assert.equal(queryName(result, null), "class token");
  assert.equal(queryName({ ...result, hasClassToken: false }, null), "average of all tokens");
  const siglip = { ...result, hasClassToken: false, pool: "attention" };
  assert.equal(queryName(siglip, null, 0), "average of all tokens");
  assert.equal(queryName(siglip, null, 1), "query of attention pooling");
});

test("a class that is not among the predictions gives way to the first of them", () => {
  const result = { predictions: [{ index: 7 }, { index: 1 }] };
  assert.equal(targetOf(result, 1).index, 1);
  assert.equal(targetOf(result, 5).index, 7);
  assert.equal(targetOf(result, null).index, 7);
});

test("a map that is about no class is tested on the predicted one", () => {
  const result = { predictions: [{ index: 7 }, { index: 1 }] };
  assert.equal(testedClass(result, { classSpecific: true }, 1).index, 1);
  assert.equal(testedClass(result, { classSpecific: false }, 1).index, 7);
});

test("a heatmap is faithful where it does better than every random order on both sides, and the words are of its class", () => {
  const side = (area, randomArea, ordersBeaten) => ({
    area,
    random_area: randomArea,
    random: [[], [], []],
    orders_beaten: ordersBeaten,
  });
  const text = (deletion, insertion) => faithfulnessText("lion", { deletion, insertion }).join(" ");
  const both = text(side(0.2, 0.4, 3), side(0.6, 0.4, 3));
  assert.match(both, /^\*Yes, better than all 3 random orders\*: the strongest squares matter to \*lion\*\./);
  assert.match(both, /area 0.20 against 0.40 \(lower is better\), better than 3 of 3 random orders\. /);
  const almost = text(side(0.2, 0.4, 3), side(0.6, 0.4, 2)); // better than the mean, but not than every order
  assert.match(almost, /^\*In part\*: \*lion\* needs the strongest squares/);
  assert.match(almost, /area 0.60 against 0.40 \(higher is better\), better than 2 of 3 random orders\./);
  assert.match(text(side(0.5, 0.4, 0), side(0.6, 0.4, 3)), /^\*In part\*: the strongest squares alone bring/);
  assert.match(text(side(0.3, 0.4, 2), side(0.5, 0.4, 2)), /^\*Not clearly better than random\*/);
  for (const words of [both, almost]) assert.doesNotMatch(words, /prediction|lost/, "a curve of it may rise");
});

test("areas that look equal are not better", () => {
  const own = (area) => ({ fractions: [0, 1], deletion: { curve: [], area }, insertion: { curve: [], area } });
  const beaten = (area) => compare(own(area), [own(0.0021), own(0.0022)]).insertion.orders_beaten;
  assert.deepEqual([0.0024, 0.02].map(beaten), [0, 2]);
});

test("of a class that is too improbable to lose anything the logit is measured", () => {
  const result = { predictions: [0.95, 0.0999, 0.001].map((probability, index) => ({ index, probability })) };
  const measures = [null, 0, 1, 2].map((label) => measureOf(result, { label }));
  assert.deepEqual(measures, ["probability", "probability", "logit", "logit"]);
  assert.equal(measureOf(result, { label: 2, against: 0 }), "difference of logits");
});

test("the verdict of randomization claims no more than its last correlation", () => {
  assert.match(
    randomizationText([1, 0.6, 0.1], 49),
    /no more similar than by chance, so it depends on what was learned \(correlation 0.10; .*\)\.$/,
  );
  assert.match(
    randomizationText([1, 0.6, 0.41], 49),
    /partly similar, so part of it .* \(correlation 0.41; .*\)\. Most of the change comes with the classifier head/,
  );
  assert.match(randomizationText([1, 0.9, 0.8], 49), /very similar, so most of it .* \(correlation 0.80; .*\)\.$/);
  assert.match(randomizationText([1, -0.5], 49), /partly in reverse order, .* \(correlation −0.50; /);
  assert.match(randomizationText([1, 0.9], 4), /no more similar than by chance/);
});

test("the fit of a photo is described", () => {
  const photo = { rows: 10, columns: 6, box: [0.25, 0, 0.75, 1] };
  const words = (more) => plain(describeFit({ ...photo, ...more }).replaceAll("*", ""));
  assert.equal(words({ fit: "crop" }), "The bright square, 50 % of the photo.");
  assert.equal(words({ fit: "crop", box: [0, 0, 1, 1] }), "All of it: the photo is square.");
  assert.equal(words({ fit: "squash", box: [0, 0, 1, 1] }), "All of it, stretched to a square.");
  assert.equal(words({ fit: "keep", box: [0, 0, 1, 1] }), "All of it, in 10 × 6 squares.");
});
