// The choice of a patch size, which shows at once what each size trades: the map, tokens, operations and accuracy.

import { make } from "../shared/dom.js";
import { english, formatCount, formatDecimals, translate } from "../shared/language.js";
import { createRadios } from "./radios.js";

const MOST_WITHOUT_SCROLLING = 5;

/** Each row of the choice: its name, and its value for a size (an entry of Python's `describe_patch_size`). */
const ROWS = [
  [english("map"), ({ side }) => `${side}²`],
  [english("tokens"), ({ tokens }) => formatCount(tokens)],
  [english("operations"), ({ operations }) => formatCount(operations, 2)],
];
const RIGHT = english("right, %");

/** Fills `host`; `set(model, value, isMeasured)` shows the sizes of a model, `isMeasured` whether their accuracies hold. */
export function createPatchSizes(host, titleId, onChange) {
  const names = make("div", { className: "size-names" });
  const bar = make("div");
  bar.id = "patch-sizes";
  host.replaceChildren(names, bar);
  const radios = createRadios(bar, titleId, onChange);

  function set({ sizes }, value, isMeasured) {
    const accuracyOf = ({ accuracy }) => (isMeasured && accuracy !== null ? formatDecimals(accuracy, 1) : "–");
    const rows = sizes.some(({ accuracy }) => accuracy !== null) ? [...ROWS, [RIGHT, accuracyOf]] : ROWS;
    host.classList.toggle("scrolls", sizes.length > MOST_WITHOUT_SCROLLING);
    names.replaceChildren(
      ...["px", ...rows.map(([name]) => translate(name))].map((textContent) => make("span", { textContent })),
    );
    const options = sizes.map((each) => [each.size, String(each.size), rows.map(([, read]) => read(each))]);
    radios.set(options, value);
  }

  return { set };
}
