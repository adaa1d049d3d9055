// @ts-check
// "Build": its place; what happens in it is in building.js.

import { setText } from "../../../shared/dom.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { waysHtml } from "./network.js";

export const sections = ["build"];

const ways = waysHtml("build");

export const html = `
  <section class="chapter build">
    ${ways}
    <p class="lead news-of-build" role="alert"></p>
  </section>`;

export function create(card, { load, ...context }) {
  let build = /** @type {any} */ (null); // what happens in it, once its code is there
  let isWanted = false;
  let drawn = /** @type {any} */ (null);

  async function fetchBuild() {
    isWanted = true;
    const all = await load("build.js").catch(() => null);
    if (!all) return setText(card.querySelector(".news-of-build"), NOT_LOADED);
    build = all["stage/views/build/building.js"].createBuild(card, context);
    return build.draw(drawn);
  }

  function draw(given) {
    drawn = given;
    if (!isWanted && sections.includes(given.choices.section)) fetchBuild();
    build?.draw(given);
  }

  return { draw, drawEmpty: draw };
}
