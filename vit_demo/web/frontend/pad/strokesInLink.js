// @ts-check
// A drawing as a short text: 12 bits for each coordinate, in base64 for addresses.
//
// A stroke is two bytes, the pen (4 bits) and the number of points (12 bits), and three bytes for each point.

import { addPoints } from "./strokes.js";

const MOST_CHARACTERS = 2000;

const LEVELS = 4095;
const MOST_BYTES = Math.floor((MOST_CHARACTERS * 3) / 4);
/** Distances between points, as fractions of the pad's side, until a drawing is short enough. */
const SPACINGS = [0, 0.02, 0.04, 0.08];

/** The text of strokes {width, points} with these pen widths; null for a drawing that is too long for one. */
export function encodeStrokes(strokes, widths) {
  for (const spacing of SPACINGS) {
    const thinned = strokes.map(({ width, points }) => ({ width, points: thin(points, spacing) }));
    const bytes = thinned.flatMap((stroke) => strokeBytes(stroke, widths));
    if (bytes.length <= MOST_BYTES) return toText(bytes);
  }
  return null;
}

/** The strokes of a text; null for any other text. */
export function decodeStrokes(text, widths) {
  if (text.length > MOST_CHARACTERS || !/^[\w-]+$/.test(text)) return null;
  const bytes = fromText(text) ?? new Uint8Array();
  const strokes = [];
  for (let at = 0; at < bytes.length; ) {
    const pen = bytes[at] >> 4;
    const count = ((bytes[at] & 15) << 8) | bytes[at + 1];
    const end = at + 2 + 3 * count;
    if (!(pen < widths.length && count > 0 && end <= bytes.length)) return null;
    const points = [];
    for (at += 2; at < end; at += 3) {
      const [a, b, c] = bytes.subarray(at, at + 3);
      points.push([((a << 4) | (b >> 4)) / LEVELS, (((b & 15) << 8) | c) / LEVELS]);
    }
    strokes.push({ width: widths[pen], points });
  }
  return strokes.length ? strokes : null;
}

/** A finished stroke as its text describes it, so that a link restores the same picture to the pixel. */
export function rounded({ width, points }, spacing = 0.008) {
  return { width, points: thin(points, spacing).map((point) => point.map((value) => level(value) / LEVELS)) };
}

function thin(points, spacing) {
  const kept = [points[0]];
  addPoints(kept, points.slice(1, -1), spacing);
  return points.length > 1 ? [...kept, points.at(-1)] : kept;
}

const level = (value) => Math.round(LEVELS * Math.min(1, Math.max(0, value)));

function strokeBytes({ width, points }, widths) {
  const count = Math.min(points.length, LEVELS);
  const bytes = [(Math.max(0, widths.indexOf(width)) << 4) | (count >> 8), count & 255];
  for (const [x, y] of points.slice(0, count)) {
    const [a, b] = [level(x), level(y)];
    bytes.push(a >> 4, ((a & 15) << 4) | (b >> 8), b & 255);
  }
  return bytes;
}

const toText = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

function fromText(text) {
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    );
  } catch {
    return null;
  }
}
