// @ts-check
// Download: the picture under its heatmap, its numbers, what the model saw, and code that computes the map again.

import { constants } from "../../../shared/constants.js";
import { copyText, documentEvents, make, setText } from "../../../shared/dom.js";
import { english, linkInLanguage, plain, translate } from "../../../shared/language.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { decodeFloat32 } from "../../result.js";
import { commandOf, fieldsOf, measuredOf, nameOf, nameOfInput, pythonOf, valuesOf } from "./description.js";
import { pngOf, squareOf, svgOf } from "./pictures.js";

/** What can be saved: [name, words, what it is]. */
const FILES = [
  ["send", english("Send a picture of it"), english("a square picture with its sentence, and a link")],
  ["png", "PNG", english("the heatmap with its caption and colour bar")],
  ["svg", "SVG", english("the same, to be edited")],
  ["json", "JSON", english("the map’s values, the method, the class and the model")],
  ["heads", english("All heads, CSV"), english("attention of every block and head, from the class token")],
  ["curves", english("Curves, CSV"), english("deletion and insertion, and random orders")],
  ["figure", english("One figure, SVG"), english("all heads, and the curves that were measured")],
  ["input", english("Input picture"), english("what the model saw, pixel by pixel")],
];

export const html = `
  <section class="chapter download">
    <h3>Save, share, code</h3>
    <div class="buttons">
      <details class="files">
        <summary class="quiet">Download</summary>
        <ul></ul>
      </details>
      <button type="button" class="quiet" data-download="python">Copy as Python</button>
      <button type="button" class="quiet" data-download="command">Copy the command</button>
    </div>
    <p class="hint" role="status"></p>
    <p class="hint">A report in one file: the command with <code translate="no">--html report.html</code></p>
    <p class="hint">A folder of pictures: <code translate="no">vit-demo audit MODEL --pictures DIR --out SITE</code></p>
  </section>`;

const LIFETIME = 60_000; // milliseconds that a browser gets to save a file
const HINT = english("JSON holds the package’s own float32 values.");
const NO_SERVER = english("Here the values are those that came with the picture: attention within 0.0001.");
const NO_COMMAND = english("The command line cannot rub out squares: copy the Python code instead.");

/** @type {import("../contract.d.ts").Create} */
export function create(card, { request, methods, curves, load }) {
  const hint = card.querySelector("[role=status]");
  const menu = card.querySelector(".files");
  menu.querySelector("ul").replaceChildren(
    ...FILES.map(([name, words, about]) => {
      const button = make("button", { type: "button" }, make("b", {}, words), make("small", {}, about));
      button.dataset.download = name;
      button.setAttribute("aria-label", words);
      return make("li", {}, button);
    }),
  );
  const buttons = [...card.querySelectorAll("button")];
  const isNear = () => card.classList.contains("near");
  let shown = /** @type {any} */ (null); // the map on the stage, with all that describes it

  /** What each button does with the map that was on the stage when it was pressed, whatever is there when it is done. */
  const actions = {
    send,
    png: async (map) => save(map, await pngOf(map), "png"),
    svg: (map) => save(map, svgOf(map), "svg", "image/svg+xml"),
    async json(map) {
      const exact = await exactValues(map);
      save(map, `${JSON.stringify(valuesOf(map, exact), null, 1)}\n`, "json", "application/json", Boolean(exact));
    },
    heads: (map) => saveTable(map, ({ headsCsv }) => headsCsv(map.result), "heads.csv", "text/csv"),
    curves(map) {
      const measured = measuredOf(map);
      if (measured.length) saveTable(map, ({ curvesCsv }) => curvesCsv(measured), "curves.csv", "text/csv");
      else setText(hint, english("Nothing was measured of this heatmap yet: test it first."));
    },
    figure: (map) => saveTable(map, ({ figureSvg }) => figureSvg(map, measuredOf(map)), "figure.svg", "image/svg+xml"),
    async input(map) {
      const reply = await request({ kind: "input", source: map.result.source });
      if (reply?.result) saveAs(reply.result.image, nameOfInput(map));
      else setText(hint, reply?.error ?? "");
    },
    python: (map) => copy(pythonOf(map), english("Python code copied.")),
    command(map) {
      const command = commandOf(map);
      if (command) copy(command, english("Command copied."));
      else setText(hint, NO_COMMAND);
    },
  };

  /** Offers a square picture and the link of what is on the stage, or saves and copies them; resolves to what was done. */
  async function send(map = shown) {
    const text = plain(map.frame.headline.text);
    const picture = new File([await squareOf(map, text)], `${nameOf(map)}.square.png`, { type: "image/png" });
    const url = linkOf(map);
    const sent = { files: [picture], text, ...(url && { url }) };
    if (navigator.canShare?.(sent)) {
      await navigator.share(sent).catch(() => {}); // who changes his mind
      return english("Send a picture of it");
    }
    save(map, picture, "square.png");
    const done = url && (await copyText(url)) ? english("Picture saved, link copied.") : english("Picture saved.");
    setText(hint, done);
    return done;
  }

  /** The values as the package computes them; null where no server can be asked. */
  async function exactValues(map) {
    const reply = await request({ kind: "map", source: map.result.source, ...fieldsOf(map).fields });
    return reply?.result ? decodeFloat32(reply.result.map) : null;
  }

  /** Saves what the code of the tables makes, which is fetched with the first one. */
  async function saveTable(map, content, extension, type) {
    const modules = await load("tables.js").catch(() => null);
    if (modules) save(map, content(modules["stage/views/download/tables.js"]), extension, type);
    else setText(hint, NOT_LOADED);
  }

  function save(map, content, extension, type, exact = true) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const url = URL.createObjectURL(blob);
    saveAs(url, `${nameOf(map)}.${extension}`, exact ? "" : NO_SERVER);
    setTimeout(() => URL.revokeObjectURL(url), LIFETIME);
  }

  function saveAs(url, name, remark = "") {
    make("a", { href: url, download: name }).click();
    setText(hint, `${translate("Saved *{name}*.", { name })} ${translate(remark)}`.trim());
  }

  async function copy(text, copied) {
    setText(hint, (await copyText(text)) ? copied : english("The browser did not allow copying."));
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      if (!isNear()) menu.open = false;
      if (shown) actions[button.dataset.download](shown);
    });
  }
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") menu.open = false;
  });

  function draw({ result, whole, method, view, map, look, frame }) {
    const name = Object.keys(methods).find((each) => methods[each] === method);
    const dropped = new Set(result.dropped);
    shown = map ? { result, whole, method, name, methods, curves, view, ...look, dropped, frame } : null;
    for (const button of buttons) button.disabled = !shown;
  }

  function show(result) {
    setText(hint, HINT);
    if (result) return;
    shown = null;
    for (const button of buttons) button.disabled = true;
  }

  /** Shows all that can be saved over the page, until a press elsewhere or Escape, which leads back to the `link`. */
  function take(link) {
    menu.open = true;
    card.classList.add("near");
    buttons[0].focus();
    menu.ontoggle = () => card.classList.toggle("near", menu.open && isNear());
    card.onkeydown = ({ key }) => key === "Escape" && isNear() && link.focus({ preventScroll: true });
  }

  documentEvents(card)("pointerdown", ({ target }) => {
    if (isNear() && !card.contains(target)) menu.open = false;
  });

  return { draw, show, take, send };
}

/**
 * The address of the page with what is on the stage, or, where its answer was changed, whole and with the number to beat. That of
 * an example or a short drawing is one of which a preview shows the picture.
 */
export function linkOf({ result, whole, frame }) {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (fields.get("picture") === "own") return null;
  if (frame.isFlip) {
    fields.delete("removed");
    fields.set("beat", String(result.dropped.length));
  }
  const { exampleDigit, source } = whole;
  const strokes = fields.get("strokes") ?? "";
  const drawing = strokes && strokes.length <= constants.maxPreviewCharacters ? `strokes-${strokes}` : "";
  const seen = source.example ?? (exampleDigit === undefined ? drawing : `digit-${exampleDigit}`);
  return linkInLanguage(seen ? new URL(`../../../../see/${seen}#${fields}`, import.meta.url).href : `#${fields}`);
}
