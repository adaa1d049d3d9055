// @ts-check
// Paints a moment of a film. What is shown of the picture has a canvas of its own, because a dark theme turns its lightness.

import { make } from "../../shared/dom.js";
import { patchBox } from "../../shared/geometry.js";
import { formatDecimals } from "../../shared/language.js";
import { paintResult } from "../picture.js";
import { arrowsOf, boxBetween, clamp, ease } from "./curves.js";
import { fit } from "./labels.js";
import { pictureAt } from "./layout.js";
import { paintCaptions, paintNames, paintShares } from "./names.js";
import { attentionOf, MANY, tokensAt } from "./plan.js";
import { paintBundle, paintCollector, paintLine } from "./threads.js";

const RISE = 14; // CSS pixels of the arc on which a square flies
const OPACITY = 0.85;
const [STRONG, FAINT] = [0.75, 0.4]; // opacity of the strips' strongest colours, and of those of many tokens
const INK = "#17181c";

const pictures = new WeakMap(); // numbers -> canvases of the picture under the attention of each block

/** The picture under what the film's token attends to in a block; without colours before the first. */
function pictureOf({ result, numbers, film }, block) {
  const known = pictures.get(numbers) ?? pictures.set(numbers, new Map()).get(numbers);
  if (known.has(block)) return known.get(block);
  const size = result.size.map((side) => (side * 448) / Math.max(...result.size));
  const canvas = make("canvas", { width: Math.round(size[0]), height: Math.round(size[1]) });
  const mapOf = (each) => {
    const attention = attentionOf(numbers, result, each);
    return Float32Array.from(result.tokenOf, (token) => (token < 0 ? 0 : attention[token]));
  };
  const map = block < 0 ? null : mapOf(block);
  paintResult(canvas, size, result, {
    ...{ map, style: { end: endOf(numbers, result, film) }, opacity: OPACITY, hasGrid: false },
    dropped: new Set(result.dropped),
  });
  known.set(block, canvas);
  return canvas;
}

/** The largest attention to a square in any block. */
function endOf(numbers, result, { numPrefix }) {
  let end = 1e-9;
  for (const [i, share] of numbers.attention.entries())
    if (i % result.numTokens >= numPrefix) end = Math.max(end, share);
  return end;
}

/** The largest number of each component, by which its colour is as strong as it can be. */
function peaksOf({ components, tokens }) {
  const peaks = components.map(() => 1e-9);
  for (const [i, value] of tokens.entries())
    peaks[i % peaks.length] = Math.max(peaks[i % peaks.length], Math.abs(value));
  return peaks;
}

/**
 * Paints a moment. `scene` is {result, numbers, film}; `on` is {front, faces, colours, isDark}: the contexts of the two canvases,
 * or one context twice, and `target` [x, y] is where the answer stands, or null.
 */
export function paintMoment(on, layout, scene, moment, target = /** @type {any} */ (null)) {
  const { beat, share, block, depth, part } = moment;
  const kind = beat.kind;
  const isEnd = kind === "read" || kind === "end";
  const flown = kind === "cut" ? 0 : kind === "tokens" ? share : 1;
  const gone = kind === "join" ? clamp(share / 0.6) : block < 0 ? 0 : 1;
  paintFaces(on, layout, scene, kind === "cut" ? share : 1, flown, gone, depth - 1, part?.token);
  if (kind === "cut") return;
  const born = kind === "tokens" ? 0 : kind === "join" ? ease(share / 0.35) : 1;
  const levels = block < 0 ? 0 : block + Number(kind !== "look");
  const end = endOf(scene.numbers, scene.result, scene.film);
  for (let b = 0; b < levels; b++) {
    const isNow = b === block && kind === "collect";
    const grown = isNow ? ease((share - 0.14) / 0.4) : 1; // once the arrows are gone
    paintBundle(on, layout, scene, b, {
      grown,
      end,
      alpha: isNow ? 1 : isEnd ? 0.8 : (on.isDark ? 0.5 : 0.36) * (kind === "look" ? 0.5 : 1), // arrows lie over them
      part,
    });
  }
  const looks = kind === "look" ? 1 : kind === "collect" ? 1 - ease(share / 0.14) : 0;
  const drawn = kind === "look" ? ease(share / 0.5) : 1;
  if (looks) paintPairs(on, layout, scene, block, drawn, looks, part);
  const isNew = kind === "collect" && depth > block ? 1 - clamp((share - 0.7) / 0.25) : 0;
  const listed = kind === "tokens" ? ease((share - 0.78) / 0.2) : 1;
  paintStrips(on, layout, scene, depth, listed, isNew);
  paintCollector(on, layout, scene, moment, born);
  paintNames(on, layout, scene, born, listed);
  paintShares(on, layout, scene, moment);
  paintCaptions(on, layout, scene, moment);
  if (isEnd && target && scene.film.isRead)
    paintLine(on, layout, scene, target, kind === "read" ? ease(share / 0.6) : 1);
}

/** The picture, and its squares on their way to their tokens. */
function paintFaces({ faces, colours }, layout, scene, cut, flown, gone, block, touched) {
  const { result } = scene;
  const source = pictureOf(scene, block);
  const seen = pictureAt(layout, flown, gone);
  faces.imageSmoothingEnabled = true;
  faces.drawImage(source, seen.left, seen.top, seen.width, seen.height);
  const gap = flown ? 0 : 5 * ease(cut / 0.3);
  faces.strokeStyle = colours.paper;
  if (gap) {
    faces.lineWidth = gap;
    faces.beginPath();
    for (let i = 1; i < result.columns; i++) {
      const x = seen.left + (i * seen.width) / result.columns;
      faces.moveTo(x, seen.top);
      faces.lineTo(x, seen.top + seen.height);
    }
    for (let i = 1; i < result.rows; i++) {
      const y = seen.top + (i * seen.height) / result.rows;
      faces.moveTo(seen.left, y);
      faces.lineTo(seen.left + seen.width, y);
    }
    faces.stroke();
  }
  if (!flown) return;
  const { numPrefix, collector } = scene.film;
  const inSource = { left: 0, top: 0, width: source.width, height: source.height };
  const { side } = layout.grid;
  function paintFace(patch, cell, way, edge) {
    const place = boxBetween(
      patchBox(patch, seen, result),
      { left: cell.x - side / 2, top: cell.y, width: side, height: side },
      way,
    );
    const part = patchBox(patch, inSource, result);
    const top = place.top - RISE * Math.sin(Math.PI * way);
    faces.drawImage(source, part.left, part.top, part.width, part.height, place.left, top, place.width, place.height);
    faces.lineWidth = edge === colours.edge ? 1 : 3;
    faces.strokeStyle = edge;
    if (side > 6) faces.strokeRect(place.left + 0.5, top + 0.5, place.width - 1, place.height - 1);
  }
  for (const [patch, token] of result.tokenOf.entries()) {
    if (token < 0) continue;
    const late = (0.3 * (token - numPrefix)) / result.numTokens;
    paintFace(
      patch,
      layout.cell(token),
      ease((flown - 0.05 - late) / 0.45),
      token === touched ? colours.accent : colours.edge,
    );
  }
  const followed = collector < numPrefix ? -1 : result.tokenOf.indexOf(collector);
  if (followed >= 0 && flown === 1) paintFace(followed, layout.collector, 1, colours.accent);
}

/** Below each token some of its numbers: colours, and where there is room the numbers themselves. */
export function paintStrips({ front, colours }, layout, scene, depth, alpha, isNew) {
  if (alpha <= 0) return;
  const { result, numbers } = scene;
  const tokens = tokensAt(numbers, result, depth);
  const count = numbers.components.length;
  const peaks = peaksOf(numbers);
  const strong = result.numTokens < MANY ? STRONG : FAINT;
  const { side, width } = layout.grid;
  const high = layout.stripHeight / layout.cells;
  const wide = layout.isWritten ? 0.9 * width : side;
  fit(front, "\u22120.0", { width: wide - 4 }); // with a gap to the next
  front.textAlign = "center";
  front.textBaseline = "middle";
  for (let token = 0; token < result.numTokens; token++) {
    const { x, y } = layout.cell(token);
    const left = x - wide / 2;
    const top = y + side + 2;
    front.globalAlpha = alpha;
    front.fillStyle = colours.surface;
    front.fillRect(left, top, wide, layout.stripHeight);
    for (let i = 0; i < layout.cells; i++) {
      const value = tokens[token * count + i];
      front.globalAlpha = alpha * strong * Math.sqrt(Math.abs(value) / peaks[i]);
      front.fillStyle = value < 0 ? colours.minus : colours.plus;
      front.fillRect(left, top + i * high, wide, high > 3 ? high - 1 : high);
      if (!layout.isWritten) continue;
      front.globalAlpha = alpha;
      front.fillStyle = colours.text;
      front.fillText(numberOf(value), x, top + (i + 0.5) * high);
    }
    if (isNew <= 0) continue;
    front.globalAlpha = isNew;
    front.strokeStyle = colours.accent;
    front.lineWidth = 1.5;
    front.strokeRect(left - 1, top - 1, wide + 2, layout.stripHeight + 1);
  }
  front.globalAlpha = 1;
}

/** A number in four signs at most. */
const numberOf = (value) =>
  Math.abs(value) < 0.05 ? formatDecimals(0, 1) : formatDecimals(value, Math.abs(value) < 9.95 ? 1 : 0);

/** The arrows between squares; those beside `part`, which was touched, are paler. */
export function paintPairs(
  { faces, colours, isDark },
  layout,
  scene,
  block,
  grown,
  alpha,
  part = /** @type {any} */ (null),
) {
  const arrows = arrowsOf(layout, scene, block);
  faces.lineCap = "butt";
  const ink = isDark && scene.result.pixelated ? INK : colours.text; // the theme turns a digit's colours
  for (const { points, from, to, share, width, head, length } of arrows) {
    const [start, first, second, end] = points;
    const isPale = part?.block === block && (part.from !== from || part.to !== to);
    const strength = alpha * (isPale ? 0.3 : 1);
    faces.setLineDash(grown < 1 ? [length * grown, 2 * length] : []);
    faces.beginPath();
    faces.moveTo(start[0], start[1]);
    faces.bezierCurveTo(first[0], first[1], second[0], second[1], end[0], end[1]);
    for (const [colour, line, strong] of [
      [colours.paper, width + 3, 0.7], // so that it can be told from the squares that it crosses
      [ink, width, 0.25 + 0.5 * (share / arrows[0].share)],
    ]) {
      Object.assign(faces, { strokeStyle: colour, lineWidth: line, globalAlpha: strength * strong });
      faces.stroke();
    }
    if (grown < 1) continue;
    faces.fillStyle = ink;
    faces.beginPath();
    faces.moveTo(end[0], end[1] - head);
    faces.lineTo(end[0] - 0.6 * head, end[1]);
    faces.lineTo(end[0] + 0.6 * head, end[1]);
    faces.fill();
  }
  faces.setLineDash([]);
  faces.globalAlpha = 1;
}
