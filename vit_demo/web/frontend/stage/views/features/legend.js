// The legend of each mode: a scale with its numbers, or named colours.

import { make } from "../../../shared/dom.js";
import { translate } from "../../../shared/language.js";
import { heatGradient } from "../../colours.js";
import { formatNumber, formatShare } from "../../numbers.js";
import { PALETTE } from "./colours.js";
import { formatCosine } from "./text.js";

const CHANNELS = [
  [214, 69, 65],
  [62, 160, 85],
  [70, 110, 214],
];

/**
 * Fills `host`, touching the page only when the legend is new. `shown` is what the mode computed; a scale is shown as it
 * is painted with that opacity, over paper or a photo.
 */
export function showLegend(host, mode, shown, { opacity, paper }) {
  const found = legendOf(mode, shown);
  const parts = found.scale ? { ...found, opacity, paper } : found;
  const key = JSON.stringify(parts);
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  host.replaceChildren(...(parts.scale ? scale(parts) : parts.chips.map(chip)));
}

function legendOf(mode, shown) {
  if (mode === "similarity") return { scale: shown.range.map(formatCosine) };
  if (mode === "norms") return { scale: shown.range.map(formatNumber) };
  if (mode === "pca") {
    const chips = shown.shares.map((share, i) => ({
      colour: CHANNELS[i],
      name: translate("component {number}", { number: i + 1 }),
      number: translate("{share} of variance", { share: formatShare(share) }),
    }));
    return { chips };
  }
  if (mode === "segments") {
    const chips = shown.counts.map((count, i) => ({ colour: PALETTE[i], name: `${i + 1}`, number: `${count}` }));
    return { chips };
  }
  return {
    chips: shown.legend.map(({ colour, name, count }) => ({ colour, name: translate(name), number: `${count}` })),
  };
}

function scale({ scale: [low, high], opacity, paper }) {
  const bar = make("i");
  bar.style.background = heatGradient(opacity, { paper });
  return [
    make("div", { className: "scale" }, make("span", { textContent: low }), bar, make("span", { textContent: high })),
  ];
}

function chip({ colour, name, number }) {
  const dot = make("i");
  dot.style.background = `rgb(${colour.join(" ")})`;
  return make(
    "span",
    { className: "chip", translate: false, title: name },
    dot,
    make("span", { textContent: name }),
    make("small", { textContent: number }),
  );
}
