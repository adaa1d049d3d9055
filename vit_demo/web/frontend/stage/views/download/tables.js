// @ts-check
// Every head, and the curves of deletion and insertion, as CSV and as one figure.

import { translate } from "../../../shared/language.js";
import { heatCanvas, peakOf } from "../../heatmapColours.js";
import { mapsOfLevels } from "../../result.js";
import { FONT } from "./pictures.js";

const table = (rows) => `${rows.map((row) => row.join()).join("\n")}\n`;
const place = (index, width) => [Math.floor(index / width) + 1, (index % width) + 1]; // from 1, as on the page

/** Attention from the class token, or what stands for it, to each patch, in every block and head. */
export function headsCsv({ attentionMaps, numPatches, numHeads, columns }) {
  const rows = mapsOfLevels(attentionMaps, numPatches).flatMap((map, i) =>
    [...map].map((value, patch) => [...place(i, numHeads), ...place(patch, columns), value]),
  );
  return table([["block", "head", "row", "column", "attention"], ...rows]);
}

/** What is left at each share of the patches, for the map and, after it, for each random order. */
export function curvesCsv(measured) {
  const rows = measured.flatMap(({ baseline, fractions, ...sides }) =>
    ["deletion", "insertion"].flatMap((name) =>
      [sides[name].curve, ...sides[name].random].flatMap((curve, order) =>
        Array.from(curve, (value, i) => [baseline, name, order ? `random ${order}` : "map", fractions[i], value]),
      ),
    ),
  );
  return table([["removed", "test", "order", "share", "value"], ...rows]);
}

const [CELL, CHART] = [112, { width: 336, height: 160 }];

/** Every head on one scale, and below them the curves that were measured, as SVG. */
export function figureSvg({ result, opacity }, measured) {
  const { attentionMaps, numPatches, numHeads, numBlocks, size, pictureUrl } = result;
  const maps = mapsOfLevels(attentionMaps, numPatches);
  const style = { floor: Math.max(...maps.map(peakOf)) };
  const high = (CELL * size[1]) / size[0];
  const heads = maps.map((map, i) => {
    const [block, head] = place(i, numHeads);
    const at = `<g transform="translate(${8 + CELL * (block - 1)} ${20 + (high + 20) * (head - 1)})">`;
    const layers = [pictureUrl, heatCanvas({ map, opacity, style }, result).toDataURL()].map(
      (url) =>
        `<image href="${url}" width="${CELL - 8}" height="${high - 8}" preserveAspectRatio="none" style="image-rendering: pixelated"/>`,
    );
    return `${at}<text y="-4">${translate("block {block}, head {head}", { block, head })}</text>${layers.join("")}</g>`;
  });
  const top = 40 + (high + 20) * numHeads;
  const charts = measured.flatMap(({ baseline, fractions, ...sides }, row) =>
    ["deletion", "insertion"].map((name, column) => {
      const { curve, random } = sides[name];
      const [most, least] = [Math.max(...curve, ...random.flat()), Math.min(0, ...curve, ...random.flat())];
      const point = (value, k) =>
        [fractions[k] * (CHART.width - 16), (CHART.height * (most - value)) / (most - least)].join();
      const line = (values, colour) =>
        `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${Array.from(values, point).join(" ")}"/>`;
      const lines = [...random.map((values) => line(values, "#ccc")), line(curve, "#5b4bdb")].join("");
      const at = `translate(${8 + column * CHART.width} ${top + row * (CHART.height + 32)})`;
      const words = `${translate(name)} (${baseline}): ${least.toPrecision(2)} – ${most.toPrecision(2)}`;
      return `<g transform="${at}"><text y="-6">${words}</text>${lines}</g>`;
    }),
  );
  const box = [Math.max(CELL * numBlocks, 2 * CHART.width) + 16, top + measured.length * (CHART.height + 32)];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${box.join(" ")}" font-family="${FONT}" font-size="12"><rect width="100%" height="100%" fill="#fff"/>
${[...heads, ...charts].join("\n")}
</svg>
`;
}
