// @ts-check
// What a test of a heatmap found, in words.

import { make } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { formatArea, percent } from "../../format.js";

/**
 * [conclusion, measurements]: one sentence on what deletion and insertion mean for the class `name`, then both measurements.
 * A side speaks for the heatmap only if it does better than every random order.
 */
export function faithfulnessText(name, { deletion, insertion }) {
  const [deletes, inserts] = [deletion, insertion].map(beatsAll);
  return [
    translate(VERDICTS[Number(deletes)][Number(inserts)], { name, orders: deletion.random.length }),
    [
      translate("Deletion, the strongest squares masked first:"),
      comparison(deletion, translate("lower is better")),
      translate("Insertion, the strongest squares put in first:"),
      comparison(insertion, translate("higher is better")),
    ].join(" "),
  ];
}

/** Whether a side of a test is beyond all random orders. */
export const beatsAll = ({ random, orders_beaten: ordersBeaten }) => ordersBeaten === random.length;

/** By whether the heatmap deletes, and then inserts, better than every random order. */
const VERDICTS = [
  [
    english("*Not clearly better than random*: do not read the strongest squares as the reason for *{name}*."),
    english("*In part*: the strongest squares alone bring *{name}* back, but it does not clearly need them."),
  ],
  [
    english("*In part*: *{name}* needs the strongest squares, but they alone do not clearly bring it back."),
    english("*Yes, better than all {orders} random orders*: the strongest squares matter to *{name}*."),
  ],
];

/** Random orders differ, so how many of them the heatmap beats stands beside their mean. */
function comparison({ area, random_area: randomArea, random, orders_beaten: count }, goodSide) {
  const values = { area: formatArea(area), random: formatArea(randomArea), goodSide, count, all: random.length };
  return translate(
    "area {area} against {random} ({goodSide}), better than {count} of {all} random orders.|area {area} against {random} ({goodSide}), better than {count} of {all} random orders.",
    values,
  );
}

/**
 * How similar a heatmap stays when all weights are random, and no more than that: `correlations` as the weights are
 * randomized, for a map of `numPatches`.
 */
export function randomizationText(correlations, numPatches) {
  const [first, second] = correlations;
  const last = correlations.at(-1);
  const words = translate(
    "Beside the map of the same network with random weights, this one is {similarity} (correlation {value}; 1: the same order of squares, 0: unrelated).",
    { value: formatArea(last), similarity: similarity(last, numPatches) },
  );
  const isSudden = correlations.length > 2 && first - second > SUDDEN * (first - last);
  return isSudden
    ? `${words} ${translate("Most of the change comes with the classifier head, which is replaced first.")}`
    : words;
}

const SUDDEN = 0.5; // of the whole change

/** Two unrelated maps of n patches correlate by less than 2 / √(n - 1) in 95 % of all cases. */
function similarity(correlation, numPatches) {
  const chance = 2 / Math.sqrt(Math.max(1, numPatches - 1));
  if (Math.abs(correlation) <= chance) {
    return translate("no more similar than by chance, so it depends on what was learned");
  }
  if (correlation < 0) return translate("partly in reverse order, so it depends on what was learned");
  if (correlation > 0.7) return translate("very similar, so most of it does not depend on what was learned");
  return translate("partly similar, so part of it does not depend on what was learned");
}

// Small line charts in the page's colours: the curve of a heatmap beside those of random orders.

const WIDTH = 240;
const HEIGHT = 110;

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * A figure with its own title, legend and scale.
 * `curve` is the heatmap's, `randoms` those of random orders, over `places` from 0 to 1; `other`, {places, curve, words}, is
 * one to compare with. `ends` label the horizontal axis, and `format` writes the values at the ends of the vertical one, which
 * reaches at least `least`.
 *
 * @param {any} chart
 */
export function lineChart({
  title,
  places,
  curve,
  randoms,
  ends,
  legend,
  other = null,
  format = asPercentage,
  least = 0,
}) {
  const values = [...curve, ...randoms.flat(), ...(other?.curve ?? [])];
  const top = axisTop(Math.max(...values, least));
  const bottom = Math.min(...values) < 0 ? -axisTop(-Math.min(...values)) : 0;
  const heightOf = (value) => (HEIGHT * (top - value)) / (top - bottom);
  const point = (place, value) => [place * WIDTH, heightOf(value)].map((number) => number.toFixed(1));
  const path = (values, at = places) => `M${values.map((value, i) => point(at[i], value).join(" ")).join("L")}`;
  const names = other ? [...legend, other.words] : legend;
  const label = `${title}: ${names.join(", ")}`;
  const viewBox = `-2 -2 ${WIDTH + 4} ${HEIGHT + 4}`;
  const drawing = svg("svg", { viewBox, role: "img", "aria-label": label });
  for (const value of bottom ? [top, 0, bottom] : [top, top / 2, 0]) {
    const y = heightOf(value);
    drawing.append(svg("line", { class: "rule", x1: 0, x2: WIDTH, y1: y, y2: y }));
  }
  if (randoms.length) {
    const columns = places.map((_, i) => randoms.map((random) => random[i]));
    const means = columns.map((column) => column.reduce((sum, value) => sum + value, 0) / column.length);
    const highest = columns.map((column, i) => point(places[i], Math.max(...column)));
    const lowest = columns.map((column, i) => point(places[i], Math.min(...column)));
    const points = [...highest, ...lowest.reverse()].map((pair) => pair.join(",")).join(" ");
    drawing.append(svg("polygon", { class: "band", points }), svg("path", { class: "random", d: path(means) }));
  }
  if (other) drawing.append(svg("path", { class: "other", d: path(other.curve, other.places) }));
  drawing.append(svg("path", { class: "curve", d: path(curve) }));
  const classOf = (i) => (i === legend.length ? "other" : i ? "random" : "curve");
  const key = names.map((words, i) => make("span", { className: classOf(i) }, make("i"), words));
  const [highest, lowest] = [format(top), bottom ? format(bottom) : "0"].map((textContent) =>
    make("small", { textContent }),
  );
  return make(
    "figure",
    {},
    make("figcaption", { textContent: title }),
    make("div", { className: "frame" }, highest, drawing, lowest),
    make("div", { className: "ends" }, ...ends.map((words) => make("small", { textContent: words }))),
    make("div", { className: "key" }, ...key),
  );
}

/** The axis ends a little above the curves, at a number that is easy to read: 0.01, 0.02, 0.05, 0.1 and so on. */
export function axisTop(peak) {
  const power = 10 ** Math.floor(Math.log10(Math.max(peak, 0.01)));
  return [1, 2, 5, 10].map((step) => Number((step * power).toPrecision(1))).find((top) => top >= peak) ?? peak;
}

export const asPercentage = (value) => percent(100 * value);
