// @ts-check
// Which part of the photo the network gets: left bright in its small picture, and in words.

import { setText } from "../shared/dom.js";
import { fitInside, partOf } from "../shared/geometry.js";
import { languageChange, translate } from "../shared/language.js";
import { modelInput } from "../shared/pageState.js";

export function createCrop(panel) {
  const [frame, image, crop, words] = [".frame", "img.preview", ".crop", ".seen-part"].map((name) =>
    panel.querySelector(name),
  );

  function show() {
    const { photo } = modelInput.latest();
    crop.hidden = !photo || !["crop", "squash"].includes(photo.fit) || image.hidden || !image.naturalWidth;
    setText(words, photo ? describeFit(photo) : "");
    if (crop.hidden) return;
    const room = [frame.clientWidth, frame.clientHeight];
    const size = fitInside([image.naturalWidth, image.naturalHeight], room);
    const [[left, width], [top, height]] = size.map((side, i) => [(room[i] - side) / 2, side]);
    const part = partOf({ left, top, width, height }, photo.box);
    for (const [name, value] of Object.entries(part)) crop.style[name] = `${value}px`;
  }

  for (const each of [modelInput, languageChange]) each.subscribe(panel, show);
  image.addEventListener("load", show);
  new ResizeObserver(show).observe(frame);
}

/** What a fit means; *stars* make words bold. */
export function describeFit({ fit, box: [left, top, right, bottom], rows, columns }) {
  const percentage = Math.round(100 * (right - left) * (bottom - top));
  if (fit === "keep") return translate("*All of it*, in {rows} × {columns} squares.", { rows, columns });
  if (fit === "border") return translate("*All of it*, with bars that make it a square.");
  if (fit === "crop" && percentage === 100) return translate("*All of it*: the photo is square.");
  if (fit === "crop") return translate("*The bright square*, {percentage}\u00a0% of the photo.", { percentage });
  return percentage < 100
    ? translate("*The bright part*, {percentage}\u00a0% of the photo, stretched to a square.", { percentage })
    : translate("*All of it*, stretched to a square.");
}
