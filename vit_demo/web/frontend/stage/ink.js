// A drawing as ink on paper: the model sees white on black, but under a heatmap dark ink on light paper reads better.

import { make } from "../shared/dom.js";
import { BLACK_OF_INK, WHITE_OF_PAPER } from "./colourScales.js";

/** The grey that a brightness of the model's picture, 0 to 255, has on paper. */
export const greyOnPaper = (brightness) =>
  Math.round(WHITE_OF_PAPER + ((BLACK_OF_INK - WHITE_OF_PAPER) * brightness) / 255);

/** A decoded grey picture, white on black, as a canvas of the same size. */
export function inkOnPaper(picture) {
  const canvas = make("canvas", { width: picture.naturalWidth, height: picture.naturalHeight });
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < pixels.data.length; i += 4) pixels.data.fill(greyOnPaper(pixels.data[i]), i, i + 3);
  context.putImageData(pixels, 0, 0);
  return canvas;
}
