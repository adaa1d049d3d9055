// The film's plan: every network has its beats in their order, at a pace at which they can be read, with the package's numbers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { useCatalogue } from "../../vit_demo/web/frontend/shared/language.js";
import { explain } from "../../vit_demo/web/frontend/stage/film/card.js";
import { curveAt } from "../../vit_demo/web/frontend/stage/film/curves.js";
import { fit } from "../../vit_demo/web/frontend/stage/film/labels.js";
import {
  keptFree,
  layoutOf,
  levelsAt,
  partAt,
  partsAt,
  pictureAt,
  placeOfCard,
} from "../../vit_demo/web/frontend/stage/film/layout.js";
import { paintCaptions, paintNames, paintShares } from "../../vit_demo/web/frontend/stage/film/names.js";
import { paintPairs, paintStrips } from "../../vit_demo/web/frontend/stage/film/painting.js";
import {
  answersAt,
  attentionOf,
  decodeFilm,
  filmOf,
  frameAt,
  momentOf,
  pairsOf,
  restOf,
  sceneBefore,
  tokensAt,
} from "../../vit_demo/web/frontend/stage/film/plan.js";
import { paintCollector } from "../../vit_demo/web/frontend/stage/film/threads.js";
import { formatNumber, formatShare, placeOf } from "../../vit_demo/web/frontend/stage/format.js";
import { frameOf } from "../../vit_demo/web/frontend/stage/frame.js";
import { decodeResult } from "../../vit_demo/web/frontend/stage/result.js";
import { assertClose, fixture } from "./helpers.js";

const BLOCK = 1.5; // seconds of all blocks but the first two
const LANGUAGES = new URL("../../vit_demo/web/languages", import.meta.url).pathname;
const SIZES = [
  [755, 645],
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
  "a sentence that is new stays as long as it takes to read; the first two blocks take longer",
  ({ film, result }) => {
    const ofBlock = (wanted) =>
      film.beats.filter(({ block }) => block === wanted).reduce((sum, { seconds }) => sum + seconds, 0);
    for (const { kind, block, words, seconds } of film.beats) {
      if (block) continue; // the same sentence in each
      const caption = kind === "join" ? ` ${film.captions.stripes}` : "";
      assert.ok(seconds >= 0.2 * `${words}${caption}`.split(" ").length, `${kind}: ${seconds} s`);
    }
    if (result.numPatches === 1) return;
    for (let block = 2; block < result.numBlocks; block++) assertClose(ofBlock(block), BLOCK, 1e-9);
    assert.ok(ofBlock(0) > 4 && ofBlock(1) > 2);
  },
);

test("in every language arrows come within seven seconds and a half, and six blocks take less than 25", () => {
  const { result, numbers, query } = films.find(({ name }) => name === "16 squares");
  for (const language of ["en", "de", "fr", "es", "zh"]) {
    useCatalogue(language, language === "en" ? {} : JSON.parse(readFileSync(`${LANGUAGES}/${language}.json`, "utf8")));
    const film = filmOf({ result, numbers, query, end: "It says *3*." });
    const { start } = film.beats.find(({ kind }) => kind === "look");
    assert.ok(start <= 7.5, `${language}: ${start} s`);
    const seconds = film.seconds + (6 - result.numBlocks) * BLOCK;
    assert.ok(seconds <= (language === "en" ? 22.5 : 24.5), `${language}: ${seconds} s`);
  }
  useCatalogue("en", {});
});

each("before its numbers are there it has begun as it goes on", ({ result, film, query }) => {
  const before = sceneBefore(result);
  assert.deepEqual(before.film.beats, [film.beats[0]]);
  assert.equal(before.film.seconds, film.beats[1].start);
  assert.ok(momentOf(before.film, 0.3).share > 0);
  const frame = frameOfResult(result);
  const shown = frameAt(frame, before, momentOf(before.film, 0.3));
  assert.equal(shown.headline.text, film.beats[0].words);
  assert.equal(momentOf(before.film, 99).block, -1, query);
});

each("each sentence says what is seen: its number is that of the block, and what would be said now has none", (one) => {
  const { result, film, numbers } = one;
  const frame = frameOfResult(result);
  for (let time = 0; time <= film.seconds; time += 0.1) {
    const moment = momentOf(film, time);
    const { headline, mechanism } = frameAt(frame, one, moment);
    assert.equal(mechanism, "", "the picture says it");
    if (moment.beat.block === null) continue;
    const number = headline.text.match(/^Block (\d+)/)?.[1];
    if (number) assert.equal(Number(number), moment.beat.block + 1);
    assert.ok(!/block/i.test(headline.next), headline.next);
    const [first] = answersAt(numbers, moment.depth);
    if (moment.depth && first) assert.ok(headline.next.startsWith(`So far the answer would be *${first.label}*, `));
    else assert.equal(headline.next, "");
  }
});

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
    for (let gone = 0; gone <= 1; gone += 0.05) {
      const { left, top, width } = pictureAt(layout, 1, gone);
      const isBeside = left + width <= Math.min(...cells.map(({ x }) => x)) - layout.grid.side / 2;
      assert.ok(isBeside || top >= layout.top - 1, `${gone} of its way into the corner it covers a token`);
    }
    assert.deepEqual(pictureAt(layout, 1, 1), layout.seen);
    assert.ok(layout.level(result.numBlocks - 1) + layout.full / 2 < size[1]);
    assert.deepEqual(partAt(layout, one, moment, 2, 2), { patch: 0 });
    assert.equal(partAt(layout, one, momentOf(film, 0), 2, 2), null, "while it is whole");
  }
});

each("a touch explains each part with its own share, and leads to a step", (one) => {
  const { result, numbers, film } = one;
  const squareOf = (token) => (token >= film.numPrefix ? placeOf(result, result.tokenOf.indexOf(token)) : "");
  const count = numbers.components.length;
  for (const [i, beat] of film.beats.entries()) {
    const moment = momentOf(film, restOf(film, i));
    const layout = layoutOf(SIZES[0], one, levelsAt(moment, result));
    const parts = partsAt(layout, one, moment);
    const curves = parts.filter(({ part }) => part.share !== undefined).map(({ part }) => part);
    assert.equal(parts.length - curves.length, i ? result.numTokens : 0, "every token");
    assert.equal(curves.length > 0, moment.block >= 0);
    const sum = curves.reduce((all, { share }) => all + share, 0);
    if (moment.block >= 0 && beat.kind !== "look") assertClose(sum, 1, 1e-4);
    for (const { part, at } of parts) {
      const { words, step } = explain(one, moment, part);
      assert.ok(!/[{}|]|undefined|NaN/.test(words), words);
      assert.ok(step.step >= 0 && step.step < 8);
      if (part.share !== undefined) {
        assert.equal(curveAt([part], ...at), part, "it is where it is shown");
        assert.ok(words.startsWith(`Block ${moment.block + 1}: `) && words.includes(formatShare(part.share)), words);
        const told = part.to === null ? "squares together" : part.to === part.from ? "itself" : squareOf(part.to);
        assert.ok(words.includes(told) && words.includes(squareOf(part.from)), words);
        continue;
      }
      const values = [...tokensAt(numbers, result, moment.depth)].slice(part.token * count, (part.token + 1) * count);
      const strongest = values.reduce((best, value, j) => (Math.abs(value) > Math.abs(values[best]) ? j : best), 0);
      const number = `strongest #${numbers.components[strongest] + 1}: ${formatNumber(values[strongest])}`;
      assert.ok(words.includes(`as ${numbers.width} numbers`) && words.includes(number), words);
      assert.ok(words.includes(squareOf(part.token)));
      const newest = moment.block - Number(beat.kind === "look");
      if (newest >= 0) assert.ok(words.includes(formatShare(attentionOf(numbers, result, newest)[part.token])), words);
    }
  }
});

/** A context that writes down what is called, in letters that are 0.6 of their size wide. */
function recorder() {
  const calls = /** @type {any[]} */ ([]);
  const context = /** @type {any} */ ({ font: "10px sans-serif", textAlign: "left" });
  const size = () => Number(context.font.match(/([\d.]+)px/)[1]);
  const note = (name, args) =>
    calls.push({
      ...{ name, size: size(), align: context.textAlign, alpha: context.globalAlpha },
      ...{ x: args.at(-2), y: args.at(-1), text: args[0] },
    });
  context.measureText = (text) => ({ width: 0.6 * size() * text.length });
  for (const name of ["fillText", "moveTo", "lineTo", "bezierCurveTo"]) context[name] = (...args) => note(name, args);
  context.stroke = () => calls.push({ name: "stroke", width: context.lineWidth });
  context.fillRect = () => calls.push({ name: "fillRect", alpha: context.globalAlpha });
  for (const name of ["beginPath", "fill", "arc", "setLineDash", "strokeText", "strokeRect"]) context[name] = () => {};
  return { context, calls };
}

const colours = new Proxy({}, { get: () => "#000" });

test("a name is whole, in letters that fit, on more lines only where there is room", () => {
  const names = [
    "5",
    "German shepherd",
    "suspension bridge",
    "Deutscher Sch\u00e4ferhund",
    "computer keyboard",
    "\u5fb7\u56fd\u7267\u7f8a\u72ac",
  ];
  for (const name of names)
    for (const width of [60, 80, 120, 200])
      for (const height of [20, 34, 60]) {
        const { context } = recorder();
        const { lines, letters } = fit(context, name, { width, height, size: 15 });
        assert.equal(lines.join(" "), name);
        assert.ok(lines.length === 1 || lines.length * letters <= height, `${name}: ${lines}`);
        const widest = Math.max(...lines.map((line) => context.measureText(line).width));
        assert.ok(widest <= width || letters === 8, `${name}: ${widest} in ${width}`);
      }
});

each("the picture says what is shown, inside it, at every size and moment", (one) => {
  const { result, numbers, film } = one;
  const own = Math.max(0, film.collector);
  const attention = numbers.attention.map((_, i) =>
    i % result.numTokens === own ? 0.8 : 0.2 / (result.numTokens - 1),
  );
  const answers = numbers.answers.map((_, i) => Number(i % numbers.classes.length === 0) * 0.99996);
  const long = numbers.labels.map(() => "German shepherd");
  const extreme = [numbers.labels, long].map((labels) => ({ ...numbers, attention, answers, labels }));
  for (const scene of [one, ...extreme.map((changed) => ({ ...one, numbers: changed }))])
    for (const size of SIZES)
      for (const [i, beat] of film.beats.entries()) {
        if (beat.kind === "cut") continue;
        const moment = momentOf(film, restOf(film, i));
        const layout = layoutOf(size, scene, levelsAt(moment, result));
        const { context, calls } = recorder();
        const on = { front: context, faces: context, colours, isDark: false };
        const born = beat.kind === "tokens" ? 0 : 1;
        paintCollector(on, layout, scene, moment, born);
        paintNames(on, layout, scene, born, 1);
        paintShares(on, layout, scene, moment);
        paintCaptions(on, layout, scene, moment);
        const texts = calls.filter(({ name, alpha }) => name === "fillText" && alpha !== 0);
        const boxes = texts.map(({ text, size: letters, align, x, y }) => {
          const width = 0.6 * letters * text.length;
          const left = align === "right" ? x - width : x;
          assert.ok(left >= -0.5 && left + width <= size[0] + 0.5, `${text}: ${left} to ${left + width} of ${size}`);
          assert.ok(y >= 0 && y <= size[1] - 6, `${text}: ${y} of ${size}`);
          return { text, left, right: left + width, top: y - 0.45 * letters, bottom: y + 0.45 * letters };
        });
        for (const [j, a] of boxes.entries())
          for (const b of boxes.slice(0, j)) {
            const isApart = a.left >= b.right || b.left >= a.right || a.top >= b.bottom || b.top >= a.bottom;
            assert.ok(isApart, `${a.text} over ${b.text} at ${size}, ${beat.kind} ${beat.block}`);
          }
        const said = texts.map(({ text }) => text).join(" ");
        assert.match(said, /each square as numbers/);
        assert.equal(said.includes(film.captions.stripes), beat.kind === "join", said);
        assert.equal(said.includes("squares look at each other"), beat.kind === "look", said);
        assert.equal(said.includes(film.captions.collect), beat.kind === "collect", said);
        if (beat.kind !== "collect") continue;
        assert.equal(/grey: the other \d+ squares together, /.test(said), result.numTokens > 40, said);
        if (film.collector >= 0 && scene !== one) assert.match(said, /looks at itself: 80/);
      }
});

each("the card is on the picture, not on the square that it explains, and on as little of a curve as it can", (one) => {
  const { result, film } = one;
  for (const size of SIZES.slice(0, 3))
    for (const [i, { kind }] of film.beats.entries()) {
      const moment = momentOf(film, restOf(film, i));
      const layout = layoutOf(size, one, levelsAt(moment, result));
      for (const { part, at } of partsAt(layout, one, moment)) {
        const [wide, high] = [264, part.points ? 90 : 130];
        const free = keptFree(layout, one, moment, part);
        const { left, top } = placeOfCard(size, [wide, high], free, at);
        assert.ok(left >= 0 && top >= 0 && left + wide <= size[0] && top + high <= size[1]);
        const covered = free[0].filter(([x, y]) => x > left && x < left + wide && y > top && y < top + high).length;
        assert.ok(covered <= (part.points ? 5 : 0), `${kind} at ${size}: ${covered} of ${JSON.stringify(part)}`);
      }
    }
});

test("the card is beside what was touched, and not on what was said after a block", () => {
  const at = (own, others) => placeOfCard([600, 400], [264, 100], [own, others], own[0]);
  const below = at([[300, 100]], []);
  assert.ok(Math.abs(below.left + 132 - 300) < 10 && below.top > 100 && below.top < 130);
  const answers = Array.from({ length: 30 }, (_, i) => [20 * i, 180]);
  const { top } = at([[300, 100]], answers);
  assert.ok(top > 180 || top + 100 < 180);
});

each("a thread leaves the square that looks and has its arrow at the one that is looked at", (one) => {
  const { result, numbers } = one;
  const layout = layoutOf(SIZES[0], one);
  const pairs = pairsOf(numbers, result, 0);
  if (!pairs.length) return;
  const { context, calls } = recorder();
  paintPairs({ faces: context, colours, isDark: false }, layout, one, 0, 1, 1);
  const starts = calls.filter(({ name }, i) => calls[i + 1]?.name === "bezierCurveTo" && name === "moveTo");
  const tips = calls.filter(({ name }, i) => calls[i + 1]?.name === "lineTo" && name === "moveTo");
  assert.equal(starts.length, pairs.length);
  for (const [i, { from, to }] of pairs.entries()) {
    assert.ok(Math.abs(starts[i].x - layout.cell(from).x) <= 3 && starts[i].y === layout.cell(from).bottom);
    assert.ok(Math.abs(tips[i].x - layout.cell(to).x) <= 3 && Math.abs(tips[i].y - layout.cell(to).bottom) < 1e-6);
  }
});

each("arrows are few and thin beside a square, so that they hide none, and their number is said", (one) => {
  const { result, numbers, film } = one;
  for (const size of SIZES)
    for (let block = 0; block < result.numBlocks; block++) {
      const pairs = pairsOf(numbers, result, block);
      if (!pairs.length) continue;
      const shares = numbers.shares.map(() => 0.9);
      const layout = layoutOf(size, one);
      const { context, calls } = recorder();
      const on = { faces: context, colours, isDark: false };
      paintPairs(on, layout, { ...one, numbers: { ...numbers, shares } }, block, 1, 1);
      const [inked] = calls.filter(({ name }) => name === "stroke").map(({ width }) => width - 3);
      assert.ok(pairs.length <= 12 && inked <= Math.max(0.8, 0.12 * layout.grid.side) + 1e-9, `${size}: ${inked}`);
    }
  const look = film.beats.find(({ kind }) => kind === "look");
  if (look) assert.match(look.words, new RegExp(`\\b${pairsOf(numbers, result, 0).length} strongest`));
});

each("stripes of many tokens are fainter", (one) => {
  const { result } = one;
  const { context, calls } = recorder();
  paintStrips({ front: context, colours }, layoutOf(SIZES[0], one), one, result.numBlocks, 1, 0);
  const strongest = Math.max(...calls.filter(({ alpha }) => alpha < 1).map(({ alpha }) => alpha));
  assertClose(strongest, result.numTokens < 40 ? 0.75 : 0.4, 1e-6);
});

each("the last sentence says what this film has shown", ({ film, query, result }) => {
  assert.equal(/followed the one in row \d+, column \d+/.test(film.summary), query !== null, film.summary);
  if (query !== null) assert.ok(!/collected|answer/.test(film.summary) && !film.isRead);
  assert.ok(film.beats.at(-1).spoken.endsWith(film.summary));
  assert.ok(film.summary.includes(String(result.numPatches - result.dropped.length)));
});

test("many tokens are as large as the box allows, and the threads fill what is left of it", () => {
  const least = { 49: [26, 24, 20, 14, 11], 100: [22, 19, 14, 10, 8], 144: [18, 15, 11, 8, 6.4] }; // CSS pixels, by size
  for (const [count, sides] of Object.entries(least)) {
    const numTokens = Number(count) + 1;
    const result = { numTokens, numBlocks: 6, hasClassToken: true, size: [120, 120], rows: 10, columns: 10 };
    const scene = { result, numbers: { components: Array(8).fill(0) }, film: { collector: 0 } };
    for (const [i, size] of SIZES.entries()) {
      for (let block = 0; block < 6; block++) {
        const moment = { beat: { kind: "collect" }, share: 1, block };
        const layout = layoutOf(size, scene, levelsAt(moment, result));
        assert.ok(layout.grid.side >= sides[i], `${count} at ${size}: ${layout.grid.side}`);
        assert.ok(layout.level(block) >= (layout.top + size[1]) / 2 - 20, `block ${block}: ${layout.level(block)}`);
        assert.ok(layout.level(block) + layout.full / 2 < size[1]);
      }
    }
  }
});
