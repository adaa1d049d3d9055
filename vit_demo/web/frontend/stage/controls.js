// The controls below the picture.

import {
  choice,
  documentEvents,
  isNew,
  MOST_SEGMENTS,
  make,
  makeButton,
  newId,
  segmentChoice,
  setText,
  slider,
} from "../shared/dom.js";
import { currentLanguage, english, translate } from "../shared/language.js";
import { percent } from "./format.js";
import { placeAmong, recommendedMethods } from "./methods.js";

/** What the maps of a method are about, where it does not have the choice of a control. */
const REASONS = { block: english("all blocks"), head: english("all heads"), direction: english("no direction") };

/** Puts the reason why a control does not apply in its place; none if it applies. */
function explain(host, reason) {
  host.classList.toggle("inapplicable", Boolean(reason));
  host.dataset.why = reason;
}

/**
 * Builds all controls. `actions.onChange(part)` gets the choices that change, `actions.retry()` is called when a method is
 * chosen, even the one that is shown, and `actions.sectionNames` are the sections of the stage.
 * `update(choices, shape, result)` shows the choices for a network of that shape, {numBlocks, numHeads}.
 */
export function createControls(element, methods, actions) {
  const { onChange } = actions;
  const control = (name) => element.querySelector(`[data-control=${name}]`);
  const method = createMethodChoice(control("method"), control("all-methods"), methods, actions);
  const directions = [
    ["from", english("attends to")],
    ["to", english("attended to by")],
  ];
  const direction = choice(control("direction"), english("Direction"), directions, (value) =>
    onChange({ direction: value }),
  );
  const ofAll = (value) => translate("{value} of {all}", { value, all: control("block").max });
  const block = slider(control("block"), ofAll, (value) => onChange({ block: value - 1 }));
  const opacity = slider(control("opacity"), percent, (value) => onChange({ opacity: value / 100 }));
  let head = null;
  let heads = ""; // for which the choice of a head was built

  function offerHeads(count) {
    const named = (h) => translate("head {head}", { head: h + 1 });
    const each = Array.from({ length: count }, (_, h) => [h, count < MOST_SEGMENTS ? `${h + 1}` : named(h)]);
    const options = [[-1, english("mean")], ...each];
    head = choice(control("head"), english("Head"), options, (value) => onChange({ head: value }));
  }

  const hosts = {
    block: control("block").parentElement,
    head: control("head"),
    direction: control("direction"),
  };

  function update(choices, shape, result) {
    const wanted = `${shape.numHeads} ${currentLanguage()}`;
    if (wanted !== heads) offerHeads(shape.numHeads);
    heads = wanted;
    const { uses } = methods[choices.method];
    method.update(choices, result);
    direction.set(choices.direction);
    block.set(choices.block + 1, shape.numBlocks);
    opacity.set(Math.round(100 * choices.opacity));
    head.set(choices.head);
    opacity.enable(Boolean(result));
    for (const [use, each] of Object.entries({ block, head, direction })) {
      each.enable(Boolean(result) && uses.includes(use));
      explain(hosts[use], uses.includes(use) ? "" : REASONS[use]);
    }
  }

  return { update };
}

// The choice of a method: the recommended ones first, then all of them, with what each costs.

const NO_CLASSES = english("This model has no classifier head, so no map can be about a class.");

/**
 * Fills `host` with the recommended methods and a button that opens `list`, where all methods are.
 * `update(choices, result)` shows what is chosen.
 */
function createMethodChoice(host, list, methods, { sectionNames, onChange, showSimilar, retry }) {
  const choose = (method) => onChange({ method });
  const recommended = recommendedMethods(methods).map((name) => [name, methods[name].recommended]);
  const plainHost = make("div", { className: "plain" });
  const more = make("button", { type: "button", className: "quiet more-methods" });
  const plain = segmentChoice(plainHost, english("Show"), recommended, choose);
  host.replaceChildren(plainHost);
  if (sectionNames.includes("features")) {
    host.append(makeButton(showSimilar, { className: "quiet" }, english("Similar patches")));
  }
  host.append(more);

  list.id = newId("methods");
  const rows = Object.entries(methods).map(([name, method]) => {
    const input = make("input", { type: "radio", name: list.id });
    input.dataset.value = name;
    input.addEventListener("change", () => choose(name));
    const rank = make("small");
    const use = make("small", { textContent: method.use });
    const words = make("span", {}, make("b", { textContent: method.label }), rank, use);
    const face = make("label", { className: "method" }, input, words);
    return { name, method, input, face, rank };
  });
  const group = (title, members, ...heading) => [make("p", {}, title, ...heading), ...members.map(({ face }) => face)];
  list.setAttribute("role", "radiogroup");
  list.setAttribute("aria-label", english("All methods"));

  /** Puts the methods in the order of their faithfulness for a network. */
  function sort(network) {
    const all = rows.filter(({ method }) => placeAmong(method, network)).length;
    const placed = rows.map((row) => ({ ...row, place: placeAmong(row.method, network) }));
    placed.sort((one, other) => (one.place ?? Infinity) - (other.place ?? Infinity));
    for (const { rank, place, method } of placed) {
      const words = [
        place && translate("{value} of {all}", { value: place, all }),
        method.manyPasses && translate("slow"),
      ];
      setText(rank, words.filter(Boolean).join(" · "));
    }
    const ofClass = ({ method }) => method.classSpecific;
    list.replaceChildren(
      ...group(
        english("For a class"),
        placed.filter(ofClass),
        make("span", { textContent: english("faithfulness rank") }),
      ),
      ...group(
        english("The same for every class"),
        placed.filter((row) => !ofClass(row)),
      ),
    );
  }

  more.setAttribute("aria-controls", list.id);
  openBeside(more, list);

  // A choice sends failed requests again, even the choice of what is chosen.
  for (const each of [plainHost, list]) {
    each.addEventListener("click", (event) => event.target.matches("input") && retry());
    each.addEventListener("keydown", (event) => [" ", "Enter"].includes(event.key) && retry());
  }

  function update(choices, result) {
    const isPlain = recommended.some(([name]) => name === choices.method);
    plain.set(choices.method);
    const { label } = methods[choices.method];
    setText(more, isPlain ? english("More") : translate(label));
    more.classList.toggle("chosen", !isPlain);
    const hasClasses = Boolean(result?.predictions.length);
    const network = result?.source.preset ?? "";
    if (isNew(list, [network, currentLanguage()])) sort(network);
    for (const { name, method, input, face } of rows) {
      input.checked = name === choices.method;
      input.disabled = !result || (method.classSpecific && !hasClasses);
      face.title = result && input.disabled ? NO_CLASSES : "";
    }
    for (const input of plainHost.querySelectorAll("input")) {
      const { classSpecific, label: words } = methods[input.dataset.value];
      input.disabled = !result || (classSpecific && !hasClasses);
      input.parentElement.title = result && input.disabled ? NO_CLASSES : words;
    }
  }

  return { update };
}

/** A button that opens a list over what is beside it; a choice, Escape, or the use of anything else closes it. */
function openBeside(button, list) {
  function open(isOpen) {
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  }

  function leave() {
    open(false);
    button.focus({ preventScroll: true });
  }

  const isOutside = (node) => !list.contains(node) && !button.contains(node);
  button.addEventListener("click", () => open(list.hidden));
  list.addEventListener("click", ({ detail }) => detail && open(false)); // not the arrow keys' clicks
  for (const each of [button, list]) {
    each.addEventListener("focusout", ({ relatedTarget }) => relatedTarget && isOutside(relatedTarget) && open(false));
    each.addEventListener("keydown", (event) => {
      const isLeft = event.key === "Escape" || (event.key === "Enter" && each === list);
      if (isLeft && !list.hidden) leave();
    });
  }
  documentEvents(list)("pointerdown", ({ target }) => isOutside(target) && open(false));
  open(false);
}
