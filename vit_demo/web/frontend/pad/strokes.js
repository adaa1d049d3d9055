// A drawing is a list of strokes; a stroke is {width, points}, all lengths as fractions of the pad's side.
// The screen at any density, undo and the picture for the model all use the same list. A stroke as wide as the eraser takes
// away the ink of those before it.

export const PENS = { thin: 0.055, medium: 1 / 12, thick: 0.115, eraser: 0.14 };
const INK = "#16171b";

/** Traces a smooth curve along the points: quadratic pieces that meet halfway between neighbours. */
function tracePath(context, points, side) {
  const at = ([x, y]) => [x * side, y * side];
  context.beginPath();
  context.moveTo(...at(points[0]));
  for (let i = 1; i < points.length - 1; i++) {
    const [x, y] = points[i];
    const [nextX, nextY] = points[i + 1];
    context.quadraticCurveTo(...at([x, y]), ...at([(x + nextX) / 2, (y + nextY) / 2]));
  }
  const [x, y] = at(points.at(-1));
  // A dot needs some length, because a canvas draws no cap on a line of length 0.
  context.lineTo(x + (points.length === 1 ? 0.01 : 0), y);
}

function pathLength(points) {
  return points.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - points[i][0], y - points[i][1]), 0.001);
}

/** Draws strokes into a square of `side` device pixels, up to `progress` (0 to 1) of their whole length. */
export function drawStrokes(context, strokes, side, { ink = INK, progress = 1 } = {}) {
  let left = progress * strokes.reduce((sum, stroke) => sum + pathLength(stroke.points), 0);
  context.lineCap = context.lineJoin = "round";
  context.strokeStyle = ink;
  for (const { width, points } of strokes) {
    if (left <= 0) break;
    context.globalCompositeOperation = width === PENS.eraser ? "destination-out" : "source-over";
    context.lineWidth = width * side;
    context.setLineDash(progress < 1 ? [left * side, 2 * side * points.length] : []);
    tracePath(context, points, side);
    context.stroke();
    left -= pathLength(points);
  }
  context.setLineDash([]);
  context.globalCompositeOperation = "source-over";
}

/** The strokes of an example digit, drawn with the medium pen. */
export function exampleStrokes(digits, digit) {
  return digits[digit].map((points) => ({ width: PENS.medium, points }));
}

const PICTURE_SIDE = 280;

/** What the model gets: black ink on white paper, as a PNG data URL. */
export function toDataUrl(strokes) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = PICTURE_SIDE;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  drawStrokes(context, strokes, PICTURE_SIDE, { ink: "#000" });
  context.globalCompositeOperation = "destination-over"; // the paper is below what the eraser left
  context.fillStyle = "#fff";
  context.fillRect(0, 0, PICTURE_SIDE, PICTURE_SIDE);
  return canvas.toDataURL("image/png");
}
