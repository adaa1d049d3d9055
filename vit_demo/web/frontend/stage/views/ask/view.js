// @ts-check
// "What is it?", below the answer; what happens with the name is in naming.js.

import { constants } from "../../../shared/constants.js";
import { put } from "../../../shared/dom.js";
import { classMethod } from "../../methods.js";
import { FIRST_SECTION } from "../../sections.js";

export const html = `
  <form class="ask" data-kind="none">
    <button type="button" class="small">Not right?</button>
    <label>What is it? <input data-teach="name" autocomplete="off" spellcheck="false"></label>
  </form>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { change, redraw, methods, load }) {
  const input = card.querySelector("input");
  input.maxLength = constants.maxLabel;
  let isUnfolded = false;
  let shown = /** @type {any} */ (null); // the result on the stage
  let naming = /** @type {any} */ (null); // a promise of it, once it is wanted

  function open() {
    naming ??= load("ask.js").then(
      (all) => all["stage/views/ask/naming.js"].createNaming(card, { result: () => shown, compare, fold }),
      () => {
        naming = null; // the next focus asks again
      },
    );
    return naming;
  }

  function compare(classes) {
    fold();
    change({ section: FIRST_SECTION, plain: false, method: classMethod(methods), ...classes });
  }

  function fold() {
    isUnfolded = false;
    input.value = "";
    redraw();
  }

  card.querySelector("button").addEventListener("click", () => {
    isUnfolded = true;
    redraw();
    requestAnimationFrame(() => input.focus()); // once it is in sight
  });
  input.addEventListener("focus", async () => (await open())?.offer());
  card.addEventListener("submit", async (event) => {
    event.preventDefault();
    (await open())?.submit();
  });

  return {
    /** Another picture has another name. */
    show(result) {
      isUnfolded = false;
      shown = result;
      input.value = "";
    },
    draw({ frame }) {
      put(card.dataset, { kind: isUnfolded && frame.ask === "folded" ? "open" : frame.ask });
    },
    drawEmpty() {
      put(card.dataset, { kind: "none" });
    },
    isLive: true,
  };
}
