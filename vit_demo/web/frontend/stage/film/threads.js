// @ts-check
// Paints what leads from tokens to the answer: the threads of a block, the token that collects them, the line at the end.

import { formatProbability } from "../format.js";
import { heatColour } from "../heatmapColours.js";
import { between, ease, ownOf, threadsOf } from "./curves.js";
import { write } from "./labels.js";
import { answersAt, attentionOf } from "./plan.js";

const heat = (share) => {
  const [red, green, blue, alpha] = heatColour(share, 1);
  return `rgb(${red} ${green} ${blue} / ${Math.max(0.25, alpha)})`;
};

/** Paints the threads of a block, and what the token looks at in itself; `part` is what was touched, beside which others are paler. */
export function paintBundle(on, layout, scene, block, { grown, end, alpha, part }) {
  if (grown <= 0) return;
  const { faces, colours } = on;
  const { x, bottom } = layout.collector;
  const alphaOf = ({ to }) => (part?.block !== block ? alpha : part.to === to ? 1 : 0.3 * alpha);
  faces.lineCap = "butt";
  const own = ownOf(layout, scene, block);
  if (own.share > 0) {
    const [[, above], , , [, y]] = own.points;
    faces.globalAlpha = 0.6 * alphaOf(own);
    faces.strokeStyle = colours.accent;
    for (const [from, to, width] of [
      [block ? above : bottom, above, 1],
      [above, between(above, y, grown), own.width],
    ]) {
      faces.lineWidth = width;
      faces.beginPath();
      faces.moveTo(x, from);
      faces.lineTo(x, to);
      faces.stroke();
    }
  }
  for (const thread of threadsOf(layout, scene, block)) {
    const [start, first, second, stop] = thread.points;
    const length = 1.3 * Math.hypot(start[0] - x, stop[1] - start[1]);
    faces.globalAlpha = alphaOf(thread);
    faces.strokeStyle = thread.to === null ? colours.rest : heat(Math.sqrt(thread.share / end)); // pale threads would be lost on paper
    faces.lineWidth = thread.width;
    faces.setLineDash(grown < 1 ? [length * grown, 3 * length] : []);
    faces.beginPath();
    faces.moveTo(start[0], start[1]);
    faces.bezierCurveTo(first[0], first[1], second[0], second[1], stop[0], stop[1]);
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
