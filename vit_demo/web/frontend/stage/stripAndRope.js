// @ts-check
// The line below the picture: what the network said over the length of a drawing, which leads back to any moment; or, while
// squares are rubbed out, the rope at which the two leading answers pull.

import { isNew, put, setText, variablesOf } from "../shared/dom.js";
import { currentLanguage, plain, translate } from "../shared/language.js";
import { fit, write } from "./film/labels.js";

const COLOURS = ["text", "dim", "track", "accent", "surface"];
const SURE = 0.2; // the probability from which a part of the strip has a colour
const NARROWEST = 16; // CSS pixels of a guess that is named
const MARGIN = 1.04; // the ink may grow by so much until the strip is drawn anew
const SHORTEST = 2; // paper sides of ink that fill the strip while one draws

/** `onScrub(index)` is called with the moment that a visitor leads to, or null for now. */
export function createStripAndRope(host, { onScrub }) {
  const [canvas, words] = [host.querySelector("canvas"), host.querySelector("p")];
  let line = /** @type {any} */ ({ kind: "none" });
  let size = [0, 0]; // of the canvas, in CSS pixels
  let isHeld = false;

  /** The length of ink that the whole strip stands for. */
  const fullLength = () => {
    const drawn = line.parts.at(-1)?.length ?? 0;
    return line.live ? Math.max(SHORTEST, MARGIN * drawn) : Math.max(drawn, 1e-6);
  };

  function lead(event) {
    if (line.kind !== "strip" || !line.parts.length || line.live) return;
    const box = canvas.getBoundingClientRect();
    const wanted = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * fullLength();
    const found = line.parts.findIndex(({ length }) => length >= wanted);
    onScrub(found < 0 ? null : found);
  }

  function leave() {
    isHeld = false;
    if (line.kind === "strip") onScrub(null); // though the moment may not be painted yet
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    isHeld = true;
    lead(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (isHeld || event.pointerType === "mouse") lead(event);
  });
  canvas.addEventListener("lostpointercapture", leave); // a handle that returns when it is let go
  canvas.addEventListener("pointerleave", () => isHeld || leave());
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    if (line.kind !== "strip" || !line.parts.length) return;
    const last = line.parts.length - 1;
    const at = line.at ?? last;
    const steps = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: last };
    if (event.key === "Escape") leave();
    else if (event.key in steps) onScrub(Math.max(0, steps[event.key]));
    else return;
    event.preventDefault();
  });

  new ResizeObserver((entries) => {
    const { width, height } = entries[entries.length - 1].contentRect;
    size = [width, height].map(Math.round);
    update(line);
  }).observe(canvas);

  function update(next) {
    line = next;
    if (!isNew(host, [line, size, devicePixelRatio, document.body.className, currentLanguage()])) return;
    put(host.dataset, { kind: line.kind });
    const isStrip = line.kind === "strip";
    setText(words, !isStrip ? (line.words ?? "") : line.parts.length ? "" : line.hint);
    // The names stand at the ends of the rope, too.
    if (line.kind === "rope" && words.scrollWidth > words.clientWidth) setText(words, line.short);
    const last = String(Math.max(0, (line.parts?.length ?? 0) - 1));
    const values = isStrip
      ? {
          ariaValueMin: "0",
          ariaValueMax: last,
          ariaValueNow: String(line.at ?? last),
          ariaValueText: translate(line.words),
        }
      : { ariaValueMin: null, ariaValueMax: null, ariaValueNow: null, ariaValueText: null };
    const role = isStrip ? "slider" : line.kind === "rope" ? "img" : "none";
    const ariaLabel = translate(isStrip ? line.hint : plain(line.words ?? ""));
    put(canvas, { role, ariaLabel, ...values, tabIndex: isStrip && line.parts.length > 1 ? 0 : -1 });
    paint();
  }

  function paint() {
    const [width, height] = size;
    const [wide, high] = [width, height].map((side) => Math.round(side * devicePixelRatio));
    if (!wide) return;
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    const context = canvas.getContext("2d");
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    const colours = variablesOf(host, COLOURS);
    context.font = "600 15px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    if (line.kind === "strip") paintStrip(context, width, height, line, fullLength(), colours);
    if (line.kind === "rope") paintRope(context, width, height, line, colours);
  }

  return { update };
}

/** Paler where it was unsure; a guess is named where it was surest. */
function paintStrip(context, width, height, { parts, guesses, at }, full, colours) {
  context.beginPath();
  context.roundRect(0, 0, width, height, 8);
  context.save();
  context.clip();
  context.fillStyle = colours.track;
  context.fillRect(0, 0, width, height);
  const scale = width / full;
  let from = 0;
  for (const { length, probability } of parts) {
    context.globalAlpha = 0.08 + 0.92 * Math.max(0, (probability - SURE) / (1 - SURE)) ** 1.6;
    context.fillStyle = colours.accent;
    context.fillRect(from * scale, 0, (length - from) * scale + 0.5, height);
    from = length;
  }
  context.globalAlpha = 1;
  const head = at === null ? null : parts[at].length * scale;
  if (head !== null) {
    context.globalAlpha = 0.62;
    context.fillStyle = colours.surface;
    context.fillRect(head, 0, width - head, height);
    context.globalAlpha = 1;
  }
  for (const [i, guess] of guesses.entries()) {
    const [left, right] = [guess.from * scale, guess.to * scale];
    context.fillStyle = colours.surface;
    if (i) context.fillRect(left - 1, 0, 2, height);
    const room = right - left;
    const name = fitted(context, guess.isSure ? guess.label : `${guess.label}?`, room);
    const half = context.measureText(name).width / 2 + 1;
    const x = Math.min(right - half, Math.max(left + half, guess.surest.at * scale));
    const isPale = guess.surest.probability < 0.66 || (head !== null && x > head);
    context.fillStyle = isPale ? colours.text : "#fff";
    if (room >= NARROWEST && name) context.fillText(name, x, height / 2 + 1);
  }
  if (head !== null) {
    context.fillStyle = colours.text;
    context.fillRect(Math.min(width - 4, Math.max(0, head - 2)), 0, 4, height);
  }
  context.restore();
}

/** A name if it fits. */
const fitted = (context, name, room) => (context.measureText(name).width <= room - 2 ? name : "");

/** A rope between two names, which are whole, with a needle over it; the middle, where both are as likely, has a tick. */
function paintRope(context, width, height, { left, right, place }, colours) {
  const room = { width: width / 3, height, size: width < 300 ? 13 : 15, weight: 600 };
  const ends = [left, right].map((name) => {
    const { lines } = fit(context, name, room);
    return { lines: lines.length, width: Math.max(...lines.map((line) => context.measureText(line).width)) };
  });
  const y = height - (ends.some(({ lines }) => lines > 1) ? height / 2 : 9);
  const [start, end] = [ends[0].width + 10, width - ends[1].width - 10];
  const knot = (start + end) / 2 - (place * (end - start - 16)) / 2;
  write(context, left, 0, y, { ...room, colour: place >= 0 ? colours.accent : colours.dim });
  write(context, right, width, y, { ...room, align: "right", colour: place < 0 ? colours.accent : colours.dim });
  context.lineCap = "round";
  for (const [from, to, isAhead] of [
    [start, knot, place >= 0],
    [knot, end, place < 0],
  ]) {
    context.strokeStyle = isAhead ? colours.accent : colours.dim;
    context.globalAlpha = isAhead ? 1 : 0.5;
    context.lineWidth = isAhead ? 3 : 2;
    context.beginPath();
    context.moveTo(from, y);
    context.lineTo(to, y);
    context.stroke();
  }
  context.globalAlpha = 1;
  context.fillStyle = colours.dim;
  context.fillRect((start + end) / 2 - 1, y - 6, 2, 12);
  context.fillStyle = colours.accent;
  context.beginPath();
  for (const [x, up] of [
    [0, 1],
    [-6, 11],
    [6, 11],
  ])
    context.lineTo(knot + x, y - up);
  context.fill();
}
