// @ts-check
// Paints what leads from tokens to the answer: the threads of a block, the token that collects them, the line at the end.

import { formatProbability } from "../format.js";
import { heatColour } from "../heatmapColours.js";
import { write } from "./labels.js";
import { answersAt, attentionOf } from "./plan.js";

export const MANY = 40; // tokens from which on only the strongest threads are drawn, and the rest as one
const STRONGEST = 12;

export const clamp = (value) => Math.min(1, Math.max(0, value));
export const ease = (value) => {
  const share = clamp(value);
  return share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2;
};
export const between = (from, to, share) => from + (to - from) * share;
export const boxBetween = (from, to, share) =>
  Object.fromEntries(Object.keys(from).map((name) => [name, between(from[name], to[name], share)]));

const heat = (share) => {
  const [red, green, blue, alpha] = heatColour(share, 1);
  return `rgb(${red} ${green} ${blue} / ${Math.max(0.25, alpha)})`;
};

/** The tokens of whose attention there are threads of their own; `rest` is the share of the `others`, drawn as one. */
export function chosenOf(attention, collector) {
  const tokens = Array.from(attention.keys()).filter((token) => token !== collector);
  const isMany = tokens.length >= MANY;
  const chosen = isMany ? [...tokens].sort((a, b) => attention[b] - attention[a]).slice(0, STRONGEST) : tokens;
  const sum = (list) => list.reduce((total, token) => total + attention[token], 0);
  return { isMany, chosen, rest: sum(tokens) - sum(chosen), others: tokens.length - chosen.length };
}

/** The threads of a block, stacked to a bundle that is as high as all attention but the token's own, which comes from above. */
export function paintBundle(on, layout, scene, block, { grown, end, alpha }) {
  if (grown <= 0) return;
  const { faces, colours } = on;
  const { result, numbers, film } = scene;
  const attention = attentionOf(numbers, result, block);
  const { full, radius } = layout;
  const [x, y] = [layout.collector.x, layout.level(block)];
  const own = film.collector < 0 ? 0 : attention[film.collector];
  faces.lineCap = "butt";
  if (own > 0) {
    const above = block ? layout.level(block - 1) + radius : layout.top - 8; // beside the tokens it would cover them
    faces.globalAlpha = 0.6 * alpha;
    faces.strokeStyle = colours.accent;
    for (const [from, to, width] of [
      [block ? above : layout.collector.bottom, above, 1],
      [above, between(above, y, grown), Math.max(0.6, own * full)],
    ]) {
      faces.lineWidth = width;
      faces.beginPath();
      faces.moveTo(x, from);
      faces.lineTo(x, to);
      faces.stroke();
    }
  }
  const { isMany, chosen, rest } = chosenOf(attention, film.collector);
  const shown = chosen.sort((a, b) => layout.cell(a).x - layout.cell(b).x || a - b);
  const threads = shown.map((token) => ({
    ...layout.cell(token),
    share: attention[token],
    colour: heat(Math.sqrt(attention[token] / end)), // pale threads would be lost on paper
  }));
  if (isMany) threads.push({ x: layout.width - 8, bottom: layout.top - 6, y: 0, share: rest, colour: colours.rest });
  let offset = (-full * (1 - own)) / 2;
  for (const { x: from, bottom, share, colour } of threads) {
    const width = full * share;
    const to = y + offset + width / 2;
    offset += width;
    const length = 1.3 * Math.hypot(from - x, to - bottom);
    faces.globalAlpha = alpha;
    faces.strokeStyle = colour;
    faces.lineWidth = Math.max(0.8, width);
    faces.setLineDash(grown < 1 ? [length * grown, 3 * length] : []);
    faces.beginPath();
    faces.moveTo(from, bottom);
    faces.bezierCurveTo(from, between(bottom, to, 0.92), between(x, from, 0.62), to, x + radius * 0.7, to);
    faces.stroke();
  }
  faces.setLineDash([]);
  faces.globalAlpha = 1;
}

/** The token that collects: at its place, going down by a level with each block; beside each level what would be answered. */
export function paintCollector(on, layout, scene, { beat, share: way, block, depth }, born) {
  if (born <= 0) return;
  const { front, colours } = on;
  const { result, film } = scene;
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
  for (let b = 0; b < depth; b++) {
    const isLast = b === depth - 1;
    ring(layout.level(b), true, isLast ? radius : 0.6 * radius);
    if (film.isRead && (isLast || layout.space > 15)) paintAnswer(on, layout, scene, b);
  }
  if (beat.kind === "collect" && depth <= block) {
    const from = block ? layout.level(block - 1) : home;
    ring(between(from, layout.level(block), ease(way / 0.25)), true, radius);
  }
  ring(
    home,
    block < 0 || (beat.kind === "look" && !block),
    Math.max(radius, 0.42 * layout.grid.side) * (0.6 + 0.4 * born),
    born,
  );
  front.globalAlpha = born;
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

/** Beside a level what would be answered after its block. */
function paintAnswer({ front, colours }, layout, { result, numbers, film }, block) {
  const [answer] = answersAt(numbers, block + 1);
  if (!answer) return;
  const [first] = result.predictions;
  const isSame = answer.index === first.index;
  const number = formatProbability(answer.probability, first.scores);
  const owns =
    film.collector < 0
      ? [0]
      : [block, block + 1].map((b) => attentionOf(numbers, result, Math.min(b, result.numBlocks - 1))[film.collector]);
  const beside = Math.max(layout.radius, (layout.full * Math.max(...owns)) / 2); // the token and its own share
  const [edge, y] = [layout.collector.x - beside - 8, layout.level(block)];
  const name = {
    align: "right",
    colour: isSame ? colours.accentText : colours.dim,
    weight: isSame ? 650 : 400,
    size: 15,
  };
  const small = { align: "right", colour: colours.dim };
  if (answer.label.length <= 2) {
    write(front, answer.label, edge, y, { ...name, width: 26 });
    write(front, number, edge - 26, y + 1, { ...small, width: edge - 26 });
    return;
  }
  const hasNumber = layout.space >= 36;
  const height = layout.space - (hasNumber ? 20 : 2);
  const high = write(front, answer.label, edge, hasNumber ? y - 8 : y, { ...name, width: edge, height });
  if (hasNumber) write(front, number, edge, y + high / 2, { ...small, width: edge });
}

/** From the last level to where the answer stands: to the right beside the picture, or above it. */
export function paintLine({ front, colours }, layout, { result }, [toX, toY, isAlong = false], grown) {
  const { x } = layout.collector;
  const from = layout.level(result.numBlocks - 1) + layout.radius;
  const low = layout.height - 6;
  const isAbove = toY < 0;
  const right = isAbove ? layout.width + 3 : between(layout.width, toX, 0.4);
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
