// How the picture moves: a glide has its time, the squares follow the ink, and with reduced motion all is just there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createMotion } from "../../vit_demo/web/frontend/stage/motion.js";
import { paintThreads, placeOfBox } from "../../vit_demo/web/frontend/stage/paper.js";

const box = { left: 0.2, top: 0.1, side: 0.5 };
const wanted = (part = {}) => ({ seen: 0, box, dropped: new Set(), ...part });

/** Steps of 16 ms, from a time on, until nothing moves: all that was shown. */
function run(motion, next, start, still = false) {
  const shown = [];
  for (let now = start; shown.length < 200; now += 16) {
    shown.push({ now, ...motion.step(next, now, still) });
    if (!shown.at(-1).moves) return shown;
  }
  throw new Error("it never rests");
}

test("a change of verb glides for 300 ms, one way, and the first picture is just there", () => {
  const motion = createMotion();
  assert.deepEqual(
    [motion.step(wanted({ seen: 1 }), 0, false)].map(({ seen, moves }) => [seen, moves]),
    [[1, false]],
  );
  const shown = run(motion, wanted({ seen: 0 }), 1000);
  const levels = shown.map(({ seen }) => seen);
  assert.equal(levels[0], 1, "it starts where it was");
  assert.equal(levels.at(-1), 0);
  assert.ok(
    levels.every((level, i) => i === 0 || level <= levels[i - 1]),
    "it never turns back",
  );
  assert.ok(
    levels.some((level) => level > 0.2 && level < 0.8),
    "it is seen on its way",
  );
  const lasted = shown.at(-1).now - 1000;
  assert.ok(lasted >= 300 && lasted < 332, `${lasted} ms`);
});

test("a glide that is taken back returns from where it is", () => {
  const motion = createMotion();
  motion.step(wanted(), 0, false);
  motion.step(wanted({ seen: 1 }), 100, false);
  const there = motion.step(wanted({ seen: 1 }), 250, false).seen;
  assert.ok(there > 0 && there < 1);
  assert.equal(motion.step(wanted({ seen: 0 }), 250, false).seen, there);
});

test("a glide of a page that was busy goes on from where it was", () => {
  const motion = createMotion();
  motion.step(wanted(), 0, false);
  const levels = [100, 116, 900, 1700].map((now) => motion.step(wanted({ seen: 1 }), now, false).seen);
  assert.ok(levels[1] < 0.02, "it has just begun");
  for (const [i, level] of levels.entries()) assert.ok(!i || level - levels[i - 1] < 0.3, `${levels}`);
});

test("the squares follow the ink with each answer, also with the last, and never jump", () => {
  const motion = createMotion();
  motion.step(wanted(), 0, false);
  const next = { left: 0.4, top: 0.3, side: 0.3 };
  let [last, now] = [box, 0];
  for (let answer = 1; answer <= 12; answer++) {
    // An answer each 32 ms, which moves them there and back as those of a real stroke do.
    const place = answer % 2 ? next : box;
    for (const end = now + 32; now < end; ) {
      now += 16;
      const shown = motion.step(wanted({ box: place }), now, false);
      for (const [name, from] of Object.entries(last)) {
        assert.ok(Math.abs(shown.box[name] - from) <= 0.13 * Math.abs(next[name] - box[name]), name);
      }
      last = shown.box;
    }
  }
  const shown = run(motion, wanted({ box: next }), now + 16);
  assert.ok(shown.length > 12 && shown.length < 60, `${shown.length} steps`);
  assert.deepEqual(shown.at(-1).box, next, "they are where they belong at the end");
  assert.equal(motion.step(wanted({ box: null }), 4000, false).box, null, "a photo, and a new drawing, have none");
  assert.deepEqual(motion.step(wanted(), 4016, false).box, box, "and the first ones are just there");
  motion.step(wanted({ seen: 1 }), 4032, true);
  assert.deepEqual(motion.step(wanted({ seen: 1, box: next }), 4048, false).box, next, "as behind the picture");
});

test("the lines of the squares go while the squares move, and are back once they lie still or the pen is lifted", () => {
  for (const still of [false, true]) {
    const motion = createMotion();
    const step = (now, part) => motion.step(wanted(part), now, still);
    assert.equal(step(0, { live: true }).lines, 0, "the first squares of a drawing have none");
    let now = 0;
    const during = [];
    for (let answer = 1; answer <= 30; answer++) {
      const moved = { ...box, left: box.left + 0.02 * answer };
      for (const end = now + 32; now < end; now += 16) during.push(step(now, { live: true, box: moved }).lines);
    }
    assert.equal(Math.max(...during), 0, "they never flicker");
    const rest = { ...box, left: box.left + 0.6 };
    const rested = run(
      { step: (next, at) => motion.step(next, at, still) },
      wanted({ live: true, box: rest }),
      now + 16,
    );
    assert.ok(rested.at(-1).now - now > 250, "a short rest is none");
    assert.equal(rested.at(-1).lines, 1, "a pen that rests brings them back");
    const lines = rested.map((shown) => shown.lines);
    assert.ok(
      lines.every((value, i) => !i || value >= lines[i - 1]),
      "once",
    );
    let late = rested.at(-1);
    for (let at = late.now; at < rested.at(-1).now + 640; at += 16)
      late = step(at, { live: true, isLate: true, box: rest });
    assert.ok(late.lines < 0.01, "they are gone while an answer is late, though the squares lie still");
    const later = rested.at(-1).now + 700;
    step(later, { live: true, box });
    const lifted = run({ step: (next, at) => motion.step(next, at, still) }, wanted({ box }), later + 16);
    assert.equal(lifted.at(-1).lines, 1);
    if (still) assert.deepEqual([lifted.length, lifted[0].lines], [1, 1], "at once with reduced motion");
  }
});

test("a square that is rubbed out is lifted once, and one that is back lies still", () => {
  const motion = createMotion();
  motion.step(wanted({ seen: 1 }), 0, false);
  const first = motion.step(wanted({ seen: 1, dropped: new Set([5]) }), 16, false).lifted.get(5);
  assert.ok(first > 0 && first < 1);
  assert.equal(run(motion, wanted({ seen: 1, dropped: new Set([5]) }), 32).at(-1).lifted.size, 0);
  motion.step(wanted({ seen: 1, dropped: new Set([5, 6]) }), 900, false);
  assert.deepEqual([...motion.step(wanted({ seen: 1 }), 916, false).lifted.keys()], []);
});

test("with reduced motion everything is there with its first frame", () => {
  const motion = createMotion();
  motion.step(wanted(), 0, true);
  const next = { left: 0.4, top: 0.3, side: 0.3 };
  const shown = motion.step(wanted({ seen: 1, box: next, dropped: new Set([1]) }), 16, true);
  assert.deepEqual([shown.seen, shown.box, shown.lifted.size, shown.moves], [1, next, 0, false]);
});

test("the network's squares lie on the ink at first, and are the whole picture at last", () => {
  const width = 400;
  const paper = placeOfBox(box, 0, width);
  assert.deepEqual(paper.view, { left: -0, top: -0, side: width });
  assert.deepEqual(paper.place, { left: 80, top: 40, width: 200, height: 200 });
  const seen = placeOfBox(box, 1, width);
  assert.deepEqual(seen.place, { left: 0, top: 0, width, height: width });
  for (const share of [0, 0.3, 0.7, 1]) {
    const { view, place } = placeOfBox(box, share, width);
    for (const [at, from] of [
      ["left", view.left],
      ["top", view.top],
    ]) {
      assert.ok(Math.abs(from + box[at] * view.side - place[at]) < 1e-9, "ink and squares move as one");
    }
    assert.ok(Math.abs(box.side * view.side - place.width) < 1e-9);
  }
});

test("a square looks at all that it gives more than an even share, itself among them, by threads as thick as that", () => {
  const result = { rows: 4, columns: 4 };
  for (const own of [0.5, 0.02]) {
    const map = Float32Array.from({ length: 16 }, (_, patch) => ({ 5: own, 0: 0.3, 15: 0.2 })[patch] ?? 0.01);
    const lines = /** @type {any[]} */ ([]);
    const context = /** @type {any} */ ({ fill() {}, moveTo() {} });
    Object.assign(context, {
      beginPath: () => lines.push({}),
      arc: (x, y, radius) => Object.assign(lines.at(-1), { to: "itself", x, y, radius }),
      quadraticCurveTo: (_x, _y, x, y) => Object.assign(lines.at(-1), { to: `${x} ${y}` }),
      stroke: () => Object.assign(lines.at(-1), { width: context.lineWidth }),
    });
    paintThreads({ getContext: () => context }, [160, 160], result, 5, map, "#000");
    const threads = lines.filter(({ width }) => width);
    const places = ["20 20", ...(own > 0.1 ? ["itself"] : []), "140 140"];
    assert.deepEqual(
      threads.map(({ to }) => to),
      places,
    );
    const [loop] = threads.filter(({ to }) => to === "itself");
    if (!loop) continue;
    assert.equal(loop.width, Math.max(...threads.map(({ width }) => width)), "what it looks at most is the thickest");
    assert.ok(loop.x - loop.radius > 40 && loop.y - loop.radius > 40, "within its square");
  }
});
