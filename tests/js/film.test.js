// The film's plan: every network has its beats in their order, at a pace at which they can be read, with the package's numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf, partAt } from "../../vit_demo/web/frontend/stage/film/layout.js";
import {
  answersAt,
  attentionOf,
  decodeFilm,
  filmOf,
  frameAt,
  momentOf,
  pairsOf,
  restOf,
  tokensAt,
} from "../../vit_demo/web/frontend/stage/film/plan.js";
import { frameOf } from "../../vit_demo/web/frontend/stage/frame.js";
import { decodeResult } from "../../vit_demo/web/frontend/stage/result.js";
import { assertClose, fixture } from "./helpers.js";

const SIZES = [
  [705, 488],
  [520, 440],
  [358, 358],
  [358, 252],
];

const films = Object.entries(fixture.films).map(([name, { payload, query, reply, answers, attention }]) => {
  const result = decodeResult(payload);
  const numbers = decodeFilm(reply);
  const film = filmOf({ result, numbers, query, end: "It says *3*." });
  return { name, result, numbers, query, film, answers, attention };
});
const frameOfResult = (result) =>
  frameOf({
    verb: "draw",
    task: "digits",
    result,
    whole: result,
    moments: [],
    at: null,
    choices: {},
    isLooking: false,
  });
const each = (title, check) => {
  for (const one of films) test(`${title}: ${one.name}`, () => check(one));
};

each("cut, tokens, who joins, every block, and the answer", ({ result, film }) => {
  const count = result.numPatches - result.dropped.length;
  const cut = film.beats[0].words.match(/\d+/g)?.map(Number);
  assert.deepEqual(cut, [result.numPatches, ...(result.dropped.length ? [result.dropped.length] : [])]);
  const ofBlock = count > 1 ? ["look", "collect"] : ["collect"];
  const blocks = Array.from({ length: result.numBlocks }, (_, block) => ofBlock.map((kind) => `${kind} ${block}`));
  const found = film.beats.map(({ kind, block }) => (block === null ? kind : `${kind} ${block}`));
  assert.deepEqual(found, ["cut", "tokens", "join", ...blocks.flat(), "read", "end"]);
  film.beats.forEach((beat, i) => {
    const end = i ? film.beats[i - 1].start + film.beats[i - 1].seconds : 0;
    assert.ok(Math.abs(beat.start - end) < 1e-9, "one after the other");
    assert.ok(beat.words && !/[{}|]/.test(beat.words + beat.spoken), beat.words);
    assert.ok(beat.step.step >= 0 && beat.step.step < 8, "each opens one of the eight steps");
  });
});

each(
  "a sentence that is new stays as long as it takes to read; a block takes 1.5 to 2 seconds, the first two longer",
  ({ film, result }) => {
    const ofBlock = (wanted) =>
      film.beats.filter(({ block }) => block === wanted).reduce((sum, { seconds }) => sum + seconds, 0);
    for (const { kind, block, words, seconds } of film.beats) {
      if (block) continue; // the same sentence in each
      assert.ok(seconds >= 0.2 * words.split(" ").length, `${kind}: ${seconds} s`);
    }
    if (result.numPatches === 1) return;
    for (let block = 2; block < result.numBlocks; block++) assert.ok(ofBlock(block) >= 1.5 && ofBlock(block) <= 2);
    for (const block of [0, 1]) assert.ok(ofBlock(block) > 2.5);
    assert.ok(film.seconds < 48);
  },
);

each("the numbers are those of the package", ({ result, numbers, answers, attention }) => {
  for (let block = 0; block < result.numBlocks; block++) {
    const shares = attentionOf(numbers, result, block);
    assertClose(
      Array.from(result.tokenOf, (token) => (token < 0 ? 0 : shares[token])),
      attention[block],
      1e-5,
    );
    assertClose(
      shares.reduce((sum, share) => sum + share, 0),
      1,
      1e-4,
    );
    const pairs = pairsOf(numbers, result, block);
    assert.ok(
      pairs.every(({ from, to }) => result.tokenOf.includes(from) && result.tokenOf.includes(to) && from !== to),
    );
    assert.ok(pairs.every(({ share }, i) => !i || share <= pairs[i - 1].share));
  }
  for (let depth = 0; depth <= result.numBlocks; depth++) {
    assert.equal(tokensAt(numbers, result, depth).length, result.numTokens * numbers.components.length);
    const said = answersAt(numbers, depth);
    if (!answers.length) assert.deepEqual(said, []);
    for (const { name, probability } of said) assertClose(probability, answers[depth][name], 1e-5);
    if (said.length) assertClose(said[0].probability, Math.max(...Object.values(answers[depth])), 1e-5);
  }
});

each("the answers are those after the blocks that are over, and no number is between two of them", (one) => {
  const { result, film, numbers } = one;
  const frame = frameOfResult(result);
  const written = new Set();
  for (let time = 0; time <= film.seconds + 0.1; time += 0.05) {
    const moment = momentOf(film, Math.min(film.seconds, time));
    const shown = frameAt(frame, one, moment);
    assert.equal(shown.headline.text, moment.beat.kind === "end" ? frame.headline.text : moment.beat.words);
    assert.equal(
      shown.answers?.rows.length ?? 0,
      frame.answers ? Math.min(frame.answers.rows.length, result.predictions.length > 12 ? 5 : 12) : 0,
    );
    const [first] = shown.answers?.rows.filter(({ isFirst }) => isFirst) ?? [];
    if (!moment.depth) assert.ok(!shown.answers?.rows.some(({ share, number }) => share || number), "no answer yet");
    if (!first) continue;
    const said = answersAt(numbers, moment.depth);
    assert.equal(first.index, said[0].index, "the leading class has a row");
    for (const { index, share } of shown.answers.rows) {
      assertClose(share, said.find((row) => row.index === index).probability, 1e-5);
    }
    written.add(moment.depth);
  }
  assert.deepEqual(
    [...written],
    result.predictions.length ? Array.from({ length: result.numBlocks }, (_, i) => i + 1) : [],
  );
});

each("a step goes to the end of the next beat, and back", ({ film }) => {
  film.beats.forEach((beat, i) => {
    const { index, share } = momentOf(film, restOf(film, i));
    assert.equal(index, i);
    assert.ok(share > 0.95, beat.kind);
  });
  assert.equal(restOf(film, 99), film.seconds);
  assert.equal(restOf(film, -1), restOf(film, 0));
});

each("every token has a place of its own beside the picture, and can be touched", (one) => {
  const { result, film } = one;
  const moment = momentOf(film, film.seconds);
  for (const size of SIZES) {
    const layout = layoutOf(size, one);
    const cells = Array.from({ length: result.numTokens }, (_, token) => layout.cell(token));
    for (const [token, { x, y, bottom }] of cells.entries()) {
      assert.ok(
        x - layout.grid.side / 2 >= layout.seen.width && x + layout.grid.side / 2 <= size[0] + 1,
        `${token}: ${x}`,
      );
      assert.ok(y >= 0 && bottom <= layout.top, `${token}: ${y} to ${bottom}`);
      assert.deepEqual(partAt(layout, one, moment, x, (y + bottom) / 2), { token });
    }
    assert.equal(new Set(cells.map(({ x, y }) => `${x} ${y}`)).size, result.numTokens);
    assert.ok(layout.level(result.numBlocks - 1) + layout.full / 2 < size[1]);
    assert.deepEqual(partAt(layout, one, moment, 2, 2), { patch: 0 });
    assert.deepEqual(partAt(layout, one, moment, size[0] / 2, layout.level(0)), { block: 0 });
    assert.equal(
      partAt(layout, one, momentOf(film, 0), size[0] / 2, layout.level(0)),
      null,
      "before there are threads",
    );
  }
});
