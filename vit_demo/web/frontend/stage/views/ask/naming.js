// @ts-check
// What is named below an answer: of a class that the network knows the map says why it is not that one; any other name can be
// taught. The classes are offered in a list that follows what is typed.

import { make, makeButton, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { toTeach } from "../../../shared/pageState.js";
import { probabilityOf } from "../../format.js";

const MOST_OFFERED = 60; // names of classes
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

const STYLES = `
.stage .ask {
  .panel { display: none; gap: 8px; inset-block: 100% auto; }
  &[data-kind="open"]:focus-within .panel { display: grid; }
  @container (max-width: 559px) { .panel { inset-block: auto 100%; } }
}`;

/** `result()` is the one on the stage; `compare({label, against})` shows the map of one class rather than another; `fold()` ends it. */
export function createNaming(card, { result, compare, fold }) {
  const input = card.querySelector("input");
  const [list, words] = [make("ul"), make("p", { role: "status" })];
  const teach = makeButton(teachIt, { className: "quiet", hidden: true }, english("Teach it in Build"));
  const panel = make("div", { className: "panel" }, list, words, teach);
  card.append(panel, make("style", { textContent: STYLES }));
  const wanted = () => input.value.trim();

  /** Offers the classes whose name contains what is typed, and says so if there are none. */
  function offer() {
    const found = offeredOf(result(), wanted());
    const rows = found.map((one) => {
      const name = make("span", { textContent: one.label, translate: false });
      const share = make("span", { className: "number" }, probabilityOf(one));
      const face = makeButton(() => choose(one.label), {}, name, share);
      return make("li", {}, face);
    });
    list.replaceChildren(...rows);
    const isUnknown = wanted() !== "" && !found.length;
    teach.hidden = !wanted() || comparedWith(result(), wanted()) !== null; // it may be part of a name that is known
    const values = { name: wanted() };
    const unknown = translate("The model does not know “{name}”. From one picture it learns little.", values);
    setText(words, isUnknown ? unknown : "");
  }

  /** Compares the class of that name, if there is one; returns whether there is. */
  function choose(/** @type {string} */ name) {
    const classes = comparedWith(result(), name);
    if (classes) leave();
    if (classes) compare(classes);
    return classes !== null;
  }

  const leave = () => /** @type {any} */ (document.activeElement)?.blur();

  function teachIt() {
    const name = wanted();
    leave();
    fold();
    toTeach.publish(name);
  }

  function submit() {
    offer();
    const found = offeredOf(result(), wanted());
    const isChosen = choose(wanted()) || (found.length === 1 && choose(found[0].label));
    if (!isChosen && !found.length) teach.focus();
  }

  input.addEventListener("input", offer);
  panel.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus, which shows the list
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      leave();
      fold();
    }
    if (!STEPS[event.key]) return;
    event.preventDefault();
    const stops = [input, ...list.querySelectorAll("button"), ...(teach.hidden ? [] : [teach])];
    stops[Math.max(0, stops.indexOf(document.activeElement) + STEPS[event.key])]?.focus();
  });
  return { offer, submit };
}

/** The classes whose name contains a text, most likely first. */
export const offeredOf = (/** @type {any} */ result, /** @type {string} */ text) =>
  (result?.predictions ?? [])
    .filter(({ label, name }) => `${label} ${name}`.toLowerCase().includes(text.toLowerCase()))
    .slice(0, MOST_OFFERED);

/**
 * What is compared for a name: its class with the answer, or the answer with the next one, {label, against}; null for a name
 * that the network does not know.
 */
export function comparedWith(/** @type {any} */ result, /** @type {string} */ name) {
  const [first, second] = result?.predictions ?? [];
  if (!second) return null;
  const isIt = (each) => each.localeCompare(name, undefined, { sensitivity: "base" }) === 0;
  const known = result.predictions.find((one) => isIt(one.label) || isIt(one.name));
  return known ? { label: known.index, against: (known === first ? second : first).index } : null;
}
