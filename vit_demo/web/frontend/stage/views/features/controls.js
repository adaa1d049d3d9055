// @ts-check
// The controls of the features; a control that does not apply to the chosen mode is disabled, so that nothing moves.

import { isNew, make, segmentChoice, slider } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { percent } from "../../format.js";
import { heatGradient } from "../../heatmapColours.js";
import { MODES } from "./modes.js";

/**
 * Builds the controls in `card`; `onChange(part)` gets the choices that change.
 * `update({mode, block, k, background, opacity}, {numBlocks, mostSegments, hasClasses})` shows them; the second is null
 * without a result.
 */
export function createFeatureControls(card, onChange) {
  const control = (name) => card.querySelector(`[data-feature=${name}]`);
  const host = control("mode");
  const titles = Object.entries(MODES).map(([mode, { title }]) => [mode, title]);
  const modes = segmentChoice(host, english("Show"), titles, (mode) => onChange({ mode }));
  const classes = host.querySelector("[data-value=classes]");
  const ofAll = (value) => translate("{value} of {all}", { value, all: control("block").max });
  const block = slider(control("block"), ofAll, (value) => onChange({ block: value - 1 }));
  const k = slider(control("k"), String, (value) => onChange({ k: value }));
  const opacity = slider(control("opacity"), percent, (value) => onChange({ opacity: value / 100 }));
  const background = card.querySelector(".background");
  background.addEventListener("click", () =>
    onChange({ background: background.getAttribute("aria-pressed") === "false" }),
  );

  return {
    update(choices, limits) {
      modes.set(choices.mode);
      modes.enable(Boolean(limits));
      classes.disabled = !limits?.hasClasses;
      block.set(choices.block + 1, limits?.numBlocks ?? 1);
      block.enable(Boolean(limits));
      k.set(choices.k, limits?.mostSegments ?? choices.k);
      k.enable(Boolean(limits) && choices.mode === "segments");
      opacity.set(Math.round(100 * choices.opacity));
      opacity.enable(Boolean(limits));
      background.disabled = !limits || choices.mode !== "pca";
      background.setAttribute("aria-pressed", String(choices.background));
    },
  };
}

/**
 * Fills `host` with a legend, {scale: [low, high]} or {chips}, touching the page only when it is new. A scale is shown as
 * it is painted with that opacity, over paper or a photo.
 */
export function showLegend(host, legend, { opacity, paper }) {
  const parts = legend.scale ? { ...legend, opacity, paper } : legend;
  if (isNew(host, parts)) host.replaceChildren(...(parts.scale ? [scale(parts)] : parts.chips.map(chip)));
}

function scale({ scale: [low, high], opacity, paper }) {
  const bar = make("i");
  bar.style.background = heatGradient(opacity, { paper });
  return make("div", { className: "scale" }, make("span", {}, low), bar, make("span", {}, high));
}

function chip({ colour, name, number }) {
  const dot = make("i");
  dot.style.background = `rgb(${colour.join(" ")})`;
  const words = [make("span", {}, name), make("small", {}, number)];
  return make("span", { className: "chip", translate: false, title: name }, dot, ...words);
}
