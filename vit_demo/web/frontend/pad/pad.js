// @ts-check
// The pad: one drawing, its history and the tools.

import { makeButton, onFiles, rove } from "../shared/dom.js";
import { languageChange, translate } from "../shared/language.js";
import { modelInput } from "../shared/pageState.js";
import { createPadCanvas, listenToKeys, listenToPointer, listenToUndo } from "./canvas.js";
import { addPoints, exampleStrokes, PENS, rounded } from "./strokes.js";

/** The name of a picture that is no strokes, but a file of the visitor's or one of the digits for tests. */
const fileOf = (picture) => picture?.upload ?? picture?.example;

/**
 * Starts the pad in its element. `onChange(picture, isStep)` is called when a stroke ends, an example is written, and for
 * undo and clear; the picture is {strokes}, {digit}, {upload}, {example} or null. `onPhoto(file)` gets a photo of a digit,
 * and `photos` has those of uploads. `show(picture)` puts another picture on the paper, `say(sentence)` is about a photo.
 */
export function createPad(element, { digits, photos, onPhoto, onChange }) {
  const find = (selector) => element.querySelector(selector);
  const [canvas, photo, file] = [".paper", ".photo", "input"].map(find);
  const paper = createPadCanvas(canvas);
  let picture; // undefined until the first is shown
  let strokes = []; // of the picture, and of the stroke being drawn
  let history = [];
  let pen = "medium";
  let live = /** @type {any} */ (null); // the stroke being drawn

  const strokesOf = ({ digit, strokes: drawn }) => drawn ?? (digit === undefined ? [] : exampleStrokes(digits, digit));

  function refresh() {
    const isEmpty = !strokes.length && !fileOf(picture);
    // What the browser cannot show, such as HEIC, and a photo of before a reload: as the model saw it.
    const own = photos.get(fileOf(picture));
    const address = !live && fileOf(picture) && (own ?? modelInput.latest().digit);
    photo.hidden = !address;
    photo.classList.toggle("seen", !own);
    if (address && photo.src !== address) photo.src = address;
    find(".hint").classList.toggle("faded", !isEmpty);
    find("[data-action=undo]").disabled = !history.length;
    find("[data-action=clear]").disabled = isEmpty;
    for (const button of element.querySelectorAll("[data-pen]")) {
      button.setAttribute("aria-pressed", String(button.dataset.pen === pen));
    }
    element.querySelectorAll(".example").forEach((button, digit) => {
      button.setAttribute("aria-label", translate("Example {digit}", { digit }));
      button.setAttribute("aria-pressed", String(picture?.digit === digit));
    });
    for (const group of [".tools", ".digits"]) rove(find(group));
  }

  function put(next) {
    picture = next;
    strokes = strokesOf(next ?? {});
    live = null;
    refresh();
    paper.show(strokes);
  }

  function replace(next, isStep) {
    history.push(picture);
    say("");
    put(next);
    onChange(picture, isStep);
  }

  function undo() {
    if (!history.length) return;
    put(history.pop());
    onChange(picture, false);
  }

  function clear() {
    if (strokes.length || fileOf(picture)) replace(null, false);
  }

  function writeExample(digit) {
    replace({ digit }, true);
    paper.write(strokes);
  }

  const pointer = {
    begin(point) {
      // A stroke on an example, or on what was added to a class, starts a new drawing; the eraser changes it.
      const isNew = (picture?.digit !== undefined || picture?.isAdded) && pen !== "eraser";
      const before = isNew ? [] : strokesOf(picture ?? {});
      live = before.length || pen !== "eraser" ? { width: PENS[pen], points: [point] } : null;
      if (!live) return;
      strokes = [...before, live];
      refresh();
      paper.show(strokes);
    },
    extend(points) {
      if (!live) return; // it was undone while it was drawn, or erases nothing
      addPoints(live.points, points);
      paper.show(strokes);
    },
    cancel: () => put(picture),
    end() {
      if (live) replace({ strokes: strokes.map((stroke) => rounded(stroke, stroke === live ? undefined : 0)) }, false);
    },
  };
  listenToKeys(canvas, find(".nib"), { ...pointer, undo, clear }); // first: a pointer ends the keyboard's stroke
  listenToPointer(canvas, pointer);

  listenToUndo(element, undo);
  find("[data-action=undo]").addEventListener("click", undo);
  find("[data-action=clear]").addEventListener("click", clear);
  find("[data-action=photo]").addEventListener("click", () => file.click());
  onFiles(file, onPhoto);
  photo.addEventListener("error", () => {
    if (photos.delete(picture?.upload)) refresh();
  });
  for (const button of element.querySelectorAll("[data-pen]")) {
    button.addEventListener("click", () => {
      pen = button.dataset.pen;
      refresh();
    });
  }

  for (let digit = 0; digit < 10; digit++) {
    find(".digits").append(makeButton(() => writeExample(digit), { className: "example" }, String(digit)));
  }

  modelInput.subscribe(element, refresh);
  languageChange.subscribe(element, refresh);

  function show(next) {
    if (next === picture) return;
    history = [];
    put(next);
  }

  const say = (sentence) => {
    find(".problem").textContent = sentence;
  };

  return { show, say };
}
