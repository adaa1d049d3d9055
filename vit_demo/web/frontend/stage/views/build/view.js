// @ts-check
// "Build": its place; what happens in it is in building.js.

import { setText } from "../../../shared/dom.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { createLater } from "../later.js";
import { waysHtml } from "./ways.js";

export const sections = ["build"];

const ways = waysHtml("build");

export const html = `
  <section class="chapter build">
    ${ways}
    <p class="lead news-of-build" role="alert"></p>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { load, ...context }) {
  const view = createLater({
    ...{ load, file: "build.js", sections },
    create: (modules) => modules["stage/views/build/building.js"].createBuild(card, context),
    fail: () => setText(card.querySelector(".news-of-build"), NOT_LOADED),
  });
  return { draw: view.draw, drawEmpty: view.draw };
}
