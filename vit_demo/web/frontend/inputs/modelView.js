// @ts-check
// The whole photo, small, with the part that the model saw left bright. It follows the stage; a click on it chooses a patch
// there.

import { loadImage, make } from "../shared/dom.js";
import { fitInside, partOf, patchAt, patchBox } from "../shared/geometry.js";
import { languageChange, translate } from "../shared/language.js";
import { clickedPatch, modelInput, resultStatus } from "../shared/pageState.js";

const LARGEST = [84, 64]; // width and height in CSS pixels, as in photo.css
const HALO = [
  ["rgb(0 0 0 / 60%)", 3.5],
  ["#fff", 1.5],
];

export function createModelView(element) {
  const [figure, canvas, caption] = ["figure", "canvas", "figcaption"].map((name) => element.querySelector(name));
  let photo = /** @type {any} */ (null); // {image, box, fit, rows, columns, pinned}
  let picture = /** @type {any} */ (null); // photo.image, decoded

  async function show({ photo: next }) {
    if (next && next.image !== photo?.image) {
      const decoded = await loadImage(next.image);
      if (next !== modelInput.latest().photo) return; // a newer one has come meanwhile
      picture = decoded;
    }
    photo = next;
    figure.hidden = !photo;
    if (!photo) return;
    const [bold, plain] = describeFit(photo);
    caption.replaceChildren(make("b", { textContent: bold }), ` ${plain}`);
    const label = translate("The whole photo. What the model sees of it: {words}", {
      words: `${bold} ${plain}`.trim(),
    });
    canvas.setAttribute("aria-label", label);
    paint(canvas, picture, photo);
  }

  canvas.addEventListener("click", ({ clientX, clientY }) => {
    const inputBox = photo && partOf(canvas.getBoundingClientRect(), photo.box);
    const patch = photo && patchAt(clientX, clientY, inputBox, photo);
    if (patch !== null) clickedPatch.publish(patch);
  });
  modelInput.subscribe(element, show);
  show(modelInput.latest()); // the stage may have been first
  resultStatus.subscribe(element, ({ state }) => figure.classList.toggle("old", state === "failed"));
  languageChange.subscribe(element, () => show(modelInput.latest()));
}

/** What a fit means, as [bold, plain] words. */
export function describeFit({ fit, box: [left, top, right, bottom], rows, columns }) {
  const percentage = Math.round(100 * (right - left) * (bottom - top));
  if (fit === "crop" && percentage === 100) return [translate("All of it,"), translate("because the photo is square.")];
  if (fit === "crop") {
    return [
      translate("The bright square, {percentage}\u00a0% of the photo.", { percentage }),
      translate("The rest is cut off."),
    ];
  }
  if (fit === "squash" && percentage < 100) {
    return [
      translate("The bright part, {percentage}\u00a0% of the photo,", { percentage }),
      translate("stretched to a square."),
    ];
  }
  if (fit === "squash") return [translate("All of it,"), translate("stretched to a square.")];
  if (fit === "border") return [translate("All of it,"), translate("with bars that make it a square.")];
  const kept = translate("with its aspect ratio kept: {rows} × {columns} patches.", { rows, columns });
  return [translate("All of it,"), kept];
}

function paint(canvas, picture, photo) {
  const size = fitInside([picture.naturalWidth, picture.naturalHeight], LARGEST).map((side) => Math.max(8, side));
  const [width, height] = size;
  [canvas.width, canvas.height] = size.map((side) => Math.round(side * devicePixelRatio));
  [canvas.style.width, canvas.style.height] = size.map((side) => `${side}px`);
  const context = canvas.getContext("2d");
  context.scale(canvas.width / width, canvas.height / height);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  const inputBox = partOf({ left: 0, top: 0, width, height }, photo.box);
  if (photo.fit === "crop" || photo.fit === "squash") dimOutside(context, size, inputBox);
  if (photo.pinned === null) return;
  const patch = patchBox(photo.pinned, inputBox, photo);
  for (const [style, line] of HALO) {
    context.strokeStyle = style;
    context.lineWidth = line;
    context.strokeRect(patch.left, patch.top, patch.width, patch.height);
  }
}

function dimOutside(context, size, { left, top, width, height }) {
  const outside = new Path2D();
  outside.rect(0, 0, size[0], size[1]);
  outside.rect(left, top, width, height);
  context.fillStyle = "rgb(0 0 0 / 62%)";
  context.fill(outside, "evenodd");
  context.strokeStyle = "#fff";
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, top + 0.75, width - 1.5, height - 1.5);
}
