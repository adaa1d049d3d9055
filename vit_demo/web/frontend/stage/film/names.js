// @ts-check
// Says on the picture what it shows: the token that is followed, stripes, arrows, threads, what it attends to in itself, and those drawn as one.

import { translate } from "../../shared/language.js";
import { formatShare } from "../format.js";
import { arrowsOf, ease, pointOf, threadsOf } from "./curves.js";
import { fit, LINE, write } from "./labels.js";
import { attentionOf, chosenOf, othersWords } from "./plan.js";

const MIDDLE = 7; // CSS pixels from the top to the middle of the names
const NOTABLE = 0.06; // of the attention: a smaller share of the token's own needs no name
const LEGIBLE = 10; // CSS pixels of letters, to the left; else they stand to the right, where threads pass

/** Above the tokens the name of the one that is followed, and of the strips with a line to one of them. */
export function paintNames({ front, colours }, layout, { film }, born, listed) {
  const start = layout.collector.x - layout.grid.side / 2;
  front.globalAlpha = born;
  write(front, film.title, start, MIDDLE, { colour: colours.accentText, weight: 600, width: layout.width - start });
  if (listed <= 0) return;
  const used = born > 0 ? front.measureText(film.title).width + 16 : 0;
  const words = translate("each square as numbers");
  const room = { width: layout.width - 14 - start - used };
  fit(front, words, room);
  const { x, y } = layout.lastOfRow;
  const right = x + layout.grid.side / 2 + 2;
  const length = front.measureText(words).width;
  const line = Math.min(layout.width - 4, Math.max(right + 8, start + used + length + 10));
  front.globalAlpha = listed;
  write(front, words, line - 10, MIDDLE, { ...room, align: "right", colour: colours.dim });
  front.strokeStyle = colours.dim;
  front.lineWidth = 1;
  front.beginPath();
  front.moveTo(line - 6, MIDDLE);
  front.lineTo(line, MIDDLE);
  front.lineTo(line, y + layout.grid.side + 8);
  front.lineTo(right, y + layout.grid.side + 8);
  front.stroke();
  front.globalAlpha = 1;
}

/** Where beside a block's share of the token's own there is room: its top and height, between what is above and the answer. */
function besideOwn(layout, block) {
  const end = layout.level(block) - (layout.space >= 36 ? 28 : 10);
  const above = block ? layout.level(block - 1) + 26 : layout.seen.height + 2;
  const start = block ? above : Math.max(above, Math.min(layout.top - 6, end - 34));
  return [start, end - start];
}

/** Beside the newest threads, and at the end beside those where it counts most, the token's own share. */
export function paintShares({ front, colours }, layout, { result, numbers, film }, { beat, share, block }) {
  const isEnd = beat.kind === "read" || beat.kind === "end";
  if (!isEnd && (beat.kind !== "collect" || share < 0.4)) return;
  const attentions = Array.from({ length: result.numBlocks }, (_, b) => attentionOf(numbers, result, b));
  const owns = attentions.map((attention) => (film.collector < 0 ? 0 : attention[film.collector]));
  const selfish = isEnd ? owns.indexOf(Math.max(...owns)) : block;
  const own = owns[selfish];
  const { x } = layout.collector;
  const look = { colour: colours.accentText, halo: colours.surface }; // the colour of what is meant
  if (own >= NOTABLE) {
    const beside = Math.max(layout.radius, (own * layout.full) / 2) + 8;
    const words = translate("looks at itself: {share}", { share: formatShare(own) });
    const [top, height] = besideOwn(layout, selfish);
    const room = { width: x - beside, height };
    const { lines, letters } = fit(front, words, room);
    if (letters >= LEGIBLE && height >= letters)
      write(front, words, x - beside, top + (lines.length * LINE * letters) / 2, { ...look, ...room, align: "right" });
    else if (!isEnd) {
      const y = layout.level(block) - Math.max(layout.space / 2, layout.full / 2 + 9); // above the threads
      write(front, words, x + beside, y, { ...look, width: layout.width - x - beside });
    }
  }
}

/** Below the strip of the first square of the last row what its stripes are, once the picture has left that place. */
function paintStripes({ front, colours }, layout, { result, film }, share) {
  const squares = Array.from(
    result.tokenOf.filter((token) => token >= 0),
    layout.cell,
  );
  const { x, y, bottom } = squares.reduce((one, each) => (each.bottom > one.bottom ? each : one));
  const half = layout.grid.side / 2;
  const top = bottom + 14;
  const room = { width: layout.width - x + half - 2, height: layout.height - top - 8 };
  const { lines, letters } = fit(front, film.captions.stripes, { ...room, weight: 600 });
  front.globalAlpha = ease((share - 0.36) / 0.15);
  front.strokeStyle = colours.accent;
  front.lineWidth = 1.5;
  front.strokeRect(x - half - 1, y + layout.grid.side + 1, 2 * half + 2, layout.stripHeight + 2);
  front.beginPath();
  front.moveTo(x - half + 4, bottom + 2);
  front.lineTo(x - half + 4, top - 2);
  front.stroke();
  const look = { colour: colours.text, halo: colours.surface, weight: 600 };
  write(front, film.captions.stripes, x - half, top + (lines.length * LINE * letters) / 2, { ...look, ...room });
  front.globalAlpha = 1;
}

/** Below the newest arrows what they are; below the newest threads what they are, and along those drawn as one what that is. */
export function paintCaptions(on, layout, scene, { beat, share, block }) {
  const { front, colours } = on;
  const { result, numbers, film } = scene;
  const look = { colour: colours.text, halo: colours.surface, weight: 600 };
  if (beat.kind === "join") return paintStripes(on, layout, scene, share);
  if (beat.kind === "look") {
    const middles = arrowsOf(layout, scene, block).map(({ points }) => pointOf(points, 0.5));
    const [x, y] = middles.reduce((lowest, each) => (each[1] > lowest[1] ? each : lowest));
    const room = { width: layout.width - layout.collector.x - 2 * layout.radius };
    fit(front, film.captions.look, { ...room, weight: 600 });
    const half = front.measureText(film.captions.look).width / 2;
    const left = Math.min(layout.width - 2 * half - 2, Math.max(layout.width - room.width, x - half));
    return write(front, film.captions.look, left, Math.min(layout.height - 8, y + 14), { ...look, ...room });
  }
  const isEnd = beat.kind === "read" || beat.kind === "end";
  if (!isEnd && (beat.kind !== "collect" || share < 0.4)) return;
  const attention = attentionOf(numbers, result, block);
  const x = layout.collector.x + layout.radius + 10;
  const own = film.collector < 0 ? 0 : attention[film.collector];
  let y = layout.level(block) + (layout.full * (1 - own)) / 2 + 10;
  const width = layout.width - x - 4;
  let used = 0; // to the right, on the line at y
  if (!isEnd) {
    write(front, film.captions.collect, x, y, { ...look, width });
    used = x + front.measureText(film.captions.collect).width;
    y += 14;
  }
  const words = othersWords(chosenOf(attention, film));
  if (!words) return;
  fit(front, words, { width });
  const right = layout.width - 4;
  const left = right - front.measureText(words).width;
  const thread = /** @type {any} */ (threadsOf(layout, scene, block).find(({ to }) => to === null));
  const under = Array.from({ length: 33 }, (_, i) => pointOf(thread.points, i / 32)).filter(([at]) => at >= left - 8);
  const along = Math.max(...under.map(([, at]) => at)) + thread.width / 2 + 10;
  if (left > used + 12) y = Math.min(y, along);
  write(front, words, right, y, { align: "right", colour: colours.dim, halo: colours.surface, width });
}
