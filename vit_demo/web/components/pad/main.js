// The pad: one drawing, its history, the tools, and the value that Python sees.

import { modelInput } from "../shared/channels.js";
import { createPaper, extendStroke, followPointer } from "./paper.js";
import { drawStrokes, exampleStrokes, PENS, toDataUrl } from "./strokes.js";

const EMPTY = { base: null, strokes: [] };

/** Starts the pad in its element; called by Gradio for each pad of a page (see components/modules.py). */
export function mount({ element, props, trigger, watch, digits, opening }) {
  const find = (selector) => element.querySelector(selector);
  const paper = createPaper(find(".paper"));

  let drawing = EMPTY;
  let history = [];
  let pen = "medium";
  let live = null; // the stroke being drawn
  let isOpening = false; // true while the pad shows the digit that the page opened with
  let sent = props.value; // the last value that Python has, too

  const isEmpty = () => !drawing.base && !drawing.strokes.length;

  function refresh() {
    find(".hint").classList.toggle("faded", !isEmpty() && !isOpening);
    find("[data-action=undo]").disabled = !history.length;
    find("[data-action=clear]").disabled = isEmpty();
    for (const button of element.querySelectorAll("[data-pen]")) {
      button.setAttribute("aria-pressed", String(button.dataset.pen === pen));
    }
  }

  function send() {
    sent = toDataUrl(drawing);
    props.value = sent;
    trigger("input");
  }

  function replace(next) {
    history.push(drawing);
    drawing = next;
    isOpening = false;
    refresh();
  }

  function undo() {
    if (!history.length) return;
    drawing = history.pop();
    refresh();
    paper.show(drawing);
    send();
  }

  function clear() {
    if (isEmpty()) return;
    replace(EMPTY);
    paper.show(drawing);
    send();
  }

  async function writeExample(digit) {
    replace({ base: null, strokes: exampleStrokes(digits, digit) });
    // A stroke, undo or another example that interrupts the animation sends the drawing.
    if (await paper.write(drawing)) send();
  }

  /** Shows a picture without strokes: the drawing of a pad that Gradio has mounted again. */
  function showPicture(url) {
    const base = new Image();
    base.onload = () => {
      if (sent !== url) return;
      drawing = { base, strokes: [] };
      refresh();
      paper.show(drawing);
    };
    base.src = url;
  }

  function setValue(value) {
    sent = value;
    history = [];
    drawing = EMPTY;
    isOpening = Boolean(value) && value === opening.value;
    if (isOpening) drawing = { base: null, strokes: exampleStrokes(digits, opening.digit) };
    else if (value) showPicture(value);
    refresh();
    paper.show(drawing);
  }

  followPointer(find(".paper"), {
    begin(point) {
      // The first stroke replaces the digit that the page opened with, but nothing that the visitor drew.
      const strokes = isOpening ? [] : drawing.strokes;
      live = { width: PENS[pen], points: [point] };
      replace({ base: drawing.base, strokes: [...strokes, live] });
      paper.show(drawing);
    },
    extend(points) {
      extendStroke(live, points);
      paper.show(drawing);
    },
    end: send,
  });

  find(".paper").addEventListener("keydown", (event) => {
    const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
    const isClear = event.key === "Delete" || event.key === "Backspace";
    if (!isUndo && !isClear) return;
    event.preventDefault();
    if (isUndo) undo();
    else clear();
  });

  find("[data-action=undo]").addEventListener("click", undo);
  find("[data-action=clear]").addEventListener("click", clear);
  for (const button of element.querySelectorAll("[data-pen]")) {
    button.addEventListener("click", () => {
      pen = button.dataset.pen;
      refresh();
    });
  }

  for (let digit = 0; digit < 10; digit++) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "example";
    button.setAttribute("aria-label", `Example ${digit}`);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 96;
    drawStrokes(canvas.getContext("2d"), exampleStrokes(digits, digit), canvas.width);
    button.append(canvas);
    button.addEventListener("click", () => writeExample(digit));
    find(".examples").append(button);
  }

  /** Shows the digit that the model saw, which often explains a wrong prediction. */
  function showModelInput({ digit }) {
    find(".model-input").hidden = !digit;
    if (digit) find(".model-input img").src = digit;
  }
  modelInput.follow(element, showModelInput);
  showModelInput(modelInput.latest()); // the stage may have been first

  // Gradio passes None as an empty string, and reports the pad's own changes, too.
  watch("value", () => {
    if ((props.value || null) !== (sent || null)) setValue(props.value);
  });
  setValue(props.value);
}
