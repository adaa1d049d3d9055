// @ts-check
// "Compare": its place; what happens in it is in comparing.js.

import { setText } from "../../../shared/dom.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { createLater } from "../later.js";

export const sections = ["compare"];

export const html = `
  <section class="chapter compare">
    <h2>Compare</h2>
    <p class="lead">The same picture in several columns; maps in the same unit share a colour scale. Point at a square to see the same
      place in each.</p>
    <div class="tools">
      <button type="button" class="quiet add">Add a column</button>
      <button type="button" class="quiet reset">Reset</button>
      <button type="button" class="quiet measure">Measure deletion and insertion</button>
      <p class="hint scales"></p>
    </div>
    <div class="columns"></div>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export const create = (card, { load, ...context }) =>
  createLater({
    ...{ load, file: "compare.js", sections },
    create: (modules) => modules["stage/views/compare/comparing.js"].createComparing(card, context),
    fail: () => setText(card.querySelector(".scales"), NOT_LOADED),
  });
