// Small line charts in the page's colours: the curve of a map beside those of random orders.

const CHART = { width: 240, height: 110 };

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * A figure with its own title, legend and scale.
 * `curve` is the map's, `randoms` those of random orders, over `places` from 0 to 1; `ends` are the words below the axis.
 */
function lineChart({ title, places, curve, randoms, ends, legend }) {
  const top = niceTop(Math.max(...curve, ...randoms.flat()));
  const at = (place, value) => [place * CHART.width, CHART.height * (1 - Math.max(0, value) / top)].map((n) => n.toFixed(1));
  const path = (values) => `M${values.map((value, i) => at(places[i], value).join(" ")).join("L")}`;
  const columns = places.map((_, i) => randoms.map((random) => random[i]));
  const band = [...columns.map((column, i) => at(places[i], Math.max(...column))),
    ...columns.map((column, i) => at(places[i], Math.min(...column))).reverse()];
  const drawing = svg("svg", {
    viewBox: `-2 -2 ${CHART.width + 4} ${CHART.height + 4}`, role: "img", "aria-label": `${title}: ${legend.join(", ")}`,
  });
  for (const height of [0, 0.5, 1]) {
    const y = CHART.height * height;
    drawing.append(svg("line", { class: "rule", x1: 0, x2: CHART.width, y1: y, y2: y }));
  }
  if (randoms.length) {
    const means = columns.map((column) => column.reduce((sum, value) => sum + value, 0) / column.length);
    drawing.append(svg("polygon", { class: "band", points: band.map((point) => point.join(",")).join(" ") }));
    drawing.append(svg("path", { class: "random", d: path(means) }));
  }
  drawing.append(svg("path", { class: "curve", d: path(curve) }));
  const key = legend.map((words, i) => make("span", { className: i ? "random" : "curve" }, make("i"), words));
  return make(
    "figure", {},
    make("figcaption", { textContent: title }),
    make("div", { className: "frame" }, make("small", { textContent: topWords(top) }), drawing, make("small", { textContent: "0" })),
    make("div", { className: "ends" }, ...ends.map((words) => make("small", { textContent: words }))),
    make("div", { className: "key" }, ...key),
  );
}

/** The axis ends a little above the curves, at a number that is easy to read. */
const niceTop = (peak) => [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((top) => top >= peak) ?? 1;

const topWords = (top) => (top >= 0.01 ? `${Math.round(100 * top)}${SPACE}%` : String(top));
