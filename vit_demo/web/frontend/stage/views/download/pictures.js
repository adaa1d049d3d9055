// @ts-check
// A map over its picture with a caption, as PNG and as SVG.

import { loadImage, make } from "../../../shared/dom.js";
import { fitInside } from "../../../shared/geometry.js";
import { plain } from "../../../shared/language.js";
import { heatCanvas, heatStops, scaleEnd } from "../../heatmapColours.js";
import { paintResult } from "../../picture.js";
import { captionOf } from "./description.js";

const SIDE = 896; // pixels of the longer side of a saved picture
const SQUARE = 1080; // pixels of a picture that is sent to others
const LINE = 30; // pixels of a line of its caption
const MARGIN = 20;
const BAR = 12; // pixels of the height of the colour bar
export const FONT = "system-ui, -apple-system, sans-serif";

const sizeOf = ({ size }) => fitInside(size, [SIDE, SIDE]);

/** The picture under its map as a canvas, without a caption. */
function pictureOf({ result, ...look }) {
  const [width, height] = sizeOf(result);
  const canvas = make("canvas", { width, height });
  paintResult(canvas, [width, height], result, look);
  return canvas;
}

/** A text in lines of a font that fit a width. */
function wrapped(text, font, width) {
  const context = make("canvas").getContext("2d");
  context.font = font;
  const lines = [""];
  for (const part of text.split(/(?<=[\s，；：。])/)) {
    if (context.measureText(lines.at(-1) + part).width > width) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trim()).filter(Boolean);
}

/** The caption in lines that fit the width of the picture: [text, font weight]. */
function linesOf(saved, width) {
  return captionOf(saved).flatMap((text, i) => {
    const weight = i ? 400 : 600;
    return wrapped(text, `${weight} 21px ${FONT}`, width - 3 * MARGIN).map((line) => [line, weight]);
  });
}

/** Resolves to a square PNG for others, a Blob: the picture as it is on the stage below a sentence. */
export function squareOf(saved, sentence) {
  const canvas = make("canvas", { width: SQUARE, height: SQUARE });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, SQUARE, SQUARE);
  context.fillStyle = "#17181c";
  context.textAlign = "center";
  context.font = `600 44px ${FONT}`;
  const lines = wrapped(sentence, context.font, SQUARE - 6 * MARGIN).slice(0, 2);
  lines.forEach((line, i) => {
    context.fillText(line, SQUARE / 2, 100 + 56 * (i + (lines.length > 1 ? -0.5 : 0)));
  });
  context.font = `400 26px ${FONT}`;
  context.fillText("vit_demo", SQUARE / 2, SQUARE - 24);
  const picture = pictureOf(saved);
  const [width, height] = fitInside([picture.width, picture.height], [SQUARE - 220, SQUARE - 220]);
  context.imageSmoothingEnabled = !saved.result.pixelated;
  context.drawImage(picture, (SQUARE - width) / 2, 150 + (SQUARE - 220 - height) / 2, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Resolves to a PNG, a Blob. */
export async function pngOf(saved) {
  const picture = pictureOf(saved);
  const words = await loadImage(`data:image/svg+xml,${encodeURIComponent(captioned(saved, ""))}`);
  const canvas = make("canvas", { width: words.naturalWidth, height: words.naturalHeight });
  const context = canvas.getContext("2d");
  for (const layer of [words, picture]) context.drawImage(layer, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** An SVG: the picture and the map as images of their own, the caption as text. */
export function svgOf(saved) {
  const { result, map } = saved;
  const [width, height] = sizeOf(result);
  const below = pictureOf({ ...saved, map: new Float32Array(map.length) }); // a photo has less colour there
  const ground = below.toDataURL(result.pixelated ? "image/png" : "image/jpeg", 0.9);
  const heat = heatCanvas(saved, result).toDataURL();
  const sharp = ' style="image-rendering: pixelated"';
  const image = (url, isSharp) =>
    `<image href="${url}" width="${width}" height="${height}" preserveAspectRatio="none"${isSharp ? sharp : ""}/>`;
  return captioned(saved, `${image(ground, result.pixelated)}\n${image(heat, !saved.smooth)}\n`);
}

/** An SVG of these images, with the colour bar, the values at its ends and the caption below them. */
function captioned(saved, images) {
  const { result, method, map, style, opacity } = saved;
  const [width, height] = sizeOf(result);
  const lines = linesOf(saved, width);
  const top = height + MARGIN + LINE; // of the caption, below the colour bar
  const texts = lines.map(
    ([line, weight], i) =>
      `<text x="${MARGIN}" y="${top + LINE * (i + 0.72)}" font-weight="${weight}">${escapeXml(line)}</text>`,
  );
  const colours = heatStops(opacity, { ...style, paper: result.pixelated });
  const stops = colours.map((colour, i) => `<stop offset="${i / (colours.length - 1)}" stop-color="${colour}"/>`);
  const end = scaleEnd(map, style);
  const format = (value) => escapeXml(plain(method.format(value)));
  const written = (x, anchor, text) =>
    `<text x="${x}" y="${height + MARGIN + 12}" font-size="18" text-anchor="${anchor}">${text}</text>`;
  const total = top + MARGIN + LINE * lines.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${total}" viewBox="0 0 ${width} ${total}" font-family="${FONT}" font-size="21">
<rect width="${width}" height="${total}" fill="#fff"/>
${images}<defs><linearGradient id="scale">${stops.join("")}</linearGradient></defs>
<rect x="${MARGIN + 100}" y="${height + MARGIN}" width="${width - 2 * MARGIN - 200}" height="${BAR}" fill="url(#scale)"/>
${written(MARGIN + 92, "end", style.signed ? format(-end) : "0")}
${written(width - MARGIN - 92, "start", format(end))}
${texts.join("\n")}
</svg>
`;
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu; // which no XML may hold

const escapeXml = (text) => text.replace(NOT_XML, "\ufffd").replace(/[&<>"']/g, (character) => ENTITIES[character]);
