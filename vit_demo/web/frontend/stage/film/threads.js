// @ts-check
// Paints what leads from tokens to the answer: the threads of a block, the token that collects them, the line at the end.

import { translate } from "../../shared/language.js";
import { formatProbability, formatShare } from "../format.js";
import { heatColour } from "../heatmapColours.js";
import { answersAt, attentionOf } from "./plan.js";

const MANY = 100; // tokens from which on only the strongest threads are drawn, and the rest as one
const STRONGEST = 24;
export const FONT = "system-ui, sans-serif";

export const clamp = (value) => Math.min(1, Math.max(0, value));
export const ease = (value) => {
  const share = clamp(value);
  return share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
};
export const between = (from, to, share) => from + (to - from) * share;
export const boxBetween = (from, to, share) =>
  Object.fromEntries(Object.keys(from).map((name) => [name, between(from[name], to[name], share)]));

const heat = (share, isDark) => {
  const [red, green, blue, alpha] = heatColour(share, 1, { paper: !isDark });
  return `rgb(${red} ${green} ${blue} / ${Math.max(isDark ? 0.35 : 0.2, alpha)})`;
};

/** The threads of a block, stacked to a bundle that is as high as all attention but the token's own, which comes from above. */
export function paintBundle(on, layout, scene, block, { grown, end, alpha }) {
  if (grown <= 0) return;
  const { front, colours, isDark } = on;
  const { result, numbers, film } = scene;
  const attention = attentionOf(numbers, result, block);
  const { full, radius } = layout;
  const [x, y] = [layout.collector.x, layout.level(block)];
  const tokens = Array.from(attention.keys()).filter((token) => token !== film.collector);
  const own = film.collector < 0 ? 0 : attention[film.collector];
  front.lineCap = "butt";
  if (own > 0) {
    const above = block ? layout.level(block - 1) + radius : layout.top - 8; // beside the tokens it would cover them
    front.globalAlpha = 0.6 * alpha;
    front.strokeStyle = colours.accent;
    for (const [from, to, width] of [
      [block ? above : layout.collector.bottom, above, 1],
      [above, between(above, y, grown), Math.max(0.6, own * full)],
    ]) {
      front.lineWidth = width;
      front.beginPath();
      front.moveTo(x, from);
      front.lineTo(x, to);
      front.stroke();
    }
  }
  const isMany = tokens.length >= MANY;
  const chosen = isMany ? [...tokens].sort((a, b) => attention[b] - attention[a]).slice(0, STRONGEST) : tokens;
  const shown = chosen.sort((a, b) => layout.cell(a).x - layout.cell(b).x || a - b);
  const threads = shown.map((token) => ({
    ...layout.cell(token),
    share: attention[token],
    colour: heat(attention[token] / end, isDark),
  }));
  const rest = 1 - own - threads.reduce((sum, { share }) => sum + share, 0);
  if (isMany) threads.push({ x: layout.width - 8, bottom: layout.top - 6, y: 0, share: rest, colour: colours.rest });
  let offset = (-full * (1 - own)) / 2;
  for (const { x: from, bottom, share, colour } of threads) {
    const width = full * share;
    const to = y + offset + width / 2;
    offset += width;
    const length = 1.3 * Math.hypot(from - x, to - bottom);
    front.globalAlpha = alpha;
    front.strokeStyle = colour;
    front.lineWidth = Math.max(0.5, width);
    front.setLineDash(grown < 1 ? [length * grown, 3 * length] : []);
    front.beginPath();
    front.moveTo(from, bottom);
    front.bezierCurveTo(from, between(bottom, to, 0.92), between(x, from, 0.62), to, x + radius * 0.7, to);
    front.stroke();
  }
  front.setLineDash([]);
  front.globalAlpha = 1;
}

/** The token that collects: at its place, going down by a level with each block; beside each level what would be answered. */
export function paintCollector(on, layout, scene, { beat, share: way, block, depth }, born) {
  if (born <= 0) return;
  const { front, colours } = on;
  const { result, numbers, film } = scene;
  const { x } = layout.collector;
  const home = layout.collector.y + layout.grid.side / 2;
  const radius = layout.radius;
  const ring = (y, filled, size, alpha = 1) => {
    front.globalAlpha = alpha;
    front.beginPath();
    front.arc(x, y, size, 0, 2 * Math.PI);
    front.fillStyle = filled ? colours.accent : colours.surface;
    front.fill();
    front.lineWidth = 2;
    front.strokeStyle = colours.accent;
    front.stroke();
    front.globalAlpha = 1;
  };
  front.textBaseline = "middle";
  front.textAlign = "right";
  const names = result.predictions;
  for (let b = 0; b < Math.max(depth, block + Number(beat.kind === "collect")); b++) {
    const isLast = b === depth - 1;
    const y = layout.level(b);
    const [answer] = b < depth && film.isRead ? answersAt(numbers, b + 1) : [];
    if (b < depth) ring(y, true, isLast ? radius : 0.6 * radius);
    const edge = x - radius - 8;
    if (answer && (isLast || layout.space > 19)) {
      const isSame = answer.index === names[0].index;
      const number = formatProbability(answer.probability, names[0].scores);
      front.font = `${isSame ? 650 : 400} 15px ${FONT}`;
      front.fillStyle = isSame ? colours.accentText : colours.dim;
      const isShort = answer.label.length <= 2;
      const label = short(
        front,
        b + 1 < numbers.depths - 1 && !isSame ? `${answer.label}?` : answer.label,
        edge - (isShort ? 52 : 0),
      );
      front.fillText(label, edge, isShort || layout.space < 36 ? y : y - 8);
      front.font = `13px ${FONT}`;
      front.fillStyle = colours.dim;
      const room = edge - (isShort ? 26 : 0);
      if (isShort) front.fillText(number, room, y + 1);
      else if (layout.space >= 36) front.fillText(number, edge, y + 8);
    }
    const own = film.collector < 0 ? 0 : attentionOf(numbers, result, b)[film.collector];
    const isNow = b === block && beat.kind === "collect";
    if (!isNow || way < 0.4 || layout.space < 26 || !own) continue;
    front.font = `13px ${FONT}`;
    front.fillStyle = colours.dim;
    const share = formatShare(own);
    const words = translate("{share} its own", { share });
    const end = x - Math.max(radius, (own * layout.full) / 2) - 8;
    front.fillText(front.measureText(words).width < end ? words : share, end, y - layout.space / 2);
  }
  if (beat.kind === "collect" && depth <= block) {
    const from = block ? layout.level(block - 1) : home;
    ring(between(from, layout.level(block), ease(way / 0.25)), true, radius);
  }
  ring(home, block < 0, Math.max(radius, 0.42 * layout.grid.side) * (0.6 + 0.4 * born), born);
  front.font = `600 13px ${FONT}`;
  front.textAlign = "left";
  front.fillStyle = colours.accentText;
  front.globalAlpha = born;
  front.fillText(film.name, x - layout.grid.side / 2, 7);
  if (result.hasClassToken && film.collector !== 0) {
    const { x: left, y } = layout.cell(0);
    front.lineWidth = 2;
    front.strokeStyle = colours.accent;
    front.beginPath();
    front.arc(left, y + layout.grid.side / 2, 0.42 * layout.grid.side, 0, 2 * Math.PI);
    front.stroke();
  }
  const prefix = film.numPrefix - Number(result.hasClassToken);
  for (let i = 0; i < prefix; i++) {
    const { x: left, y } = layout.cell(i + Number(result.hasClassToken));
    const side = layout.grid.side;
    front.globalAlpha = born;
    front.strokeStyle = colours.dim;
    front.lineWidth = 1.5;
    front.setLineDash([3, 2]);
    front.strokeRect(left - side / 2 + 1, y + 1, side - 2, side - 2);
    front.setLineDash([]);
    front.globalAlpha = 1;
  }
}

/** From the last level to where the answer stands: to the right beside the picture, or above it. */
export function paintLine({ front, colours }, layout, { result }, [toX, toY, isAlong = false], grown) {
  const { x } = layout.collector;
  const from = layout.level(result.numBlocks - 1) + layout.radius;
  const low = layout.height - 6;
  const isAbove = toY < 0;
  const right = isAbove ? layout.width - 3 : between(layout.width, toX, 0.4);
  const points = [
    ...[
      [x, from],
      [x, low],
    ],
    ...(isAlong
      ? [[toX, low]]
      : [
          [right, low],
          ...(isAbove
            ? [
                [right, -8],
                [toX, -8],
              ]
            : [[right, toY]]),
        ]),
    [toX, toY],
  ];
  const length = points
    .slice(1)
    .reduce((sum, [px, py], i) => sum + Math.abs(px - points[i][0]) + Math.abs(py - points[i][1]), 0);
  front.strokeStyle = colours.accent;
  front.lineWidth = 3;
  front.lineCap = front.lineJoin = "round";
  front.setLineDash(grown < 1 ? [length * grown, 2 * length] : []);
  front.beginPath();
  front.moveTo(points[0][0], points[0][1]);
  for (let i = 1; i < points.length - 1; i++) {
    const [[ax, ay], [bx, by], [cx, cy]] = [points[i - 1], points[i], points[i + 1]];
    const room = Math.min(12, Math.hypot(bx - ax, by - ay) / 2, Math.hypot(cx - bx, cy - by) / 2);
    front.arcTo(bx, by, cx, cy, room);
  }
  front.lineTo(toX, toY);
  front.stroke();
  front.setLineDash([]);
}

/** A name cut to a width. */
function short(context, name, room) {
  let shown = name;
  while (shown.length > 2 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
  return shown;
}
