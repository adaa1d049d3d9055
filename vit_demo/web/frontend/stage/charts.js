// Small line charts in the page's colours: the curve of a heatmap beside those of random orders.

import { make } from "../shared/dom.js";
import { percent } from "./numbers.js";

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
 * `curve` is the heatmap's, `randoms` those of random orders, over `places` from 0 to 1; `ends` label the axis.
 */
export function lineChart({ title, places, curve, randoms, ends, legend }) {
  const values = [...curve, ...randoms.flat()];
  const top = axisTop(Math.max(...values));
  const bottom = Math.min(...values) < 0 ? -axisTop(-Math.min(...values)) : 0;
  const heightOf = (value) => (HEIGHT * (top - value)) / (top - bottom);
  const point = (place, value) => [place * WIDTH, heightOf(value)].map((number) => number.toFixed(1));
  const path = (values) => `M${values.map((value, i) => point(places[i], value).join(" ")).join("L")}`;
  const label = `${title}: ${legend.join(", ")}`;
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
  drawing.append(svg("path", { class: "curve", d: path(curve) }));
  const key = legend.map((words, i) => make("span", { className: i ? "random" : "curve" }, make("i"), words));
  const [highest, lowest] = [axisLabel(top), bottom ? axisLabel(bottom) : "0"].map((textContent) =>
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

/** The axis ends a little above the curves, at a number that is easy to read. */
export const axisTop = (peak) => [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((top) => top >= peak) ?? 1;

const axisLabel = (top) => percent(100 * top);
