// @ts-check
// "What is it?", below the answer: a name for what is on the stage, by which it is taught.

import { constants } from "../../../shared/constants.js";
import { isNew, make } from "../../../shared/dom.js";
import { toTeach } from "../../../shared/pageState.js";

const MOST_OFFERED = 60; // names of classes

export const html = `
  <form class="ask" data-kind="none">
    <button type="button" class="link">Not right?</button>
    <label>What is it? <input data-teach="name" list="teach-names" required autocomplete="off" spellcheck="false"></label>
    <button class="quiet">Teach it</button>
    <datalist id="teach-names" translate="no"></datalist>
  </form>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { change, redraw }) {
  const input = card.querySelector("input");
  input.maxLength = constants.maxLabel;
  let isUnfolded = false;

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
    change({ section: "teach" });
    scrollTo(0, 0);
    toTeach.publish(name);
  });

  /** Another picture has another name; the other classes are offered. */
  function show(result) {
    isUnfolded = false;
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
