// @ts-check
// The map as a table: a number for each patch, for readers of the screen and of numbers, and where the strongest is.

import { make, setText } from "../../../shared/dom.js";
import { english, plain, translate } from "../../../shared/language.js";
import { placeOf } from "../../format.js";
import { strongest } from "../../heatmapColours.js";

export const html = `
  <section class="map-table">
    <details>
      <summary>The map as a table</summary>
      <p class="hint peak-place"></p>
      <div class="cells-of-map" tabindex="0" role="region" aria-label="The map as a table"><table></table></div>
    </details>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card) {
  const [details, sentence, table] = ["details", ".peak-place", "table"].map((part) => card.querySelector(part));
  let latest = /** @type {any} */ (null); // the drawing that is to be shown
  let written = /** @type {any} */ (null); // the map that is in the table

  function write() {
    const { result, method, map, view } = latest ?? /** @type {any} */ ({});
    if (!details.open || !map || map === written) return;
    written = map;
    const peak = strongest(map);
    const words = { place: placeOf(result, peak), value: method.format(map[peak]) };
    setText(sentence, translate("Strongest square: {place}, {value}.", words));
    const caption = make("caption", { textContent: plain(method.subject(result, view)) });
    const header = (text, scope) => make("th", { textContent: text, scope });
    const columns = Array.from({ length: result.columns }, (_, column) => header(column + 1, "col"));
    const corner = header(english("Row"), "col");
    const rows = Array.from({ length: result.rows }, (_, row) => {
      const cell = (_, column) => cellOf(row * result.columns + column, latest);
      return make("tr", {}, header(row + 1, "row"), ...Array.from({ length: result.columns }, cell));
    });
    table.replaceChildren(caption, make("thead", {}, make("tr", {}, corner, ...columns)), make("tbody", {}, ...rows));
  }

  details.addEventListener("toggle", write);

  return {
    show(result) {
      latest = written = null;
      if (!result) table.replaceChildren();
      if (!result) setText(sentence, "");
    },
    draw(drawing) {
      latest = drawing;
      write();
    },
  };
}

const cellOf = (patch, { result, method, map }) =>
  make("td", { textContent: result.tokenOf[patch] < 0 ? "–" : method.format(map[patch]) });
