// The words and marks of the first screen: one rule of doubt, sentences that follow their numbers, one history.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./helpers.js";
import { changeOf, countOf, doubtOf, frameOf } from "../../vit_demo/web/frontend/stage/frame.js";
import { earlyOf } from "../../vit_demo/web/frontend/stage/result.js";

const SURE_FROM = 0.6; // of the tests: below, the server says that the network is unsure

const plain = (text) => text.replaceAll("\u00a0", " ").replaceAll("*", "");
const percentOf = (value) => (value >= 0.9995 ? ">99.9 %" : value < 0.001 ? "<0.1 %" : `${(100 * value).toFixed(1)} %`);
const combinations = (table) =>
  Object.entries(table).reduce(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  );

/** A result whose classes have these probabilities, in the order of the classes. */
function resultOf(probabilities, { dropped = [], silent = [], scores = "softmax", ...more } = {}) {
  const predictions = probabilities
    .map((probability, index) => ({ index, name: `${index}`, label: `${index}`, probability, scores }))
    .sort((one, other) => other.probability - one.probability);
  const isSure = !predictions.length || predictions[0].probability >= SURE_FROM;
  return {
    ...{ predictions, dropped, silent, confident: isSure, source: {}, pixelated: true, exampleDigit: undefined },
    ...{ numPatches: 16, rows: 4, columns: 4, numBlocks: 6, tokenOf: Int32Array.from({ length: 16 }, (_, i) => i) },
    ...more,
  };
}

/** Ten classes of which the seventh and the third have these probabilities; the others share what is left. */
function ten(seven, three = (1 - seven) / 10, more = {}) {
  const rest = (1 - seven - three) / 8;
  const all = Array(10).fill(rest);
  [all[7], all[3]] = [seven, three];
  return resultOf(all, more);
}

function given(part) {
  const { result, whole = result } = part;
  const choices = { pinned: null, hovered: null };
  const others = { live: false, moments: [], at: null, choices, map: null, isLooking: true, isOwn: true };
  return { verb: "draw", task: "digits", invites: false, found: null, ...others, ...part, whole };
}

const frame = (part) => frameOf(given(part));
const momentsOf = (...answers) => answers.map(([result, length, time]) => ({ result, length, time }));

const DOUBTS = [
  [0.9996, 0.0001, "sure"],
  [0.91, 0.05, "sure"],
  [0.6, 0.3, "sure"],
  [0.58, 0.3, "leans"],
  [0.5, 0.49, "leans"],
  [0.46, 0.33, "unsure"],
  [0.1, 0.1, "unsure"], // an X, or a line
];

const ENDS = { sure: "and says 7.", leans: "and leans to 7.", unsure: "and is unsure." };

test("the sentence of the mechanism leans to no answer that is less likely than all others together", () => {
  for (const [seven, three, doubt] of DOUBTS) {
    const dropped = [0, 1, 2];
    const found = { patches: dropped, dropped };
    const { mechanism } = frame({ verb: "rub", result: ten(seven, three, { dropped }), whole: ten(0.02, 0.95), found });
    const ends = { ...ENDS, unsure: seven > three ? "and 7 leads." : "and 0 leads." };
    assert.ok(plain(mechanism).endsWith(ends[doubt]), `${seven}, ${three}: ${mechanism}`);
  }
});

test("one rule of doubt holds for every word and mark, whatever one does", () => {
  const verbs = { draw: [0], rub: [0, 3] };
  for (const [seven, three, doubt] of DOUBTS) {
    const about = `${seven}, ${three}`;
    assert.equal(doubtOf(ten(seven, three)), doubt, about);
    for (const [verb, counts] of Object.entries(verbs)) {
      for (const count of counts) {
        const result = ten(seven, three, { dropped: Array.from({ length: count }, (_, patch) => patch) });
        const moments = momentsOf([result, 1, 0]);
        const { headline, mechanism, answers, line, doubt: said } = frame({ verb, result, whole: ten(0.95), moments });
        const where = `${about}, ${verb}, without ${count}`;
        assert.equal(said, doubt, where);
        const isSure = doubt === "sure";
        const text = plain(headline.text);
        const words = { sure: /says 7/i, leans: /leans to 7: /i, unsure: /is unsure: \d [\d.]+ %, \d [\d.]+ %\./i };
        for (const [kind, pattern] of Object.entries(words)) {
          assert.equal(pattern.test(text), kind === doubt, `${where}: ${text}`);
        }
        assert.ok(plain(mechanism).endsWith(ENDS[doubt]), `${where}: ${mechanism}`);
        assert.equal(answers.isUnsure, !isSure, where);
        const marks = line.kind === "rope" ? [line.left, line.right] : line.guesses.map((one) => one.isSure);
        if (line.kind === "strip") assert.deepEqual(marks, [isSure], where);
        else assert.equal(marks.filter((name) => name.endsWith("?")).length, isSure ? 0 : 1, `${where}: ${marks}`);
      }
    }
  }
});

test("no answer that is less likely than all others together is said, however sure the server is", () => {
  for (const task of ["digits", "photos"]) {
    for (const [seven, three, doubt] of [
      [0.43, 0.2, "unsure"],
      [0.4999, 0.1, "unsure"],
      [0.5, 0.2, "sure"],
    ]) {
      const result = ten(seven, three, { confident: true, pixelated: task === "digits" });
      assert.equal(doubtOf(result), doubt);
      const isSure = doubt === "sure";
      const drawn = frame({ task, result, moments: momentsOf([result, 1, 0]) });
      const whole = ten(0.945, 0.01, { pixelated: task === "digits" });
      const rubbed = frame({ verb: "rub", task, result: { ...result, dropped: [4] }, whole });
      for (const { headline, mechanism, answers } of [drawn, rubbed]) {
        assert.equal(/says|sees/.test(headline.text), isSure, headline.text);
        assert.equal(/ says /.test(mechanism), isSure, mechanism);
        assert.equal(answers.isUnsure, !isSure);
      }
      assert.equal([rubbed.line.left, rubbed.line.right].includes("7?"), !isSure);
      if (task === "digits") assert.equal(drawn.line.guesses[0].isSure, isSure);
      assert.equal(drawn.ask, isSure ? "folded" : "open");
    }
  }
});

test("of a class that is compared with another it is told why not that one, with both probabilities", () => {
  const result = resultOf([0.05, 0.6, 0.35], { pixelated: false });
  const compared = (label, against, part = {}) =>
    frame({
      task: "photos",
      result,
      isCompared: true,
      choices: { pinned: null, hovered: null, label, against },
      ...part,
    });
  const why = compared(2, 1);
  assert.equal(plain(why.headline.text), "Why not 2? It has 35.0 %, 1 60.0 %.");
  assert.equal(why.why, "2", "which can be taught");
  assert.equal(plain(compared(1, 2).headline.text), "1 comes first: 60.0 %; 2 has 35.0 %.");
  const before = resultOf([0.9, 0.05, 0.05]);
  const drawn = { task: "digits", moments: momentsOf([before, 1, 0], [result, 2, 400]) };
  assert.equal(compared(2, 1, drawn).headline.was, "", "and nothing before it");
  const others = [
    compared(2, 2),
    compared(2, 9),
    compared(null, 2),
    compared(2, 1, { isCompared: false }),
    compared(2, 1, { live: true }),
    compared(2, 1, { isFilm: true }),
    compared(2, 1, { verb: "rub", result: { ...result, dropped: [3] }, whole: result }),
  ];
  for (const { headline, why } of others) {
    assert.equal(why, null);
    assert.doesNotMatch(headline.text, /Why|comes first/);
  }
});

test("the moment at which another class leads is one, live and after, and is not called unsure", () => {
  const whole = ten(0.95);
  for (const [seven, three, doubt] of DOUBTS) {
    const other = ten(three, seven, { dropped: [1, 2] }); // now 3 leads
    const isOther = doubt === "sure";
    assert.equal(changeOf(other, whole), isOther ? "other" : "unsure");
    for (const given of [{}, { isTried: true }, { isTried: true, live: true }, { found: { dropped: [1, 2] } }]) {
      const { isTurned, isFlip, headline, answers, mechanism } = frame({
        verb: "rub",
        result: other,
        whole,
        ...given,
      });
      const isMoment = doubt !== "unsure" || Boolean(given.found);
      assert.deepEqual([isTurned, answers.isOther, answers.isUnsure], [isMoment, isMoment, !isMoment], `${seven}`);
      if (!isMoment) continue;
      assert.equal(isFlip, Boolean(given.isTried && !given.live));
      assert.doesNotMatch(plain(headline.text + mechanism), /unsure/);
      assert.equal(/ says? 3/.test(plain(headline.text)), isOther, headline.text);
      const says = { sure: "say", leans: "Without 2 squares it leans to 3: ", unsure: " leads: " }[doubt];
      assert.ok(plain(headline.text).includes(says), headline.text);
    }
    const guess = frame({ verb: "rub", result: other, whole: ten(0.3, 0.2), isTried: true });
    assert.ok(!guess.isTurned && !guess.isFlip, "what was a guess is not turned");
    assert.ok(!frame({ verb: "draw", result: other, whole }).isTurned);
  }
  const { line } = frame({ verb: "rub", result: ten(0.001, 0.96, { dropped: [1] }), whole });
  assert.deepEqual([line.left, line.right], ["7", "3"], "the answer before keeps its end, though others are likelier");
});

test("of a photo it says what it sees, by the same rule", () => {
  for (const [seven, three, doubt] of DOUBTS) {
    const result = ten(seven, three, { pixelated: false });
    const { headline, mechanism, answers } = frame({ result, task: "photos" });
    assert.equal(plain(headline.text) === "It sees: 7.", doubt === "sure", headline.text);
    assert.equal(/is unsure/.test(headline.text), doubt === "unsure", headline.text);
    assert.equal(/and is unsure\.$/.test(mechanism), doubt === "unsure", mechanism);
    assert.equal(answers.isUnsure, doubt !== "sure");
  }
});

test("what has no classes, or scores that are no probabilities, is not said to be sure or unsure", () => {
  assert.equal(doubtOf(resultOf([])), "none");
  const without = frame({ result: resultOf([]), verb: "draw" });
  assert.match(without.headline.text, /no classes/);
  assert.match(without.mechanism, /and has a list of numbers for each\.$/);
  for (const scores of ["sigmoid", "none"]) {
    const result = resultOf([0.3, 0.2], { scores });
    assert.equal(doubtOf(result), "sure", "no softmax says how sure it is of one among all");
    assert.equal(frame({ result, verb: "rub" }).line.kind, "none", "and none pulls at a rope");
  }
});

test("sentences about rubbed squares compare with the whole picture and follow its numbers", () => {
  const shares = [0.62, 0.76, 0.9004, 0.90041, 0.99, 0.9996];
  for (const { before, after, count } of combinations({ before: shares, after: shares, count: [1, 5] })) {
    const whole = ten(before);
    const result = ten(after, undefined, { dropped: Array.from({ length: count }, (_, patch) => patch) });
    assert.equal(countOf(result, whole), count);
    const said = plain(frame({ verb: "rub", result, whole }).headline.text);
    const squares = count === 1 ? "1 square" : `${count} squares`;
    const [one, two] = [before, after].map(percentOf);
    const surer = after > before ? "and is surer" : "but is less sure";
    const expected =
      one === two
        ? `Without ${squares} it still says 7: ${two}.`
        : `Without ${squares} it still says 7, ${surer}: ${one} became ${two}.`;
    assert.equal(said, expected);
  }
});

test("a picture that came without some squares is compared with nothing that was never there", () => {
  const whole = ten(0.9, undefined, { dropped: [0, 1] }); // a link's, whose squares cannot be restored
  const { headline, answers } = frame({ verb: "rub", result: whole, whole });
  assert.equal(plain(headline.text), "Without 2 squares it says 7: 90.0 %.");
  assert.ok(answers.rows.every(({ before }) => before === null));
});

test("the mechanism counts all squares, says those that are gone, and calls yours what you drew", () => {
  const table = { pixelated: [true, false], digit: [undefined, 7], isOwn: [true, false], seven: [0.9, 0.55, 0.3] };
  for (const { pixelated, digit, isOwn, seven } of combinations(table)) {
    for (const dropped of [[], [4], [1, 2, 3]]) {
      if (!pixelated && (digit !== undefined || isOwn)) continue;
      const result = ten(seven, undefined, { pixelated, exampleDigit: digit, dropped });
      const text = plain(frame({ verb: "draw", result, isOwn, task: pixelated ? "digits" : "photos" }).mechanism);
      assert.match(text, /^The network cuts .* into 16 squares[,;]/);
      assert.match(text, / look at each other 6 times, and /);
      assert.equal(
        /; 1 is gone\.|; 3 are gone\./.exec(text)?.[0] ?? "",
        ["", "; 1 is gone.", "", "; 3 are gone."][dropped.length],
      );
      const isYours = isOwn && digit === undefined && !dropped.length;
      assert.equal(/\byour\b/.test(text), isYours, text);
      const isNamed = /(?:your|this) 7 /.test(text);
      assert.equal(isNamed, pixelated && !dropped.length && (digit !== undefined || (isOwn && seven === 0.9)), text);
    }
  }
});

test("the bars are the network's own numbers; few classes keep their places, many are in the order of their share", () => {
  for (const count of [2, 10, 12, 13, 40]) {
    const shares = Array.from({ length: count }, (_, i) => ((i * 7) % count) + 1);
    const sum = shares.reduce((total, share) => total + share, 0);
    const result = resultOf(shares.map((share) => share / sum));
    const { isFixed, rows } = frame({ result }).answers;
    assert.equal(isFixed, count <= 12);
    const ordered = [...result.predictions.keys()];
    const indices = isFixed ? ordered : result.predictions.slice(0, 5).map(({ index }) => index);
    assert.deepEqual(
      rows.map(({ index }) => index),
      indices,
    );
    for (const { index, share, number, isFirst } of rows) {
      assert.equal(share, shares[index] / sum);
      assert.equal(plain(number), percentOf(share));
      assert.equal(isFirst, index === result.predictions[0].index);
    }
  }
  const { rows, isFixed } = frame({ result: resultOf([2.5, -1], { scores: "none" }) }).answers;
  assert.deepEqual([isFixed, ...rows.map(({ share }) => share)], [false, 0, 0], "no bar for what is no share");
});

test("every bar keeps its mark of before, and the rivals are the two that lead now", () => {
  const whole = ten(0.9, 0.05);
  const result = ten(0.2, 0.7, { dropped: [5] });
  const { rows } = frame({ verb: "rub", result, whole }).answers;
  for (const { index, before } of rows) {
    const { probability } = whole.predictions.find((one) => one.index === index);
    assert.deepEqual([before.share, plain(before.number)], [probability, percentOf(probability)]);
  }
  assert.deepEqual(
    rows.filter(({ isRival }) => isRival).map(({ index }) => index),
    [3, 7],
  );
  const drawn = frame({ verb: "draw", result: whole }).answers.rows;
  assert.ok(
    drawn.every(({ isRival, before }) => isRival && before === null),
    "who draws compares with nothing",
  );
});

test("the rope says how many times as likely, and its knot is the logarithm of that, nearer to who leads", () => {
  const whole = ten(0.9, 0.05);
  for (const [seven, three, times] of [
    [0.48, 0.48, "7 and 3 are equally likely|3 and 7 are equally likely"],
    [0.6, 0.3, "7 is 2.0 times as likely as 3"],
    [0.3, 0.6, "3 is 2.0 times as likely as 7"],
    [0.96, 0.004, "7 is 240 times as likely as 3"],
    [0.9, 0.00001, "7 is 90,000 times as likely as 3"],
    [0.99999999, 1e-9, "7 is over a million times as likely as 3"],
  ]) {
    const result = resultOf([0, 0, 0, three, 0, 0, 0, seven, 0, 0], { dropped: [5] });
    const { kind, left, right, place, words } = frame({ verb: "rub", result, whole }).line;
    assert.equal(kind, "rope");
    assert.ok(times.split("|").includes(plain(words)), words);
    assert.deepEqual(
      [left, right].map((name) => name.replace("?", "")),
      ["7", "3"],
      "the answer of before is left",
    );
    const wanted = Math.sign(seven - three) * Math.min(1, Math.abs(Math.log(seven / three)) / 12);
    assert.ok(Math.abs(place - wanted) < 1e-9, `${place} is not ${wanted}`);
  }
});

test("headline and strip tell one history: what stood for 250 ms, neighbours once, and the answer at the end", () => {
  const [one, seven, nine, unsure] = [
    resultOf([0, 0.95]),
    ten(0.9),
    resultOf([...Array(9).fill(0.01), 0.91]),
    ten(0.4),
  ];
  const cases = [
    [momentsOf([one, 1, 0], [seven, 2, 249], [nine, 3, 600]), ["7", "9"], "a first answer of 249 ms is none"],
    [momentsOf([one, 1, 0], [seven, 2, 250], [nine, 3, 600]), ["1", "7", "9"], "one of 250 ms is a guess"],
    [momentsOf([one, 1, 0], [seven, 2, 300], [one, 3, 310]), ["1"], "equal neighbours are one"],
    [momentsOf([one, 1, 0], [one, 2, 300], [seven, 3, 600], [nine, 4, 605]), ["1", "9"], "the last is the answer"],
    [momentsOf([unsure, 1, 0], [one, 2, 400]), ["7?", "1"], "an unsure one has its mark"],
    [momentsOf([seven, 1, 0], [unsure, 2, 400]), ["7?"], "the last segment is as sure as the answer is"],
  ];
  for (const [moments, expected, why] of cases) {
    const { result } = moments.at(-1);
    const { headline, line } = frame({ moments, result });
    const names = line.guesses.map(({ label, isSure }) => (isSure ? label : `${label}?`));
    assert.deepEqual(names, expected, why);
    assert.equal(line.guesses.at(-1).index, result.predictions[0].index, why);
    const was = expected.slice(0, -1);
    assert.equal(headline.was, was.length ? `${was.join(" … ")} …` : "", why);
    assert.match(headline.text, was.length ? /^it / : /^It /, "a sentence begins once");
    assert.deepEqual(
      line.parts.map(({ probability }) => probability),
      moments.map((moment) => moment.result.predictions[0].probability),
    );
  }
});

test("the headline tells at most the last three guesses, and none of a moment that is looked at", () => {
  const moments = momentsOf(
    ...[1, 2, 3, 4, 5].map((digit, i) => [
      resultOf(Array.from({ length: 10 }, (_, k) => (k === digit ? 0.91 : 0.01))),
      i + 1,
      400 * i,
    ]),
  );
  const { result } = moments.at(-1);
  assert.equal(frame({ moments, result }).headline.was, "2 … 3 … 4 …");
  for (const part of [{ dropped: [1] }, { silent: [[0, 1]] }]) {
    assert.equal(frame({ moments, result: { ...result, ...part } }).headline.was, "", "another sentence stands there");
  }
  const back = frame({ moments, at: 1, result: moments[1].result });
  assert.deepEqual([back.headline.was, plain(back.headline.text), back.headline.next], ["", "It says 2.", ""]);
  assert.equal(plain(back.line.words), "2, 91.0 %");
});

test("what one can do next is said at rest alone, of the page's own digit and of the verb", () => {
  const result = ten(0.95);
  const next = (part) => plain(frame({ result, ...part }).headline.next);
  assert.equal(next({ invites: true }), "Now you: draw a digit.");
  assert.equal(next({ invites: true, task: "photos" }), "", "a photo is no digit");
  assert.equal(next({ invites: false }), "");
  assert.equal(next({ invites: true, live: true }), "");
  assert.equal(next({ invites: true, at: 0, moments: momentsOf([result, 1, 0]) }), "");
  const many = Array.from({ length: 10 }, (_, patch) => patch);
  const rub = (part, dropped = [], seven = 0.95) =>
    next({ verb: "rub", whole: result, result: ten(seven, undefined, { dropped }), ...part });
  assert.equal(rub({}), "Can you make it say something else?");
  assert.equal(rub({ whole: ten(0.3) }, [], 0.3), "", "it says nothing yet");
  assert.equal(rub({}, many), "Let it search?");
  assert.equal(rub({}, many, 0.4), "", "an unsure answer is no defeat");
  assert.equal(rub({}, [1]), "");
  const found = { patches: [1, 2], dropped: [1, 2] };
  assert.equal(rub({ found: { ...found, is_minimal: true } }, [1, 2], 0.01), "No fewer are known.");
  assert.equal(rub({ found: { ...found, is_minimal: false } }, [1, 2], 0.01), "Fewer may do.");
  assert.equal(rub({ found: { ...found, is_minimal: true } }, [1], 0.9), "", "other squares are out now");
  const soFar = (patches) => ({ patches, dropped: patches, isSoFar: true });
  const looks = "Looking for the fewest squares without which it says something else …";
  const asked = { result, patch: null };
  for (const part of [{}, { guess: asked }]) assert.equal(rub({ found: soFar([]), ...part }), looks, "at once");
  assert.equal(rub({ found: soFar([1, 2, 5]) }, [1, 2, 5], 0.01), "The fewest so far: 3. Looking for fewer …");
  assert.equal(rub({ found: soFar([1]) }, [1], 0.01), "", "fewer than one are none");
  const one = { patches: [1], dropped: [1], is_minimal: true };
  assert.equal(rub({ found: one }, [1], 0.4), "", "fewer than one are none");
  assert.equal(rub({ found: { patches: null } }), "It says 7 in all that was tried, down to every single last square.");
  assert.equal(rub({ whole: resultOf([1]), result: resultOf([1]) }), "", "one class cannot become another");
});

test("an answer that comes back is said to be again what it was", () => {
  const whole = ten(0.95);
  for (const [seven, three, doubt] of DOUBTS) {
    for (const wasTurned of [false, true]) {
      const result = ten(seven, three, { dropped: [1, 2, 3] });
      const text = plain(frame({ verb: "rub", result, whole, wasTurned }).headline.text);
      const isBack = wasTurned && doubt !== "unsure";
      assert.equal(text === `Without 3 squares it is 7 again: ${percentOf(seven)}.`, isBack, text);
    }
  }
  const other = frame({ verb: "rub", result: ten(0.02, 0.9, { dropped: [1] }), whole, wasTurned: true });
  assert.doesNotMatch(other.headline.text, /again/);
});

test("once a drawing has changed its mind, the strip that leads back is told of until it was led along", () => {
  const moments = momentsOf([resultOf([0, 0.95]), 1, 0], [ten(0.9), 2, 400]);
  const { result } = moments[1];
  const next = (part) => frame({ moments, result, ...part }).headline.next;
  assert.equal(next({}), "Slide back along the strip below.");
  for (const part of [
    { isLed: true },
    { result: ten(0.4, 0.3) }, // a long headline, beside which it would take the place of the sentence below
    { result: ten(0.9, 0.02, { dropped: [4] }), whole: result }, // the line says that instead
    { live: true },
    { isOwn: false },
    { moments: moments.slice(1) },
    { verb: "look" },
  ]) {
    assert.doesNotMatch(next(part), /strip/);
  }
});

test("who changes the answer is told with how many squares, and what to try next", () => {
  const whole = ten(0.95);
  const flip = (part, dropped = [1, 2, 3], one = ten(0.02, 0.9, { dropped })) =>
    frame({ verb: "rub", result: one, whole, isTried: true, best: null, ...part });
  const said = (...given) =>
    plain(
      Object.values(flip(...given).headline)
        .join(" ")
        .trim(),
    );
  const found = { patches: [1, 2], dropped: [1, 2], is_minimal: true };
  assert.equal(said({}), "You made it say 3 by rubbing out 3 squares. Can you do it with fewer?");
  assert.equal(said({}, [4]), "You made it say 3 by rubbing out 1 square. Can you make it say 0?");
  assert.equal(said({ best: 3 }), "You made it say 3 by rubbing out 3 squares. Can you do it with fewer?");
  assert.equal(said({ best: 2 }), "You made it say 3 by rubbing out 3 squares. Your best: 2.");
  assert.equal(said({ best: 2, found }), "You made it say 3 by rubbing out 3 squares. The fewest known: 2.");
  const last = "You made it say 3 by rubbing out 2 squares. No fewer are known. Can you make it say 0?";
  assert.equal(said({ found }, [1, 3]), last);
  const two = (part, dropped) => {
    const [one, other] = [
      [0.1, 0.9, { dropped }],
      [0.95, 0.05],
    ];
    return said(
      { whole: resultOf([other[0], other[1]]), ...part },
      dropped,
      resultOf([one[0], one[1]], { dropped, confident: true }),
    );
  };
  for (const [part, dropped] of [
    [{ found }, [1, 3]],
    [{}, [1]],
    [{ found: { ...found, is_minimal: false } }, [1]],
  ]) {
    assert.doesNotMatch(
      two(part, dropped),
      /fewer\?/,
      "with two classes, too, it is never asked where none is possible",
    );
  }
  assert.match(two({ found }, [1, 3]), /No fewer are known\.$/);
  assert.match(two({}, [1, 3]), /fewer\?$/);
  const photo = ten(0.02, 0.9, { dropped: [1, 2, 3], pixelated: false });
  assert.equal(said({}, [], photo), "You made it say 3 by rubbing out 3 squares. Can you do it with fewer?");
  assert.match(
    plain(frame({ verb: "rub", result: whole, beat: 2 }).headline.next),
    /^Someone needed 2 squares .* You\?$/,
  );
  for (const beat of [16, 10_000]) {
    assert.equal(frame({ verb: "rub", result: whole, beat }).headline.next, "Can you make it say something else?");
  }
  for (const [why, part, dropped, one] of [
    ["a link", { isTried: false }],
    ["the search", { found }, [1, 2]],
    ["another verb", { verb: "look" }],
    ["an unsure answer", {}, [], ten(0.3, 0.4, { dropped: [1, 2, 3] })],
    ["the same answer", {}, [], ten(0.9, 0.05, { dropped: [1, 2, 3] })],
    ["nothing", {}, [], whole],
  ]) {
    assert.ok(!flip(part, dropped, one).isFlip && !said(part, dropped, one).includes("You made"), why);
  }
});

test("a square is named by its place, and what it looks at is what the map is strongest at", () => {
  const result = ten(0.9);
  const map = (strongest) => Float32Array.from({ length: 16 }, (_, patch) => (patch === strongest ? 0.5 : 0.03));
  const says = (part) => plain(frame({ verb: "look", result, ...part }).headline.text);
  const from = (pinned, hovered = null) => ({ choices: { pinned, hovered } });
  const next = (part) => frame({ verb: "look", result, ...part }).headline.next;
  assert.deepEqual([says({}), next({})], ["It says 7.", "Choose a square: what does it look at?"]);
  assert.equal(says({ ...from(6), map: map(9) }), "Row 2, column 3 looks at row 3, column 2 most.");
  assert.equal(says({ ...from(null, 6), map: map(6) }), "Row 2, column 3 looks at itself most.");
  assert.equal(says({ ...from(6), map: null }), "Row 2, column 3 …", "nothing is said of a map that is not there");
  assert.equal(next({ isLooking: false, ...from(6) }), "Choose a square to read its value.");
  const gone = ten(0.9, undefined, { tokenOf: Int32Array.from({ length: 16 }, () => -1) });
  assert.equal(
    frame({ verb: "look", result: gone, ...from(6) }).headline.next,
    "Choose a square: what does it look at?",
  );
});

test("without a result the first screen invites, and shows neither answer nor line", () => {
  for (const [task, words] of [
    ["digits", /^Draw a digit/],
    ["photos", /^Choose a photo/],
  ]) {
    const { headline, mechanism, answers, line } = frameOf({ ...given({ result: null }), whole: null, task });
    assert.match(headline.text, words);
    assert.deepEqual([headline.was, headline.next, mechanism, answers], ["", "", "", null]);
    assert.equal(line.kind, task === "digits" ? "strip" : "none");
  }
});

test("beside the button that brings squares back, the line says that they are out", () => {
  const [result, whole] = [ten(0.9, 0.02, { dropped: [4, 5] }), ten(0.9)];
  const line = (part) => frame({ result, whole, ...part }).line;
  for (const verb of ["draw", "look"]) {
    assert.deepEqual(line({ verb }), { kind: "none", words: "2 squares are out" });
    assert.equal(line({ verb, whole: result }).words === "2 squares are out", false, "none can be had back");
  }
  assert.equal(line({ verb: "rub" }).kind, "rope");
  assert.equal(line({ verb: "draw", live: result }).kind, "strip", "the next drawing is whole");
});

test("the early answer of a block is its most likely class", () => {
  const classes = 10;
  const early = Float32Array.from({ length: 7 * classes }, (_, i) => ((i * 37) % 101) / 101);
  const found = earlyOf(ten(0.9, undefined, { early }));
  for (let block = 0; block < 6; block++) {
    const shares = [...early.slice((block + 1) * classes, (block + 2) * classes)];
    const best = Math.max(...shares);
    assert.deepEqual([found[block].label, found[block].probability], [`${shares.indexOf(best)}`, best]);
  }
  assert.equal(found.length, 6);
  assert.equal(earlyOf(ten(0.9)), null, "of many classes they are asked for");
});

test("what it is is asked below each answer that is unsure, and behind a word below each other", () => {
  for (const [seven, three, doubt] of DOUBTS) {
    assert.equal(frame({ result: ten(seven, three) }).ask, doubt === "sure" ? "folded" : "open", `${seven}`);
  }
  assert.equal(frame({ result: resultOf([]) }).ask, "open", "a network without classes");
  const without = ten(0.2, 0.1, { dropped: [3] });
  const never = [{ live: true }, { at: 0 }, { isFilm: true }, { result: null }, { result: without, whole: ten(0.9) }];
  for (const part of never)
    assert.equal(frame({ result: ten(0.2), ...part }).ask, "none", JSON.stringify(Object.keys(part)));
});

test("a network that was taught asks for its first class, until the visitor has drawn", () => {
  const next = (part) => frame({ result: ten(0.9), isOwn: false, taught: "house", ...part }).headline;
  assert.equal(next({}).next, "Now you: draw me “house”.");
  assert.equal(next({ task: "photos" }).next, "Now you: show me “house”.");
  for (const part of [{ isOwn: true }, { taught: null }, { verb: "rub" }])
    assert.doesNotMatch(next(part).next, /draw me/);
  assert.equal(next({ result: null }).text, "Now you: draw me “house”.", "not a digit");
});

test("a square is guessed, and is right or wrong; what each leaves is told, and what to do next", () => {
  const whole = ten(0.9);
  const rub = (part) => frame({ verb: "rub", result: whole, ...part });
  assert.equal(rub({}).guess, "offer");
  const unsure = { result: ten(0.4) };
  const never = [unsure, { verb: "draw" }, { live: true }, { found: { patches: [1] } }];
  for (const part of never) assert.equal(rub(part).guess, "none", JSON.stringify(part));
  assert.equal(rub({ result: resultOf([0.9, 0.1], { scores: "sigmoid" }) }).guess, "none");
  assert.equal(rub({ result: ten(0.9, 0.02, { dropped: [4] }), whole }).guess, "none");

  const losses = (most) => Float32Array.from({ length: 16 }, (_, i) => (i === 6 ? Math.log(most) : -0.01 * (i - 2)));
  const marked = (patch, most) => rub({ guess: { patch, losses: losses(most) } });
  const asked = marked(null, 1.1);
  assert.deepEqual([asked.guess, asked.headline.next], ["asked", "Guess: which square does it need most? Mark it."]);
  assert.deepEqual(
    [rub({ guess: { patch: null, losses: null } })].map(({ guess, headline }) => [guess, headline.next]),
    [["awaited", ""]],
  );
  const on = ["told", "Can you make it say something else?"];
  const few = ["several", "Rub out the few that decide."];
  for (const [patch, most, text, [state, next]] of /** @type {any[]} */ ([
    [6, 2, "Right: without row 2, column 3, 7 keeps only 45.0 %.", on],
    [0, 2, "Wrong: without yours, 7 keeps 88.2 %; without row 2, column 3 only 45.0 %.", on],
    [2, 1.15, "Wrong: without yours, 7 keeps 90.0 %; without row 2, column 3 only 78.3 %.", on],
    [6, 1.1, "Right: it needs row 2, column 3 most, but still says 7 without it: 81.8 %.", few],
    [0, 1.1, "a little less surely: 88.2 %. It needs row 2, column 3 most: 81.8 % without it.", few],
    [2, 1.1, "it still says 7, as surely: 90.0 %. It needs row 2, column 3 most: 81.8 % without it.", few],
    [9, 1.1, "a little more surely: 96.5 %. It needs row 2, column 3 most: 81.8 % without it.", few],
  ])) {
    const { guess, headline } = marked(patch, most);
    assert.deepEqual([guess, headline.next], [state, next], text);
    assert.ok(plain(headline.text).endsWith(text), plain(headline.text));
  }
  const hardly = rub({
    guess: { patch: 2, losses: Float32Array.from({ length: 16 }, (_, i) => (i === 6 ? 1e-5 : 0)) },
  });
  assert.ok(plain(hardly.headline.text).endsWith("needs row 2, column 3 most, but alone that hardly counts."));
  const half = ten(0.52, 0.05, { confident: true });
  const least = frame({ verb: "rub", result: half, guess: { patch: 0, losses: losses(1.08) } });
  assert.equal(least.guess, "told", "another might lead with what is left");
});
