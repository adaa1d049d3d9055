// The controls below the picture.

import { currentLanguage, english, translate } from "../shared/language.js";
import { createMethodChoice } from "./methodChoice.js";
import { percent } from "./numbers.js";
import { choice, MOST_SEGMENTS, slider } from "./widgets.js";

/** Why a control has no effect on the maps of a method. */
const REASONS = {
  block: (method) => translate("{method} covers all blocks", { method }),
  head: (method) => translate("{method} covers all heads", { method }),
  direction: (method) => translate("{method} has no direction", { method }),
};

/** Puts the reason why a control does not apply in its place; none if it applies. */
function explain(host, reason) {
  host.title = reason;
  host.classList.toggle("inapplicable", Boolean(reason));
  host.dataset.why = reason;
}

/**
 * Builds all controls. `idPrefix` is different for each stage of a page; `onChange(part)` gets the choices that change,
 * `retry()` is called when a method is chosen, even the one that is shown. `sectionNames` are the sections of the stage.
 * `update(choices, shape, result)` shows the choices for a network of that shape, {numBlocks, numHeads}.
 */
export function createControls(element, methods, idPrefix, { onChange, retry, sectionNames }) {
  const control = (name) => element.querySelector(`[data-control=${name}]`);
  const group = (name) => `${idPrefix}-${name}`;
  const method = createMethodChoice(control("method"), control("all-methods"), methods, {
    group,
    sectionNames,
    onChange,
    retry,
  });
  const directions = [
    ["from", english("attends to")],
    ["to", english("attended to by")],
  ];
  const direction = choice(control("direction"), english("Direction"), group("direction"), directions, (value) =>
    onChange({ direction: value }),
  );
  const ofAll = (value) => translate("{value} of {all}", { value, all: control("block").max });
  const block = slider(control("block"), group("block"), ofAll, (value) => onChange({ block: value - 1 }));
  const opacity = slider(control("opacity"), group("opacity"), percent, (value) => onChange({ opacity: value / 100 }));
  let head = null;
  let heads = ""; // for which the choice of a head was built

  function offerHeads(count) {
    const named = (h) => translate("head {head}", { head: h + 1 });
    const each = Array.from({ length: count }, (_, h) => [h, count < MOST_SEGMENTS ? `${h + 1}` : named(h)]);
    const options = [[-1, english("mean")], ...each];
    head = choice(control("head"), english("Head"), group("head"), options, (value) => onChange({ head: value }));
  }

  const hosts = {
    block: control("block").parentElement,
    head: control("head"),
    direction: control("direction"),
  };

  function update(choices, shape, result) {
    const wanted = `${shape.numHeads} ${currentLanguage()}`;
    if (wanted !== heads) offerHeads(shape.numHeads);
    heads = wanted;
    const { uses, label } = methods[choices.method];
    method.update(choices, result);
    direction.set(choices.direction);
    block.set(choices.block + 1, shape.numBlocks);
    opacity.set(Math.round(100 * choices.opacity));
    head.set(choices.head);
    opacity.enable(Boolean(result));
    for (const [use, each] of Object.entries({ block, head, direction })) {
      each.enable(Boolean(result) && uses.includes(use));
      explain(hosts[use], uses.includes(use) ? "" : REASONS[use](translate(label)));
    }
  }

  return { update };
}
