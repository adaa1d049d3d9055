// The picture with its heat, its grid and the patch that is asked about, at the screen's own density.

const FINEST_GRID = 8; // CSS pixels; lines between smaller patches would hide the picture

const HATCH = 7; // CSS pixels between two lines

/** Fits the canvas into its box, whose size never changes, and returns its size in CSS pixels. */
function fitCanvas(canvas, box, [width, height]) {
  const scale = Math.min(box.clientWidth / width, box.clientHeight / height);
  const size = [Math.round(width * scale), Math.round(height * scale)];
  const pixels = size.map((side) => Math.round(side * devicePixelRatio));
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels;
    [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  }
  return size;
}

function paintResult(canvas, size, result, { map, opacity, marked, pointed, gone }) {
  const context = canvas.getContext("2d");
  const [width, height] = size;
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !result.pixelated;
  context.drawImage(result.picture, 0, 0, width, height);
  context.imageSmoothingEnabled = !isCoarse(result);
  // A new picture whose map is still being worked out is shown as it is.
  if (map) context.drawImage(heatCanvas(map, result.rows, result.columns, opacity), 0, 0, width, height);

  const cell = { width: width / result.columns, height: height / result.rows };
  if (gone.size) hatchPatches(context, result, cell, gone);
  if (Math.min(cell.width, cell.height) >= FINEST_GRID) paintGrid(context, size, cell);
  if (pointed !== null && pointed !== marked) outlinePatch(context, result, cell, pointed, 1);
  if (marked !== null) outlinePatch(context, result, cell, marked, 2.5);
}

function paintGrid(context, [width, height], cell) {
  context.beginPath();
  for (let x = cell.width; x < width - 1; x += cell.width) {
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  for (let y = cell.height; y < height - 1; y += cell.height) {
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.strokeStyle = "rgb(255 255 255 / 16%)";
  context.lineWidth = 1;
  context.stroke();
}

/** Patches that were knocked out: grey, hatched, nothing of the picture left. */
function hatchPatches(context, { columns }, cell, gone) {
  context.save();
  context.beginPath();
  for (const patch of gone) {
    const [x, y] = [(patch % columns) * cell.width, Math.floor(patch / columns) * cell.height];
    context.rect(x, y, cell.width, cell.height);
  }
  context.fillStyle = "#6f727a";
  context.fill();
  context.clip();
  context.beginPath();
  const [width, height] = [context.canvas.width, context.canvas.height];
  for (let x = -height; x < width; x += HATCH) {
    context.moveTo(x, 0);
    context.lineTo(x + height, height);
  }
  context.strokeStyle = "#8d9099";
  context.lineWidth = HATCH / 4;
  context.stroke();
  context.restore();
}

/** White with a dark halo, so that it is seen on any picture and any heat; never too small to find. */
function outlinePatch(context, result, cell, patch, weight) {
  const width = Math.max(cell.width, 9);
  const height = Math.max(cell.height, 9);
  const x = ((patch % result.columns) + 0.5) * cell.width - width / 2;
  const y = (Math.floor(patch / result.columns) + 0.5) * cell.height - height / 2;
  context.lineJoin = "round";
  for (const [style, extra] of [["rgb(0 0 0 / 55%)", 2.5], ["#fff", 0]]) {
    context.strokeStyle = style;
    context.lineWidth = weight + extra;
    context.strokeRect(x, y, width, height);
  }
}
