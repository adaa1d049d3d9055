// @ts-check
// What moves on the picture: how far the paper has become what the network gets, where its squares lie on the paper, and the
// squares that are being rubbed out. Numbers never move: what is written is what the network gave.

const GLIDE = 300; // milliseconds of a change of verb
const LONGEST = 50; // milliseconds of one step: a page that was busy goes on from where it was, and jumps nowhere
const FOLLOW = 120; // milliseconds in which two thirds of a distance are gone
const LIFT = 110; // the same of a square that is rubbed out
const NEAR = 0.002; // what is this close is there
const FADE = 90; // milliseconds in which two thirds of the squares' lines come or go
const REST = 300; // milliseconds for which squares must lie still while one draws, until their lines come back
const SLIGHT = 0.01; // of the paper's side: what is as close as this seems to lie still

let still = /** @type {MediaQueryList | null} */ (null);

export function isStill() {
  still ??= matchMedia("(prefers-reduced-motion: reduce)");
  return still.matches;
}

const ease = (/** @type {number} */ share) => (1 - Math.cos(Math.PI * share)) / 2;

/**
 * Keeps what is shown on its way to what is wanted: `seen` is 0 for the paper and 1 for the network's picture, `box` is where
 * the network's squares lie, {left, top, side} as shares of the paper, `dropped` are patches, and `live` says that the ink
 * still grows, `isLate` that it has grown since the squares were placed. `step(wanted, now)` returns what is to be shown at a
 * time in milliseconds: the same, with `lines` from 0, while the squares move, to 1 for all of their lines, `lifted` from a
 * patch to how far it is away, and whether it `moves`.
 */
export function createMotion() {
  let glide = { from: 0, to: /** @type {number | null} */ (null), passed: 0 };
  let [seen, last] = [0, 0];
  let [lines, moved] = [1, Number.NEGATIVE_INFINITY]; // how much of the lines is seen, and when the squares moved last
  let box = /** @type {any} */ (null);
  let before = new Set();
  const lifted = new Map();

  function step(wanted, now, still = isStill()) {
    const passed = Math.min(LONGEST, now - last);
    last = now;
    if (wanted.seen === glide.to) glide.passed += passed;
    else glide = { from: glide.to === null || still ? wanted.seen : seen, to: wanted.seen, passed: 0 };
    const share = Math.min(1, glide.passed / GLIDE);
    seen = share < 1 ? glide.from + (wanted.seen - glide.from) * ease(share) : wanted.seen;
    let moves = seen !== wanted.seen;
    const follow = (from, to, pace) => {
      const next = still || Math.abs(to - from) < NEAR ? to : from + (to - from) * (1 - Math.exp(-passed / pace));
      if (next !== to) moves = true;
      return next;
    };
    const names = Object.keys((wanted.box && box) ?? {});
    const isOff = seen < 1 && names.some((name) => Math.abs(wanted.box[name] - box[name]) > SLIGHT);
    if (isOff || !box || wanted.isLate) moved = now;
    const isCalm = wanted.live && wanted.box ? now - moved > REST : still || !isOff;
    lines = box && wanted.box ? follow(lines, Number(isCalm), FADE) : Number(isCalm);
    if (!isCalm) moves = true;
    if (!box || !wanted.box || seen === 1) ({ box } = wanted);
    else
      box = Object.fromEntries(Object.entries(wanted.box).map(([name, to]) => [name, follow(box[name], to, FOLLOW)]));
    for (const patch of wanted.dropped) if (!before.has(patch)) lifted.set(patch, 0);
    for (const [patch, away] of lifted) {
      const next = follow(away, 1, LIFT);
      if (next === 1 || !wanted.dropped.has(patch)) lifted.delete(patch);
      else lifted.set(patch, next);
    }
    before = wanted.dropped;
    return { seen, box, lines, lifted, moves };
  }

  return { step };
}
