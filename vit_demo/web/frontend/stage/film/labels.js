// @ts-check
// Words in a picture: always whole, in the largest letters with which they fit, on more lines where there is room for them.

const FONT = "system-ui, sans-serif";
const SMALLEST = 8; // CSS pixels
export const LINE = 1.15; // height of a line in sizes of its letters

/** The lines of a text no wider than a room, if its words are not. */
function linesOf(context, text, width) {
  const [first, ...words] = text.split(" ");
  const lines = [first];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Sets the font of a text and returns its lines and the size of its letters. */
export function fit(context, text, { width, height = 0, size = 13, weight = 400 }) {
  for (let letters = size; ; letters -= 0.5) {
    context.font = `${weight} ${letters}px ${FONT}`;
    const lines = linesOf(context, text, width);
    const isWide = lines.some((line) => context.measureText(line).width > width);
    const isHigh = lines.length > 1 && lines.length * LINE * letters > height;
    if (letters <= SMALLEST || (!isWide && !isHigh)) return { lines, letters };
  }
}

/** Writes a text whose middle is at `y`; `room` is {width, height, size, weight}, `halo` the colour around its letters, if any. */
export function write(context, text, x, y, { align = "left", colour, halo = "", ...room }) {
  const { lines, letters } = fit(context, text, /** @type {any} */ (room));
  Object.assign(context, { textAlign: align, textBaseline: "middle", fillStyle: colour });
  for (const [i, line] of lines.entries()) {
    const at = y + (i - (lines.length - 1) / 2) * LINE * letters;
    if (halo) {
      Object.assign(context, { strokeStyle: halo, lineWidth: 4, lineJoin: "round" });
      context.strokeText(line, x, at);
    }
    context.fillText(line, x, at);
  }
  return lines.length * LINE * letters;
}
