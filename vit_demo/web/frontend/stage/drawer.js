// @ts-check
// The drawer "All settings": whatever the picture can show, of which part of the network, and how it is drawn.

import {
  definitions,
  documentEvents,
  fillSelect,
  isNew,
  make,
  newId,
  put,
  segmentChoice,
  setText,
  slider,
} from "../shared/dom.js";
import { createTermList } from "../shared/glossary/glossary.js";
import { currentLanguage, english, formatCount, formatInteger, translate } from "../shared/language.js";
import { menuModels, pageState, readSetting, storeSetting } from "../shared/pageState.js";
import { createReplyCache } from "../shared/requests.js";
import { againstOf, percent, targetOf } from "./format.js";
import { classMethod, placeAmong } from "./methods.js";
import { FIRST_SECTION } from "./sections.js";

const NO_CLASSES = english("This model has no classifier head, so no map can be about a class.");
const ROOM = "(min-width: 1800px) and (min-height: 1000px)"; // where it is beside the answer: as in drawer.css
const HOLE = "(min-width: 1400px) and (min-height: 860px)"; // where the answers of a photo leave room below the words
const DOCKED = "vit_demo.settings"; // whether it is open there, in the browser's storage
const SMOOTHING = [
  [false, english("plain")],
  [true, english("blended")],
];
const SCALES = [
  ["shared", english("of this picture")],
  ["own", english("of this map")],
];
const DIRECTIONS = [
  ["from", english("attends to")],
  ["to", english("attended to by")],
];

/**
 * Builds the drawer. `onChange(part)` gets the choices that change; `retry()` is called when a map is chosen, even the one that
 * is shown; `modes` are [name, words] of what the tokens can show; `request` is the stage's.
 *
 * `update(choices, shape, result)` shows the choices for a network of that shape, {numBlocks, numHeads}. `open(isOpen)`.
 */
export function createDrawer(element, methods, { onChange, retry, modes, request }) {
  const find = (selector) => element.querySelector(selector);
  const drawer = find(".drawer");
  const control = (name) => drawer.querySelector(`[data-control=${name}]`);
  /** Changes the map, or the colours of the tokens where these are shown. */
  function changeShown(part) {
    const { section, features } = pageState.get().view;
    onChange(section === "features" ? { features: { ...features, ...part } } : part);
  }
  const all = find(".all");
  const list = createList(all, methods, { onChange, retry, modes });
  const [title, hole] = [all.previousElementSibling, matchMedia(HOLE)];
  const segments = (name, title, options) =>
    segmentChoice(control(name), title, options, (value) => onChange({ [name]: value }));
  const direction = segments("direction", english("Direction"), DIRECTIONS);
  const smooth = segments("smooth", english("Squares"), SMOOTHING);
  const scale = segments("scale", english("Scale"), SCALES);
  const ofAll = (value) => translate("{value} of {all}", { value, all: control("block").max });
  const block = slider(control("block"), ofAll, (value) => changeShown({ block: value - 1 }));
  const opacity = slider(control("opacity"), percent, (value) => changeShown({ opacity: value / 100 }));
  const against = find(".against");
  against.addEventListener("change", () => {
    const other = JSON.parse(against.value);
    const compares = other === null || methods[pageState.get().view.method]?.comparesClasses;
    onChange({ against: other, ...(!compares && { method: classMethod(methods), plain: false }) });
  });
  const docs = createMethodDocs(find(".method-docs"), request);
  let head = /** @type {any} */ (null);

  function offerHeads(count) {
    const each = Array.from({ length: count }, (_, h) => [h, `${h + 1}`]);
    head = segments("head", english("Head"), [[-1, english("mean")], ...each]);
  }

  function update(choices, shape, result) {
    if (isNew(control("head"), [shape.numHeads, currentLanguage()])) {
      offerHeads(shape.numHeads);
      createTermList(find(".terms dl"));
    }
    const { uses } = methods[choices.method];
    const ofTokens = choices.section === "features";
    drawer.classList.toggle("tokens", ofTokens);
    list.update(choices, result);
    const place = hole.matches && result && !result.pixelated ? find(".meaning .ways") : title;
    if (place.nextElementSibling !== all) place.after(all);
    direction.set(choices.direction);
    const last = shape.numBlocks;
    block.set(ofTokens ? Math.min(choices.features.block ?? Infinity, last - 1) + 1 : choices.block + 1, last);
    opacity.set(Math.round(100 * (ofTokens ? choices.features.opacity : choices.opacity)));
    head.set(choices.head);
    smooth.set(choices.smooth);
    scale.set(choices.scale);
    for (const [use, each] of Object.entries({ block, head, direction })) {
      each.enable(Boolean(result) && (uses.includes(use) || (ofTokens && use === "block")));
    }
    offerOthers(result, choices);
    docs.setMethod(ofTokens ? "features" : choices.method);
    showCosts(find(".costs"), result);
    setText(find(".about-model"), aboutModel(result));
  }

  /** Offers the other classes, most likely first, to compare the class of the heatmap with. */
  function offerOthers(result, choices) {
    put(against, { disabled: !result || result.predictions.length < 2 });
    const target = result && targetOf(result, choices.label);
    const predictions = against.disabled ? [] : result.predictions;
    const options = () => [
      [null, translate("a class: why not that?")],
      ...predictions.filter((one) => one !== target).map(({ index, label }) => [index, label]),
    ];
    const value = result && (againstOf(result, choices)?.index ?? null);
    fillSelect(against, [predictions, target, currentLanguage()], options, value);
  }

  const settings = find(".settings");
  const room = matchMedia(ROOM);

  function show(isOpen) {
    drawer.hidden = !isOpen;
    settings.setAttribute("aria-expanded", String(isOpen));
  }

  function open(isOpen) {
    show(isOpen);
    if (room.matches) storeSetting(DOCKED, String(isOpen));
    if (isOpen) find(".drawer .close").focus({ preventScroll: true });
  }

  function leave() {
    open(false);
    settings.focus({ preventScroll: true });
  }

  const dock = () => show(room.matches && readSetting(DOCKED) !== "false");
  room.addEventListener("change", dock);
  dock();
  settings.addEventListener("click", () => open(drawer.hidden));
  find(".drawer .close").addEventListener("click", leave);
  drawer.addEventListener("keydown", (event) => event.key === "Escape" && leave());
  documentEvents(drawer)("pointerdown", ({ target }) => {
    const isInside =
      drawer.contains(target) || target.closest(".settings, .tooltip, .view, .acts, .line, .blocks, .all");
    if (!drawer.hidden && !isInside && !room.matches) open(false);
  });
  return { update, open, retry: docs.retry };
}

/** Everything that the picture can show, as radio buttons: maps for a class, maps without one, and of the tokens. */
function createList(list, methods, { onChange, retry, modes }) {
  const name = newId("methods");
  const rowOf = (method, value, words, use, partOf) => {
    const input = make("input", { type: "radio", name, onchange: () => onChange(partOf()) });
    input.dataset.value = value;
    const rank = make("small");
    const face = make("span", {}, make("b", { textContent: words }), rank, make("small", { textContent: use }));
    return { method, value, input, rank, use, face: make("label", { className: "method", title: use }, input, face) };
  };
  const rows = Object.entries(methods).map(([value, method]) =>
    rowOf(method, value, method.label, method.use, () => ({ section: FIRST_SECTION, plain: false, method: value })),
  );
  const ofTokens = modes.map(([mode, words, use]) =>
    rowOf(null, mode, words, use, () => ({
      section: "features",
      verb: mode === "similarity" ? "look" : undefined,
      features: { ...pageState.get().view.features, mode },
    })),
  );
  list.setAttribute("role", "radiogroup");
  list.setAttribute("aria-label", english("What the picture shows"));
  // A choice sends failed requests again, even the choice of what is chosen.
  list.addEventListener("click", (event) => event.target.matches("input") && retry());
  list.addEventListener("keydown", (event) => [" ", "Enter"].includes(event.key) && retry());

  /** Puts the methods in the order in which they did in the benchmark of faithfulness for a network. */
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
    const group = (title, members, ...more) =>
      make("div", {}, make("p", {}, make("span", {}, title), ...more), ...members.map(({ face }) => face));
    const isOfClass = ({ method }) => method.classSpecific;
    const isMeasured = placed.some(({ place }) => place);
    const link = make(
      "a",
      { className: "link", href: "./faithfulness", target: "_blank", rel: "noopener" },
      english("ranked by a test on 20 pictures ›"),
    );
    list.replaceChildren(
      group(english("What speaks for a class"), placed.filter(isOfClass), ...(isMeasured ? [link] : [])),
      group(
        english("Whatever the class"),
        placed.filter((row) => !isOfClass(row)),
      ),
      ...(modes.length ? [group(english("What the squares hold (tokens)"), ofTokens)] : []),
    );
  }

  function update(choices, result) {
    const hasClasses = Boolean(result?.predictions.length);
    if (isNew(list, [result?.source.preset ?? "", currentLanguage()])) sort(result?.source.preset ?? "");
    const isTokens = choices.section === "features";
    const shown = isTokens ? choices.features.mode : !choices.plain && choices.method;
    for (const { value, method, input, face, use } of [...rows, ...ofTokens]) {
      const isOfClass = method ? method.classSpecific : value === "classes";
      input.checked = isTokens === !method && value === shown;
      put(input, { disabled: !result || (isOfClass && !hasClasses) });
      put(face, { title: translate(result && input.disabled ? NO_CLASSES : use) });
    }
  }

  return { update };
}

/** How many tokens there are, and of how many if squares are rubbed out. */
const tokensOf = (count, gone) =>
  gone
    ? translate("{count} of {all}", { count: formatInteger(count), all: formatInteger(count + gone) })
    : formatInteger(count);

/** What one pass of this network costs for this picture. */
function showCosts(host, result) {
  const { rows, columns, numTokens, dropped, operations, milliseconds, device } = result ?? {};
  const time = { time: Math.max(1, Math.round(milliseconds)), device: translate(device ?? "") };
  const lines = result
    ? [
        [english("Squares (patches)"), `${formatInteger(rows)} × ${formatInteger(columns)}`],
        [english("Tokens"), tokensOf(numTokens, dropped.length)],
        [english("Operations"), formatCount(operations)],
        [english("Time"), translate("{time} ms on {device}", time)],
      ]
    : [];
  if (!isNew(host, [lines, currentLanguage()])) return;
  host.replaceChildren(...definitions(lines));
}

/** What is known of the network at its patch size: size, how it was made, and how often it is right. */
function aboutModel(result) {
  const model = result && menuModels.latest().get(result.source.preset);
  const { text = "", accuracy_text: accuracy = "" } =
    model?.sizes.find(({ size }) => size === result.source.patch_size) ?? {};
  return model ? `${model.summary} ${text} ${accuracy}`.trim() : "";
}

/** Loads the section about a method when it is opened, and again when a request failed. */
function createMethodDocs(panel, request) {
  const text = panel.querySelector(".text");
  const replies = createReplyCache(request, () => setMethod(current));
  let current = "";

  function setMethod(method) {
    current = method;
    if (!panel.open) return;
    const { value, error } = replies.get(panel, { kind: "method_docs", method }, ({ html }) => html);
    if ((value || error) && isNew(text, [method, error])) text.innerHTML = value ?? "";
    if (error) text.textContent = error;
  }

  function retry() {
    replies.retry();
    setMethod(current);
  }

  panel.addEventListener("toggle", retry);
  return { setMethod, retry };
}
