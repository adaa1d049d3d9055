// @ts-check
// A map over its picture with a caption, as PNG, as SVG, and as a page that needs no server.

import { constants } from "../../../shared/constants.js";
import { make } from "../../../shared/dom.js";
import { currentLanguage, translate } from "../../../shared/language.js";
import { formatNumber, percent } from "../../format.js";
import { heatCanvas, heatStops, scaleEnd } from "../../heatmapColours.js";
import { paintResult } from "../../picture.js";
import { captionOf } from "./description.js";

const SIDE = 896; // pixels of the longer side of a saved picture
const LINE = 30; // pixels of a line of its caption
const MARGIN = 20;
const BAR = 12; // pixels of the height of the colour bar
export const FONT = "system-ui, -apple-system, sans-serif";

const sizeOf = ({ size: [width, height] }) => {
  const scale = SIDE / Math.max(width, height);
  return [Math.round(width * scale), Math.round(height * scale)];
};

/** The picture under its map as a canvas, without a caption. */
function pictureOf({ result, map, style, opacity, smooth, dropped }) {
  const [width, height] = sizeOf(result);
  const canvas = make("canvas", { width, height });
  paintResult(canvas, [width, height], result, { map, style, opacity, smooth, dropped });
  return canvas;
}

/** The colour bar of a map: the colours along it, and the values at its ends. */
function barOf({ result, method, map, style, opacity }) {
  const end = scaleEnd(map, style);
  const format = (value) => method.format(value).replaceAll("*", "");
  const colours = heatStops(opacity, { ...style, paper: result.pixelated });
  return { colours, low: style.signed ? format(-end) : "0", high: format(end) };
}

/** The caption in lines that fit the width of the picture: [text, font weight]. */
function linesOf(saved, width) {
  const context = make("canvas").getContext("2d");
  return captionOf(saved).flatMap((text, i) => {
    const weight = i ? 400 : 600;
    context.font = `${weight} 21px ${FONT}`;
    const lines = [""];
    for (const part of text.split(/(?<=[\s，；：])/)) {
      if (context.measureText(lines.at(-1) + part).width > width - 3 * MARGIN) lines.push("");
      lines[lines.length - 1] += part;
    }
    return lines.filter(Boolean).map((line) => [line.trim(), weight]);
  });
}

/** Resolves to a PNG, a Blob. */
export function pngOf(saved) {
  const picture = pictureOf(saved);
  const lines = linesOf(saved, picture.width);
  const top = picture.height + MARGIN + LINE; // of the caption, below the colour bar
  const canvas = make("canvas", { width: picture.width, height: top + MARGIN + LINE * lines.length });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0);
  context.fillStyle = "#17181c";
  paintBar(context, barOf(saved), picture);
  lines.forEach(([line, weight], i) => {
    context.font = `${weight} 21px ${FONT}`;
    context.fillText(line, MARGIN, top + LINE * (i + 0.72), canvas.width - 2 * MARGIN);
  });
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function paintBar(context, { colours, low, high }, { width, height }) {
  context.font = `400 18px ${FONT}`;
  const [left, right] = [
    MARGIN + context.measureText(low).width + 10,
    width - MARGIN - context.measureText(high).width - 10,
  ];
  const gradient = context.createLinearGradient(left, 0, right, 0);
  for (const [i, colour] of colours.entries()) gradient.addColorStop(i / (colours.length - 1), colour);
  context.fillText(low, MARGIN, height + MARGIN + 12);
  context.fillText(high, right + 10, height + MARGIN + 12);
  context.save();
  context.fillStyle = gradient;
  context.fillRect(left, height + MARGIN, right - left, BAR);
  context.restore();
}

/** An SVG: the picture and the map as images of their own, the caption as text. */
export function svgOf(saved) {
  const { result, map, style, opacity } = saved;
  const [width, height] = sizeOf(result);
  const lines = linesOf(saved, width);
  const top = height + MARGIN + LINE; // of the caption, below the colour bar
  const below = pictureOf({ ...saved, map: new Float32Array(map.length) }); // a photo has less colour there
  const ground = below.toDataURL(result.pixelated ? "image/png" : "image/jpeg", 0.9);
  const heat = heatCanvas(map, result, opacity, style).toDataURL();
  const sharp = ' style="image-rendering: pixelated"';
  const image = (url, isSharp) =>
    `<image href="${url}" width="${width}" height="${height}" preserveAspectRatio="none"${isSharp ? sharp : ""}/>`;
  const texts = lines.map(
    ([line, weight], i) =>
      `<text x="${MARGIN}" y="${top + LINE * (i + 0.72)}" font-weight="${weight}">${escapeXml(line)}</text>`,
  );
  const { colours, low, high } = barOf(saved);
  const stops = colours.map((colour, i) => `<stop offset="${i / (colours.length - 1)}" stop-color="${colour}"/>`);
  const end = (x, anchor, text) =>
    `<text x="${x}" y="${height + MARGIN + 12}" font-size="18" text-anchor="${anchor}">${escapeXml(text)}</text>`;
  const total = top + MARGIN + LINE * lines.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" font-family="${FONT}" font-size="21">
<rect width="${width}" height="${total}" fill="#fff"/>
${image(ground, result.pixelated)}
${image(heat, !saved.smooth)}
<defs><linearGradient id="scale">${stops.join("")}</linearGradient></defs>
<rect x="${MARGIN + 100}" y="${height + MARGIN}" width="${width - 2 * MARGIN - 200}" height="${BAR}" fill="url(#scale)"/>
${end(MARGIN + 92, "end", low)}
${end(width - MARGIN - 92, "start", high)}
${texts.join("\n")}
</svg>
`;
}

/** A page with the picture under its map, the predictions and the code; it loads nothing. */
export function reportOf(saved, python) {
  const { result } = saved;
  const [title] = captionOf(saved).map(escapeXml);
  const rows = result.predictions.slice(0, constants.numClasses).map(({ label, probability, scores }) => {
    const score = scores === "none" ? formatNumber(probability) : percent(100 * probability, 2);
    return `<tr><th>${escapeXml(label)}</th><td>${score}</td></tr>`;
  });
  return `<!DOCTYPE html>
<html lang="${currentLanguage()}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>vit_demo: ${title}</title>
<style>
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 ${FONT}; color: #17181c; }
.pictures { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: start; }
.pictures > * { flex: 1 1 20rem; max-width: 32rem;${result.pixelated ? " image-rendering: pixelated;" : ""} }
th { padding-right: 2rem; text-align: left; font-weight: 400; } td { text-align: right; }
pre { padding: 1rem; overflow-x: auto; border-radius: 12px; background: #f1f1f3; }
</style>
</head>
<body>
<h1>${title}</h1>
<div class="pictures">
<img src="${result.pictureUrl}" alt="${escapeXml(translate("Picture"))}">
${svgOf(saved)}
</div>
<h2>${escapeXml(translate("Prediction"))}</h2>
<table>${rows.join("")}</table>
<h2>Python</h2>
<pre>${escapeXml(python)}</pre>
</body>
</html>
`;
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escapeXml = (text) => text.replace(/[&<>"']/g, (character) => ENTITIES[character]);
