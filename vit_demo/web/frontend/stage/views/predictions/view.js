// @ts-check
// The answers: with few classes all of them in fixed places, else the first ones, whose rows glide to their place. All others
// are in a list that can be searched.

import { constants } from "../../../shared/constants.js";
import { isNew, make, makeButton, put, setText } from "../../../shared/dom.js";
import { english, plain, translate } from "../../../shared/language.js";
import { pageState } from "../../../shared/pageState.js";
import { probabilityOf, targetOf } from "../../format.js";
import { isStill } from "../../motion.js";

const MOST_LISTED = 200; // of a list that is searched; more would only be scrolled past
const SHORT = 2; // characters of a label that fits into a narrow column
const SWAP = 500; // milliseconds between two changes of the order, which could not be read any faster
const GLIDE = 250; // milliseconds

const NOTHING = { isFirst: false, isRival: true, share: 0, number: "", before: null, label: "" };

const NO_CLASSES = english("This model has no classifier head: it predicts no class, and no heatmap can be about one.");

export const html = `
  <div class="predictions">
    <ol class="bars"></ol>
    <p class="note"></p>
    <details class="all-classes" hidden>
      <summary></summary>
      <div class="panel">
        <input type="search" autocomplete="off" spellcheck="false">
        <p class="found" role="status"></p>
        <ul></ul>
      </div>
    </details>
    <p class="visually-hidden spoken-answer" aria-live="polite"></p>
  </div>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { pickClass }) {
  const find = (selector) => card.querySelector(selector);
  let predictions = [];
  let rows = /** @type {any[]} */ ([]); // {item, face, label, number, bar, before, index}
  let order = ""; // of the rows that glide
  let swapped = 0; // when they last changed place
  const [panel, search, list] = [".all-classes", ".all-classes input", ".all-classes ul"].map(find);
  let chosen = /** @type {any} */ (null); // index of the class that the heatmap is about, or null

  /** Lists the classes whose name contains what is typed. */
  function fillList() {
    if (!panel.open) return;
    const wanted = search.value.trim().toLowerCase();
    const found = predictions.filter(({ label }) => label.toLowerCase().includes(wanted));
    list.replaceChildren(
      ...found.slice(0, MOST_LISTED).map((prediction) => {
        const { index, label } = prediction;
        const name = make("span", { textContent: label, translate: false });
        const share = make("span", { className: "number" }, probabilityOf(prediction));
        const ariaPressed = String(index === chosen);
        const face = makeButton(() => pickClass(index), { ariaPressed }, name, share);
        return make("li", {}, face);
      }),
    );
    const values = { count: found.length };
    setText(find(".found"), wanted ? translate("{count} class found|{count} classes found", values) : "");
  }

  panel.addEventListener("toggle", fillList);
  search.addEventListener("input", fillList);
  card.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") panel.open = false;
  });

  function makeRow(index) {
    const label = make("span", { className: "label", translate: false });
    const number = make("span", { className: "number" });
    const [bar, before] = [make("i"), make("b", { hidden: true })];
    const track = make("span", { className: "track" }, bar, before);
    const face = makeButton(() => pickClass(index), {}, label, number, track);
    return { item: make("li", {}, face), face, label, number, bar, before, index };
  }

  /** The rows of these classes, in this order; those that are there already glide, and keep their bars. */
  function arrange(indices, { isFixed, isLive, isFilm }) {
    const next = indices.join();
    const now = performance.now();
    if (next === order || (isLive && !isFixed && !isFilm && now - swapped < SWAP)) return;
    swapped = now;
    order = next;
    const places = new Map(rows.map((row) => [row.index, row.item.offsetTop]));
    rows = indices.map((index) => rows.find((row) => row.index === index) ?? makeRow(index));
    find(".bars").replaceChildren(...rows.map((row) => row.item));
    if (isFixed || isStill()) return;
    for (const { item, index } of rows) {
      const moved = (places.get(index) ?? item.offsetTop) - item.offsetTop;
      if (moved)
        item.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], {
          duration: GLIDE,
          easing: "ease-in-out",
        });
    }
  }

  /** Writes the answers of a frame; without any, empty rows, as high as they were. */
  function write(answers) {
    const shown = answers?.rows ?? [];
    const isFixed = answers ? answers.isFixed : card.matches(".fixed") && pageState.get()?.task !== "photos";
    card.classList.toggle("fixed", isFixed);
    if (answers)
      card.classList.toggle(
        "named",
        shown.some(({ label }) => label.length > SHORT),
      );
    card.classList.toggle("unsure", Boolean(answers?.isUnsure));
    card.classList.toggle("changed", Boolean(answers?.isOther));
    if (answers) {
      const indices = (answers.isFixed ? shown : shown.slice(0, constants.numClasses)).map(({ index }) => index);
      arrange(indices, answers);
    }
    put(panel, { hidden: !answers || answers.isFixed || predictions.length <= constants.numClasses });
    for (const row of rows) {
      const one = shown.find(({ index }) => index === row.index) ?? NOTHING; // until the order may change
      row.item.classList.toggle("first", one.isFirst);
      row.item.classList.toggle("aside", !one.isRival);
      put(row.face, { disabled: !answers || Boolean(answers.isLive) });
      if (one !== NOTHING || (!answers && !isFixed)) setLabel(row.label, one.label);
      setLabel(row.number, one.number);
      if (isNew(row.bar, one.share)) {
        row.item.style.setProperty("--share", one.share);
        row.bar.style.width = one.share ? `max(2px, ${100 * one.share}%)` : "0";
      }
      put(row.before, { hidden: !one.before });
      if (!one.before) continue;
      if (isNew(row.before, one.before.share)) row.before.style.left = `${100 * one.before.share}%`;
      put(row.before, { title: translate("{probability} with all squares", { probability: one.before.number }) });
    }
  }

  /** What does not change while a stroke is drawn; `whole` is the same result with no patch rubbed out. */
  function show(result, whole) {
    predictions = result ? result.predictions : [];
    const isWhole = !result || result.dropped.length === whole.dropped.length;
    const [first] = predictions;
    const note = result ? noteOf(result, whole, isWhole) : "";
    setText(find(".note"), note);
    search.setAttribute("aria-label", translate("Search the classes"));
    search.placeholder = translate("Search the classes");
    fillList();
    const spoken = () =>
      translate("Prediction: {label}, {percentage}.", { label: first.label, percentage: probabilityOf(first) });
    setText(find(".spoken-answer"), `${first ? spoken() : ""} ${plain(translate(note))}`.trim());
    if (result) return;
    write(null);
    mark(null);
  }

  /** Marks the class that the heatmap is about, or none. */
  function mark(index) {
    const isListed = rows.some((row) => row.index === index);
    const target = index !== null && !isListed && predictions.find((one) => one.index === index);
    const summary = target
      ? translate("Shown: *{label}*, {probability}", { label: target.label, probability: probabilityOf(target) })
      : translate("All {count} classes", { count: predictions.length });
    setText(panel.firstElementChild, summary);
    panel.classList.toggle("chosen", Boolean(target));
    if (index !== chosen) {
      chosen = index;
      fillList();
    }
    for (const row of rows) put(row.face, { ariaPressed: String(row.index === index) });
  }

  function draw({ scene, method, view, choices, tokens, frame }) {
    write(frame.answers);
    mark(method.classSpecific && !choices.plain && !tokens ? targetOf(scene.result, view.label).index : null);
  }

  return { show, draw, drawEmpty: () => write(null), isLive: true };
}

const setLabel = (node, text) => put(node, { textContent: text, title: text });

/** A remark on a prediction; none in most cases. */
function noteOf({ predictions, note }, { predictions: [first] }, isWhole) {
  if (!predictions.length) return NO_CLASSES;
  if (isWhole) return note;
  return translate("The mark shows each bar with all squares: *{label}* at {probability}.", {
    label: first.label,
    probability: probabilityOf(first),
  });
}
