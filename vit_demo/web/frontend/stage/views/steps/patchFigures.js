// @ts-check
// Steps 1 to 3: the patches in a row, one patch times one filter, and the sequence of tokens.

import { make, pixelCanvas } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { placeOf } from "../../format.js";
import { strongest } from "../../heatmapColours.js";
import {
  arithmetic,
  bracketed,
  captioned,
  choiceButton,
  filterPixels,
  hint,
  inputPixels,
  largest,
  moreTerms,
  productsOf,
  short,
} from "./painting.js";

const MOST_LINES = 7;
const MOST_NUMBERS = 12; // of a line

/** The rows of a grid that are shown: if there are many, the first two, the last, and those around the chosen one. */
export function shownRows({ rows }, chosen) {
  const isShown = (row) => rows <= MOST_LINES || row < 2 || row === rows - 1 || Math.abs(row - chosen) < 2;
  return Array.from({ length: rows }, (_, row) => row).filter(isShown);
}

/** Step 1: the patches as numbered tiles in reading order, one line for each row of the picture. */
export function rowFigure({ result, tour }) {
  const { rows, columns, numPatches, tokenOf, pixelated } = result;
  const every = Math.ceil(columns / MOST_NUMBERS);
  const placeAlong = (index, count) => `${(100 * index) / Math.max(1, count - 1)}%`;
  const tileOf = (row, column) => {
    const patch = row * columns + column;
    const style = `background-position: ${placeAlong(column, columns)} ${placeAlong(row, rows)}`;
    const className = patch === tour.patch ? "chosen" : tokenOf[patch] < 0 ? "dropped" : "";
    return make("span", {}, make("i", { className, style }), column % every ? "" : String(patch + 1));
  };
  const shown = shownRows(result, Math.floor(tour.patch / columns));
  const tiles = shown.flatMap((row, i) => [
    ...(i && row > shown[i - 1] + 1 ? [make("b", {}, "⋮")] : []),
    ...Array.from({ length: columns }, (_, column) => tileOf(row, column)),
  ]);
  const figure = make("div", {
    className: pixelated ? "tiles pixelated" : "tiles",
    role: "img",
    ariaLabel: translate("{patches} patches in a row, in reading order", { patches: numPatches }),
    style: `--columns: ${columns}; --rows: ${rows}`,
  });
  figure.append(...tiles);
  const caption = translate("Patch {number} of {all}: {place}. Choose another one in the picture.", {
    number: tour.patch + 1,
    all: numPatches,
    place: placeOf(result, tour.patch),
  });
  return [figure, hint(caption)];
}

/** Step 2: a patch, a filter, their products and the sum; below them all filters that were sent. */
export function productFigure({ result, facts, shared, patch, tour, paint, choose }) {
  const { filters, kernel, bias } = shared;
  if (!filters) return [paint.vector(translate("token"), patch.embedded ?? patch.token)];
  const size = facts.patchValues;
  const weightsOf = (i) => kernel.subarray(i * size, (i + 1) * size);
  const responseOf = (i) => patch.embedded[filters[i]];
  const order = [...filters.keys()];
  const chosen = tour.filter ?? strongest(order.map(responseOf));
  const side = facts.patchSize;
  const picture = (pixels) => pixelCanvas(pixels, side, side);
  const filterCanvas = (i) =>
    facts.channels === 3 ? picture(filterPixels(weightsOf(i))) : paint.signed(weightsOf(i), side);
  const pixels = inputPixels(patch.pixels, { channels: facts.channels, paper: result.pixelated, ...shared.network });
  const products = productsOf(patch.pixels, weightsOf(chosen), facts.channels);
  const equation = make(
    "div",
    { className: "equation" },
    captioned(picture(pixels), english("patch")),
    make("span", {}, "×"),
    captioned(filterCanvas(chosen), translate("filter {number}", { number: filters[chosen] + 1 })),
    make("span", {}, "="),
    captioned(paint.signed(products, side), english("products")),
    make("span", {}, "→"),
    captioned(make("output", {}, short(responseOf(chosen))), english("sum + bias")),
  );
  const gallery = order.map((i) => {
    const response = short(responseOf(i));
    const ariaLabel = translate("Filter {number}: {value}", { number: filters[i] + 1, value: response });
    const content = [filterCanvas(i), make("small", {}, response)];
    return choiceButton(`filter ${i}`, i === chosen, () => choose({ filter: i }), { ariaLabel }, ...content);
  });
  const shown = translate("The {count} of {all} filters with the largest weights, and what each makes of this patch.", {
    count: order.length,
    all: facts.width,
  });
  return [
    equation,
    arithmetic(writtenProduct(patch.pixels, weightsOf(chosen), bias[chosen], responseOf(chosen))),
    make("div", { className: "filters" }, ...gallery),
    hint(shown),
    paint.vector(translate("token"), patch.embedded, { mark: filters[chosen] }),
  ];
}

/** The three largest products, and what they and the others add up to. */
function writtenProduct(pixels, weights, bias, total) {
  const indices = [...pixels.keys()].sort(
    (a, b) => Math.abs(pixels[b] * weights[b]) - Math.abs(pixels[a] * weights[a]),
  );
  const terms = indices.slice(0, 3).map((i) => `${short(pixels[i])}·${bracketed(weights[i])}`);
  return `${terms.join(" + ")}${moreTerms(pixels.length - terms.length)} + ${translate("bias")} ${bracketed(bias)} ≈ ${short(total)}`;
}

/** Step 3: the tokens in their order, and the sum of patch and position of the chosen one. */
export function sequenceFigure({ result, facts, patch, tour, paint }) {
  const { embedded, position, token, class_token: classToken } = patch;
  const place = tour.patch + 1;
  const names = [];
  if (facts.hasClassToken) names.push([translate("class"), "prefix"]);
  for (let i = 0; i < facts.registers; i++) names.push([`r${i + 1}`, "prefix"]);
  const around = [1, 2, place - 1, place, place + 1, facts.patches];
  const shown = [...new Set(around)].filter((n) => result.tokenOf[n - 1] >= 0).sort((a, b) => a - b);
  shown.forEach((n, i) => {
    if (i && n > shown[i - 1] + 1) names.push(["…", "gap"]);
    names.push([String(n), n === place ? "chosen" : "", n]);
  });
  const ariaLabel = translate("The sequence of {tokens} tokens", { tokens: facts.tokens });
  const row = names.map(([name, className]) => make("span", { className }, name));
  const [name, whole] = [translate("patch {place}", { place }), translate("token")];
  const alone = (title, values) => paint.vector(title, values, { peak: largest(values) });
  let vectors = [alone(whole, token)];
  if (position) {
    const isNormed = facts.positions === "normed";
    const sum = isNormed ? embedded.map((value, i) => value + position[i]) : token;
    const title = isNormed ? translate("sum") : whole;
    const terms = paint.sum([name, embedded], [`+ ${translate("position")}`, position], [`= ${title}`, sum]);
    vectors = isNormed ? [...terms, alone(translate("token after the norm"), token)] : terms;
  }
  if (classToken) vectors.push(alone(translate("class token"), classToken));
  return [make("div", { className: "sequence", role: "img", ariaLabel }, ...row), ...vectors];
}
