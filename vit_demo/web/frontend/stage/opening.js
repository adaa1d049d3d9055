// @ts-check
// The first ten seconds: a pencil writes the example digit, and the network answers while it does. Whatever a visitor presses
// ends it; after a link, on a reload and with reduced motion the picture is just there.

import { sketch } from "../pad/sketch.js";
import { cutStrokes, inkLength } from "../pad/strokes.js";
import { documentEvents } from "../shared/dom.js";
import { isStill } from "./motion.js";

const BEFORE = 500; // milliseconds until the pencil begins
const WRITING = 2100;
const AFTER = 350;

/** Whether the page was opened as it is, by a visitor who likes motion. */
function isWelcome() {
  const [navigation] = /** @type {any[]} */ (performance.getEntriesByType("navigation"));
  return !location.hash && navigation?.type === "navigate" && !isStill();
}

/**
 * Writes the digit on the paper, if that is welcome. `onBegin()` is called before the first stroke, `onEnd(isWhole)` at the end,
 * with whether the digit was written to its end.
 */
export function playOpening(host, { onBegin, onEnd }) {
  const pencil = host.querySelector(".pencil");
  const strokes = sketch.strokes();
  if (!isWelcome() || !strokes.length) return;
  const total = inkLength(strokes);
  let isOver = false;

  function end(isWhole) {
    if (isOver) return;
    isOver = true;
    pencil.style.opacity = 0;
    sketch.write(null);
    onEnd(isWhole);
  }

  const listen = documentEvents(host);
  for (const name of ["pointerdown", "keydown"]) listen(name, () => end(false));
  onBegin();
  sketch.write([]);
  pencil.removeAttribute("hidden");
  const start = performance.now() + BEFORE;

  function write(now) {
    if (isOver) return;
    const share = Math.min(1, Math.max(0, now - start) / WRITING);
    const eased = share < 0.5 ? 2 * share * share : 1 - (2 - 2 * share) ** 2 / 2;
    const written = cutStrokes(strokes, (total * (share + eased)) / 2);
    const [x, y] = (written.at(-1) ?? strokes[0]).points.at(written.length ? -1 : 0);
    const side = pencil.parentElement.clientWidth;
    pencil.style.transform = `translate(${x * side}px, ${y * side}px)`;
    if (written.length) sketch.write(written);
    if (share < 1) requestAnimationFrame(write);
    else setTimeout(() => end(true), AFTER);
  }

  requestAnimationFrame(write);
}
