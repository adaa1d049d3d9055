// @ts-check
// "What is it?", below the answer: a name for what is on the stage, by which it is taught; of a class that the network knows
// already, the map says first why it is not that one.

import { constants } from "../../../shared/constants.js";
import { isNew, make } from "../../../shared/dom.js";
import { menuModels, toTeach } from "../../../shared/pageState.js";
import { classMethod } from "../../methods.js";
import { FIRST_SECTION } from "../../sections.js";

const MOST_OFFERED = 60; // names of classes

export const html = `
  <form class="ask" data-kind="none">
    <button type="button" class="link">Not right?</button>
    <label>What is it? <input data-teach="name" list="teach-names" required autocomplete="off" spellcheck="false"></label>
    <button class="quiet">Teach it</button>
    <datalist id="teach-names" translate="no"></datalist>
  </form>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { change, redraw, methods }) {
  const input = card.querySelector("input");
  input.maxLength = constants.maxLabel;
  let isUnfolded = false;
  let shown = /** @type {any} */ (null); // the result on the stage

  card.querySelector(".link").addEventListener("click", () => {
    isUnfolded = true;
    redraw();
    requestAnimationFrame(() => input.focus()); // once it is in sight
  });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    input.value = "";
    const compared = comparedWith(shown, name);
    if (compared) {
      isUnfolded = false;
      return change({ section: FIRST_SECTION, plain: false, method: classMethod(methods), ...compared });
    }
    toTeach.publish(name);
  });

  /** Another picture has another name; the other classes are offered. */
  function show(result) {
    isUnfolded = false;
    shown = result;
    input.value = "";
    const names = (result?.predictions ?? []).slice(1, 1 + MOST_OFFERED).map(({ label }) => label);
    if (isNew(input.list, names)) input.list.replaceChildren(...names.map((value) => make("option", { value })));
  }

  function draw({ frame }) {
    card.dataset.kind = isUnfolded && frame.ask === "folded" ? "open" : frame.ask;
  }

  return {
    show,
    draw,
    drawEmpty() {
      card.dataset.kind = "none";
    },
    isLive: true,
  };
}

/**
 * What is compared for a name: its class with the answer, or the answer with the next one, {label, against}; null for a name
 * that the network does not know, or that it was taught, of which it gets another picture.
 */
export function comparedWith(/** @type {any} */ result, /** @type {string} */ name) {
  const [first, second] = result?.predictions ?? [];
  if (!second || menuModels.latest().get(result.source.preset)?.base) return null;
  const isIt = (each) => each.localeCompare(name, undefined, { sensitivity: "base" }) === 0;
  const begins = result.predictions.filter(({ label }) => isIt(label.split(" ")[0]));
  const known =
    result.predictions.find((one) => isIt(one.label) || isIt(one.name)) ?? (begins.length === 1 ? begins[0] : null);
  return known ? { label: known.index, against: (known === first ? second : first).index } : null;
}
