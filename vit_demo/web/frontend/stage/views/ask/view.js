// @ts-check
// "What is it?", below the answer: the classes that the network knows, of which the map says why it is not the one that is
// chosen; any other name can be taught.

import { constants } from "../../../shared/constants.js";
import { make, makeButton, setText } from "../../../shared/dom.js";
import { translate } from "../../../shared/language.js";
import { toTeach } from "../../../shared/pageState.js";
import { probabilityOf } from "../../format.js";
import { classMethod } from "../../methods.js";
import { FIRST_SECTION } from "../../sections.js";

const MOST_OFFERED = 60; // names of classes
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

export const html = `
  <form class="ask" data-kind="none">
    <button type="button" class="small">Not right?</button>
    <label>What is it? <input data-teach="name" autocomplete="off" spellcheck="false"></label>
    <div class="panel">
      <ul></ul>
      <p role="status"></p>
      <button type="button" class="quiet" data-teach="unknown" hidden>Teach it in Build</button>
    </div>
  </form>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { change, redraw, methods }) {
  const find = (selector) => card.querySelector(selector);
  const [input, panel, list, words, teach] = ["input", ".panel", "ul", "p", "[data-teach=unknown]"].map(find);
  input.maxLength = constants.maxLabel;
  let isUnfolded = false;
  let shown = /** @type {any} */ (null); // the result on the stage
  const wanted = () => input.value.trim();

  /** Offers the classes whose name contains what is typed, and says so if there are none. */
  function offer() {
    const found = offeredOf(shown, wanted());
    list.replaceChildren(
      ...found.map((one) => {
        const name = make("span", { textContent: one.label, translate: false });
        const share = make("span", { className: "number" }, probabilityOf(one));
        return make(
          "li",
          {},
          makeButton(() => compare(one.label), {}, name, share),
        );
      }),
    );
    const isUnknown = wanted() !== "" && !found.length;
    teach.hidden = !isUnknown;
    const values = { name: wanted() };
    setText(
      words,
      isUnknown ? translate("The model does not know “{name}”. From one picture it learns little.", values) : "",
    );
  }

  /** Shows why it is not the class of that name, if it is one; returns whether it is. */
  function compare(/** @type {string} */ name) {
    const compared = comparedWith(shown, name);
    if (!compared) return false;
    close();
    change({ section: FIRST_SECTION, plain: false, method: classMethod(methods), ...compared });
    return true;
  }

  function close() {
    isUnfolded = false;
    input.value = "";
    /** @type {any} */ (document.activeElement)?.blur();
  }

  find(".small").addEventListener("click", () => {
    isUnfolded = true;
    redraw();
    requestAnimationFrame(() => input.focus()); // once it is in sight
  });
  for (const name of ["focus", "input"]) input.addEventListener(name, offer);
  panel.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus, which shows the list
  teach.addEventListener("click", () => {
    const name = wanted();
    close();
    toTeach.publish(name);
  });
  card.addEventListener("submit", (event) => {
    event.preventDefault();
    const found = offeredOf(shown, wanted());
    const isCompared = compare(wanted()) || (found.length === 1 && compare(found[0].label));
    if (!isCompared && !teach.hidden) teach.focus();
  });
  card.addEventListener("keydown", (event) => {
    const stops = [input, ...list.querySelectorAll("button"), ...(teach.hidden ? [] : [teach])];
    if (event.key === "Escape") return close();
    if (!STEPS[event.key]) return;
    event.preventDefault();
    stops[Math.max(0, stops.indexOf(document.activeElement) + STEPS[event.key])]?.focus();
  });

  /** Another picture has another name. */
  function show(result) {
    isUnfolded = false;
    shown = result;
    input.value = "";
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

/** The classes whose name contains a text, most likely first. */
export const offeredOf = (/** @type {any} */ result, /** @type {string} */ text) =>
  (result?.predictions ?? [])
    .filter(({ label, name }) => `${label} ${name}`.toLowerCase().includes(text.toLowerCase()))
    .slice(0, MOST_OFFERED);

/** What is compared for a name: its class with the answer, or the answer with the next one, {label, against}; null for a name that the network does not know. */
export function comparedWith(/** @type {any} */ result, /** @type {string} */ name) {
  const [first, second] = result?.predictions ?? [];
  if (!second) return null;
  const isIt = (each) => each.localeCompare(name, undefined, { sensitivity: "base" }) === 0;
  const known = result.predictions.find((one) => isIt(one.label) || isIt(one.name));
  return known ? { label: known.index, against: (known === first ? second : first).index } : null;
}
