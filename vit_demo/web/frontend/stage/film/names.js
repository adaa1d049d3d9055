// @ts-check
// Says on the picture what it shows: the token that is followed, the strips, what it attends to in itself, and the threads drawn as one.

import { translate } from "../../shared/language.js";
import { formatShare } from "../format.js";
import { fit, LINE, write } from "./labels.js";
import { attentionOf } from "./plan.js";
import { chosenOf } from "./threads.js";

const MIDDLE = 7; // CSS pixels from the top to the middle of the names
const NOTABLE = 0.06; // of the attention: a smaller share of the token's own needs no name
const LEGIBLE = 10; // CSS pixels of letters, to the left; else they stand to the right, where threads pass

/** Above the tokens the name of the one that is followed, and of the strips with a line to one of them. */
export function paintNames({ front, colours }, layout, { film, numbers }, born, listed) {
  const start = layout.collector.x - layout.grid.side / 2;
  front.globalAlpha = born;
  write(front, film.title, start, MIDDLE, { colour: colours.accentText, weight: 600, width: layout.width - start });
  if (listed <= 0) return;
  const used = born > 0 ? front.measureText(film.title).width + 16 : 0;
  const words = translate("some of its {count} numbers", { count: numbers.width });
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
  const above = block ? layout.level(block - 1) + 18 : layout.seen.height + 2;
  const start = block ? above : Math.max(above, Math.min(layout.top - 6, end - 34));
  return [start, end - start];
}

/** Beside the newest threads, and at the end beside those where it counts most, the token's own share and that of the rest. */
export function paintShares({ front, colours }, layout, { result, numbers, film }, { beat, share, block }) {
  const isEnd = beat.kind === "read" || beat.kind === "end";
  if (!isEnd && (beat.kind !== "collect" || share < 0.4)) return;
  const attentions = Array.from({ length: result.numBlocks }, (_, b) => attentionOf(numbers, result, b));
  const owns = attentions.map((attention) => (film.collector < 0 ? 0 : attention[film.collector]));
  const selfish = isEnd ? owns.indexOf(Math.max(...owns)) : block;
  const own = owns[selfish];
  const { x } = layout.collector;
  const look = { colour: colours.dim, halo: colours.surface };
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
  const { isMany, rest, others } = chosenOf(attentions[block], film.collector);
  if (!isMany) return;
  const words = translate("the other {count} together: {share}", { count: others, share: formatShare(rest) });
  const below = layout.level(block) + (layout.full * (1 - owns[block])) / 2 + 10;
  write(front, words, x + 40, below, { ...look, width: layout.width - x - 60 });
}
