// @ts-check
// The class beside one that was named: the page's own examples of other things.

import { sketch } from "../../../pad/sketch.js";
import { PENS, toDataUrl } from "../../../pad/strokes.js";
import { translate } from "../../../shared/language.js";

const LINE = [
  [0.2, 0.93],
  [0.8, 0.93],
];

export function nameOfOthers(/** @type {string} */ task, /** @type {string} */ name) {
  if (task === "photos") return translate("something else");
  return /^\d$/.test(name) ? translate("another digit") : translate("a digit");
}

/** Examples that are not of that name, {source, picture, file, digit}: digits, or the example photos that are given. */
export function othersThan(/** @type {string} */ task, /** @type {string} */ name, photos) {
  if (task === "digits")
    return [..."0123456789"].filter((digit) => digit !== name).map((digit) => exampleDigit(digit, false));
  const urlOf = (photo) => new URL(`../../../../examples/button/${photo}.webp`, import.meta.url).href;
  return photos.map((photo) => ({ source: { example: photo.name }, picture: urlOf(photo.name), file: "" }));
}

/** An example digit, perhaps with a line below it. */
export function exampleDigit(digit, /** @type {boolean} */ isLined) {
  const strokes = sketch.exampleOf(digit);
  const picture = toDataUrl(isLined ? [...strokes, { width: PENS.medium, points: LINE }] : strokes);
  return { source: isLined ? { drawing: picture } : { example: `digit-${digit}` }, picture, file: "", digit };
}
