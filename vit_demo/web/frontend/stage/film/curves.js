// @ts-check
// The curves of a film: threads from tokens to the one that collects, arrows from squares to those that they look at.

import { attentionOf, chosenOf, pairsOf } from "./plan.js";

const THICKEST = 0.12; // of the side of a token's square, behind which an arrow would hide it
const SIDEWAYS = 3; // from the middle of a token to where an arrow leaves it, and on its other side is looked at
const SAMPLES = 96; // points of a curve to which distances are measured
const REACH = 14; // CSS pixels from a curve within which a touch is meant for it

export const clamp = (value) => Math.min(1, Math.max(0, value));
export const ease = (value) => {
  const share = clamp(value);
  return share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
};
export const between = (from, to, share) => from + (to - from) * share;
export const boxBetween = (from, to, share) =>
  Object.fromEntries(Object.keys(from).map((name) => [name, between(from[name], to[name], share)]));

/** What the token that collects looks at in itself, from the level above. */
export function ownOf(layout, { result, numbers, film }, block) {
  const { x } = layout.collector;
  const above = block ? layout.level(block - 1) + layout.radius : layout.top - 8; // beside the tokens it would cover them
  const share = film.collector < 0 ? 0 : attentionOf(numbers, result, block)[film.collector];
  const [start, end] = [
    [x, above],
    [x, layout.level(block)],
  ];
  const points = [start, start, end, end];
  return { block, from: film.collector, to: film.collector, share, width: Math.max(0.6, layout.full * share), points };
}

/**
 * The threads of a block, [{block, from, to, share, width, points}], stacked to a bundle that is as high as all attention but the
 * token's own; `to` is null for those of the `others`, drawn as one. The points are those of a Bézier curve.
 */
export function threadsOf(layout, { result, numbers, film }, block) {
  const attention = attentionOf(numbers, result, block);
  const { full, radius } = layout;
  const [x, y] = [layout.collector.x, layout.level(block)];
  const own = film.collector < 0 ? 0 : attention[film.collector];
  const { isMany, chosen, rest, others } = chosenOf(attention, film);
  const starts = chosen
    .sort((a, b) => layout.cell(a).x - layout.cell(b).x || a - b)
    .map((to) => ({ ...layout.cell(to), to, share: attention[to] }));
  if (isMany) starts.push({ x: layout.width - 8, bottom: layout.top - 6, y: 0, to: null, share: rest });
  let offset = (-full * (1 - own)) / 2;
  return starts.map(({ x: fromX, bottom, to, share }) => {
    const width = full * share;
    const toY = y + offset + width / 2;
    offset += width;
    const points = [
      [fromX, bottom],
      [fromX, between(bottom, toY, 0.92)],
      [between(x, fromX, 0.62), toY],
      [x + radius * 0.7, toY],
    ];
    return { block, from: film.collector, to, others, share, width: Math.max(0.8, width), points };
  });
}

/**
 * The strongest looks between squares, as `threadsOf` gives them, bent so that none hides another: from the middle of one that
 * looks, to the left, to `head` below what it looks at.
 */
export function arrowsOf(layout, { result, numbers }, block) {
  const arcs = pairsOf(numbers, result, block).map((pair) => {
    const [start, end] = [layout.cell(pair.from), layout.cell(pair.to)];
    return { ...pair, start, end, away: Math.abs(end.x - start.x) };
  });
  const farthest = Math.max(...arcs.map(({ away }) => away), 1);
  return arcs.map(({ from, to, share, start, end, away }) => {
    const low = Math.max(start.bottom, end.bottom);
    const depth = Math.min(14 + 1.4 * away, 14 + ((layout.height - low - 40) * away) / (0.75 * farthest));
    const width = Math.max(0.8, Math.min(36 * share, THICKEST * layout.grid.side));
    const [fromX, toX, head] = [start.x - SIDEWAYS, end.x + SIDEWAYS, 5 + 0.8 * width];
    const points = [
      [fromX, start.bottom],
      [fromX, low + depth],
      [toX, low + depth],
      [toX, end.bottom + head],
    ];
    const length = away + 2 * (depth + Math.abs(end.bottom - start.bottom));
    return { block, from, to, share, width, head, length, points };
  });
}

/** All curves that can be seen at a moment. */
export function curvesAt(layout, scene, { beat, block }) {
  const isLook = beat.kind === "look";
  const threads = Array.from({ length: block + Number(!isLook) }, (_, each) => [
    ownOf(layout, scene, each),
    ...threadsOf(layout, scene, each),
  ]);
  return [...threads.flat(), ...(isLook ? arrowsOf(layout, scene, block) : [])].filter(({ share }) => share > 0);
}

/** The point at a share of a curve's way. */
export const pointOf = (/** @type {number[][]} */ [start, first, second, end], share) => {
  const rest = 1 - share;
  return [0, 1].map(
    (i) =>
      rest ** 3 * start[i] + 3 * rest ** 2 * share * first[i] + 3 * rest * share ** 2 * second[i] + share ** 3 * end[i],
  );
};

/** The curve at a place, of several the thinnest; null where none is near. */
export function curveAt(curves, x, y) {
  const near = curves.map((curve) => {
    let away = Number.POSITIVE_INFINITY;
    for (let i = 0; i <= SAMPLES; i++) {
      const [px, py] = pointOf(curve.points, i / SAMPLES);
      away = Math.min(away, Math.hypot(px - x, py - y));
    }
    return { curve, away: Math.max(0, away - curve.width / 2) };
  });
  near.sort((one, other) => one.away - other.away || one.curve.width - other.curve.width);
  return near[0]?.away <= REACH ? near[0].curve : null;
}
