// The whole photo, small, with the part that the model saw left bright. The stage says what to show by the event
// `vit-demo:seen`, and hears of a click on it by `vit-demo:pick`.

const MOST_WIDE = 84;
const MOST_HIGH = 64; // CSS pixels, as in seen.css

const figure = element.querySelector(".part");
const canvas = element.querySelector("canvas");
const words = element.querySelector("figcaption");
let photo = null; // {image, box, fit, rows, columns, pinned}
let picture = null; // photo.image, decoded

/** What a fit means, as [bold, plain] words. */
function explained({ fit, box, rows, columns }) {
  const share = Math.round(100 * (box[2] - box[0]) * (box[3] - box[1]));
  if (fit === "crop" && share === 100) return ["All of it,", " for the photo is square."];
  if (fit === "crop") return [`The bright square, ${share}\u00a0% of the photo.`, " The rest is cut off."];
  if (fit === "squash") return ["All of it,", " squeezed into a square."];
  return ["All of it", ` in its own shape: ${rows} × ${columns} patches.`];
}

function paint() {
  const scale = Math.min(MOST_WIDE / picture.naturalWidth, MOST_HIGH / picture.naturalHeight);
  const size = [picture.naturalWidth, picture.naturalHeight].map((side) => Math.max(8, Math.round(side * scale)));
  [canvas.width, canvas.height] = size.map((side) => Math.round(side * devicePixelRatio));
  [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  const context = canvas.getContext("2d");
  context.scale(canvas.width / size[0], canvas.height / size[1]);
  const [left, top, right, bottom] = photo.box.map((share, i) => share * size[i % 2]);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, ...size);
  if (photo.fit === "crop") {
    const outside = new Path2D();
    outside.rect(0, 0, ...size);
    outside.rect(left, top, right - left, bottom - top);
    context.fillStyle = "rgb(0 0 0 / 62%)";
    context.fill(outside, "evenodd");
    context.strokeStyle = "#fff";
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, top + 0.75, right - left - 1.5, bottom - top - 1.5);
  }
  if (photo.pinned === null) return;
  const [width, height] = [(right - left) / photo.columns, (bottom - top) / photo.rows];
  const at = [left + (photo.pinned % photo.columns) * width, top + Math.floor(photo.pinned / photo.columns) * height];
  for (const [style, line] of [["rgb(0 0 0 / 60%)", 3.5], ["#fff", 1.5]]) {
    context.strokeStyle = style;
    context.lineWidth = line;
    context.strokeRect(...at, width, height);
  }
}

/** The patch under a point of the page, null where the model saw nothing. */
function patchAt({ clientX, clientY }) {
  const place = canvas.getBoundingClientRect();
  const [left, top, right, bottom] = photo.box;
  const x = ((clientX - place.left) / place.width - left) / (right - left);
  const y = ((clientY - place.top) / place.height - top) / (bottom - top);
  if (x < 0 || y < 0 || x >= 1 || y >= 1) return null;
  return Math.floor(y * photo.rows) * photo.columns + Math.floor(x * photo.columns);
}

async function show() {
  const next = window.vitDemoPhoto ?? null;
  if (next && next.image !== photo?.image) {
    const decoded = new Image();
    decoded.src = next.image;
    await decoded.decode();
    if (next !== window.vitDemoPhoto) return; // another one came meanwhile
    picture = decoded;
  }
  photo = next;
  figure.hidden = !photo;
  if (!photo) return;
  const [bold, plain] = explained(photo);
  words.replaceChildren(Object.assign(document.createElement("b"), { textContent: bold }), plain);
  canvas.setAttribute("aria-label", `The whole photo. What the model sees of it: ${bold}${plain}`);
  paint();
}

canvas.addEventListener("click", (event) => {
  const patch = photo && patchAt(event);
  if (patch !== null) document.dispatchEvent(new CustomEvent("vit-demo:pick", { detail: patch }));
});
document.addEventListener("vit-demo:seen", show); // the stage may have been first, or may follow
show();
