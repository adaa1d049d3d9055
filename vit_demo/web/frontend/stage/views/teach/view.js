// @ts-check
// "Teach your own classes": its HTML; what happens in it is in teaching.js.

import { setText } from "../../../shared/dom.js";
import { pageState, toTeach } from "../../../shared/pageState.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { waysHtml } from "../build/ways.js";

export const sections = ["teach"];

const ways = waysHtml("teach");

export const html = `
  <section class="chapter teach">
    ${ways}
    <h2>Teach it your own classes</h2>
    <p class="lead">From a few pictures of each, the network learns to tell your classes apart: only its last step is computed
      anew, by a formula.</p>
    <p class="sure" data-teach="accuracy" role="status"></p>
    <ul class="refused" data-teach="refused" role="status"></ul>
    <div class="classes"></div>
    <p class="then">
      <button type="button" class="primary" data-section="attention" hidden>Look into it</button>
      <button type="button" class="quiet trick" hidden></button>
      <button type="button" class="quiet another">Another class</button>
    </p>
    <p class="hint kept"></p>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { load, ...context }) {
  let shown = /** @type {any} */ (null); // the result on the stage
  let teaching = /** @type {any} */ (null); // a promise of it, once it is wanted

  const begin = (all) => all["stage/views/teach/teaching.js"].createTeaching(card, { ...context, shown });

  function open() {
    teaching ??= load("teach.js").then(
      begin,
      () => void setText(card.querySelector("[data-teach=accuracy]"), NOT_LOADED),
    );
    return teaching;
  }

  pageState.subscribe(card, (state) => state?.view.section === "teach" && open());
  if (pageState.get()?.view.section === "teach") open();
  toTeach.subscribe(card, async (name) => (await open())?.ask(name));

  async function show(result) {
    shown = result;
    (await teaching)?.show(result);
  }
  return { show };
}
