// @ts-check
// "What is it?", below the answer: a name for what is on the stage, by which it is taught.

import { constants } from "../../../shared/constants.js";
import { isNew, make, setText } from "../../../shared/dom.js";
import { translate } from "../../../shared/language.js";
import { toTeach } from "../../../shared/pageState.js";
import { probabilityOf } from "../../format.js";

const MOST_OFFERED = 60; // names of classes

export const html = `
  <form class="ask" data-kind="none">
    <button type="button" class="link">Not right?</button>
    <p class="known" role="status"></p>
    <label>What is it? <input data-teach="name" list="teach-names" required autocomplete="off" spellcheck="false"></label>
    <button class="quiet">Teach it</button>
    <datalist id="teach-names" translate="no"></datalist>
  </form>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { change, redraw, pickClass }) {
  const [input, told] = [card.querySelector("input"), card.querySelector(".known")];
  let predictions = /** @type {any[]} */ ([]); // of a photo
  let shownClass = /** @type {number | null} */ (null); // the one that the colours speak for
  let known = ""; // a class of the network, of which the visitor has been told that it knows it
  input.maxLength = constants.maxLabel;
  let isUnfolded = false;

  card.querySelector(".link").addEventListener("click", () => {
    isUnfolded = true;
    known = "";
    redraw();
    requestAnimationFrame(() => input.focus()); // once it is in sight
  });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    const one = predictions.find(({ label }) => label.toLowerCase() === name.toLowerCase());
    if (one && one.label !== known) {
      known = one.label;
      const values = { name: known, probability: probabilityOf(one) };
      setText(told, translate("It knows *{name}*, {probability}: the colours show what speaks for it.", values));
      if (one.index !== shownClass) pickClass(one.index);
      return redraw();
    }
    input.value = "";
    change({ section: "teach" });
    scrollTo(0, 0);
    toTeach.publish(name);
  });

  /** Another picture has another name; the other classes are offered. */
  function show(result) {
    isUnfolded = false;
    known = input.value = "";
    predictions = result && !result.pixelated ? result.predictions : [];
    const names = (result?.predictions ?? []).slice(1, 1 + MOST_OFFERED).map(({ label }) => label);
    if (isNew(input.list, names)) input.list.replaceChildren(...names.map((value) => make("option", { value })));
  }

  function draw({ frame, method, choices }) {
    const isOpen = frame.ask === "open" || (frame.ask === "folded" && isUnfolded);
    card.dataset.kind = isOpen ? (known ? "known" : "open") : frame.ask;
    shownClass = method.classSpecific && !choices.plain ? choices.label : null;
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
