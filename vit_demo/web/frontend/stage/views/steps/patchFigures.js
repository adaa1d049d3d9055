// Steps 1 to 3: the patches in a row, one patch times one filter, and the sequence of tokens.

import { make } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { placeOf } from "../../format.js";
import { filterPixels, inputPixels, largest, productsOf, short } from "./painting.js";

const ROW_WIDTH = 680; // the units in which the row of patches is laid out
const TILE_GAP = 0.16; // of a tile

/** Step 1: every patch as a tile, row by row; a canvas, since there can be more than a thousand. */
export function rowFigure({ result, tour }) {
  const { rows, columns, numPatches, picture } = result;
  const perLine = Math.min(numPatches, Math.max(columns, Math.ceil(Math.sqrt(numPatches * 4))));
  const tile = ROW_WIDTH / (perLine * (1 + TILE_GAP));
  const step = tile * (1 + TILE_GAP);
  const lines = Math.ceil(numPatches / perLine);
  const scale = 2;
  const canvas = make("canvas", {
    width: ROW_WIDTH * scale,
    height: Math.ceil(lines * step * scale),
    className: "tiles",
  });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", translate("{patches} patches in a row, in reading order", { patches: numPatches }));
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.imageSmoothingEnabled = !result.pixelated;
  const [width, height] = [result.size[0] / columns, result.size[1] / rows];
  const accent = getComputedStyle(document.querySelector(".stage")).getPropertyValue("--accent");
  for (let patch = 0; patch < numPatches; patch++) {
    const [x, y] = [(patch % perLine) * step, Math.floor(patch / perLine) * step];
    context.globalAlpha = result.tokenOf[patch] < 0 ? 0.15 : 1;
    context.drawImage(
      picture,
      (patch % columns) * width,
      Math.floor(patch / columns) * height,
      width,
      height,
      x,
      y,
      tile,
      tile,
    );
    if (patch === tour.patch) {
      context.strokeStyle = accent;
      context.lineWidth = Math.max(2, tile * 0.08);
      context.strokeRect(x, y, tile, tile);
    }
  }
  const caption = translate("Patch {number} of {all}: {place}. Click another one in the picture.", {
    number: tour.patch + 1,
    all: numPatches,
    place: placeOf(result, tour.patch),
  });
  return [canvas, make("p", { className: "hint", textContent: caption })];
}

/** Step 2: a patch, a filter, their products and the sum; below them all filters that were sent. */
export function productFigure({ facts, shared, patch, tour, paint, choose }) {
  const { filters, kernel, bias } = shared;
  const size = facts.patchValues;
  const weightsOf = (i) => kernel.subarray(i * size, (i + 1) * size);
  const responseOf = (i) => patch.embedded[filters[i]];
  const order = [...filters.keys()];
  const strongest = order.reduce((best, i) => (Math.abs(responseOf(i)) > Math.abs(responseOf(best)) ? i : best), 0);
  const chosen = tour.filter ?? strongest;
  const side = facts.patchSize;
  const filterCanvas = (i) =>
    facts.channels === 3 ? paint.picture(filterPixels(weightsOf(i)), side) : paint.signed(weightsOf(i), side);
  const products = productsOf(patch.pixels, weightsOf(chosen), facts.channels);
  const part = (label, canvas) => make("figure", {}, canvas, make("figcaption", { textContent: label }));
  const sum = make("output", { textContent: short(responseOf(chosen)) });
  const equation = make(
    "div",
    { className: "equation" },
    part(
      english("patch"),
      paint.picture(inputPixels(patch.pixels, { channels: facts.channels, ...shared.network }), side),
    ),
    make("span", { textContent: "×" }),
    part(translate("filter {number}", { number: filters[chosen] + 1 }), filterCanvas(chosen)),
    make("span", { textContent: "=" }),
    part(english("products"), paint.signed(products, side)),
    make("span", { textContent: "→" }),
    make("figure", {}, sum, make("figcaption", { textContent: english("sum + bias") })),
  );
  const gallery = order.map((i) => {
    const button = make(
      "button",
      { type: "button" },
      filterCanvas(i),
      make("small", { textContent: short(responseOf(i)) }),
    );
    button.dataset.key = `filter ${i}`;
    button.setAttribute("aria-pressed", String(i === chosen));
    const values = { number: filters[i] + 1, value: short(responseOf(i)) };
    button.setAttribute("aria-label", translate("Filter {number}: {value}", values));
    button.addEventListener("click", () => choose({ filter: i }));
    return button;
  });
  return [
    equation,
    make("p", {
      className: "arithmetic",
      textContent: writtenProduct(patch.pixels, weightsOf(chosen), bias[chosen], responseOf(chosen)),
    }),
    make("div", { className: "filters" }, ...gallery),
    make("p", {
      className: "hint",
      textContent: translate("The {count} strongest of {all} filters, with what each makes of this patch.", {
        count: order.length,
        all: facts.width,
      }),
    }),
    paint.vector(translate("token"), patch.embedded, { mark: filters[chosen] }),
  ];
}

/** The three largest products, and what they and the others add up to. */
function writtenProduct(pixels, weights, bias, total) {
  const indices = [...pixels.keys()].sort(
    (a, b) => Math.abs(pixels[b] * weights[b]) - Math.abs(pixels[a] * weights[a]),
  );
  const terms = indices.slice(0, 3).map((i) => `${short(pixels[i])}·${bracketed(weights[i])}`);
  const rest = pixels.length - terms.length;
  const more = rest > 0 ? moreTerms(rest) : "";
  return `${terms.join(" + ")}${more} + ${translate("bias")} ${bracketed(bias)} ≈ ${short(total)}`;
}

/** The end of a sum of which some terms are not written. */
export const moreTerms = (count) => ` + … (${translate("{count} more|{count} more", { count })})`;

export const bracketed = (value) => (value < 0 ? `(${short(value)})` : short(value));

/** Step 3: the tokens in their order, and the sum of patch and position of the chosen one. */
export function sequenceFigure({ result, facts, patch, tour, paint }) {
  const { embedded, position, token, class_token: classToken } = patch;
  const peak = largest(embedded, position, token);
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
  const row = names.map(([name, kind]) => make("span", { className: kind, textContent: name }));
  const vectors = [
    paint.vector(translate("patch {place}", { place }), embedded, { peak }),
    paint.vector(`+ ${translate("position")}`, position, { peak }),
    paint.vector(`= ${translate("token")}`, token, { peak }),
  ];
  if (classToken) vectors.push(paint.vector(translate("class token"), classToken, { peak: largest(classToken) }));
  const channel = embedded.reduce((best, v, i) => (Math.abs(v) > Math.abs(embedded[best]) ? i : best), 0);
  const terms = `${short(embedded[channel])} + ${bracketed(position[channel])} ≈ ${short(token[channel])}`;
  const sum = translate("number {number}: {sum}", { number: channel + 1, sum: terms });
  return [
    make(
      "div",
      {
        className: "sequence",
        role: "img",
        ariaLabel: translate("The sequence of {tokens} tokens", { tokens: facts.tokens }),
      },
      ...row,
    ),
    ...vectors,
    make("p", { className: "arithmetic", textContent: `${sum} (${placeOf(result, tour.patch)})` }),
  ];
}
