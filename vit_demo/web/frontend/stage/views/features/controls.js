// The controls of the features; a control that does not apply to the chosen mode is disabled, so that nothing moves.

import { english, translate } from "../../../shared/language.js";
import { percent } from "../../numbers.js";
import { segmentChoice, slider } from "../../widgets.js";
import { MODES } from "./text.js";

/**
 * Builds the controls in `card`; `onChange(part)` gets the choices that change.
 * `update({mode, block, k, background, opacity}, {numBlocks, mostSegments, hasClasses})` shows them; the second is null
 * without a result.
 */
export function createFeatureControls(card, idPrefix, onChange) {
  const control = (name) => card.querySelector(`[data-feature=${name}]`);
  const host = control("mode");
  const modes = segmentChoice(host, english("Show"), `${idPrefix}-mode`, MODES, (mode) => onChange({ mode }));
  const classes = host.querySelector("[data-value=classes]");
  const ofAll = (value) => translate("{value} of {all}", { value, all: control("block").max });
  const block = slider(control("block"), `${idPrefix}-block`, ofAll, (value) => onChange({ block: value - 1 }));
  const k = slider(control("k"), `${idPrefix}-k`, String, (value) => onChange({ k: value }));
  const opacity = slider(control("opacity"), `${idPrefix}-opacity`, percent, (value) =>
    onChange({ opacity: value / 100 }),
  );
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
