// The pad: one drawing, its history, the tools, and the value that Python sees.

const find = (selector) => element.querySelector(selector);
const paper = createPaper(find(".paper"));
const EMPTY = { base: null, strokes: [] };

let drawing = EMPTY;
let history = [];
let pen = "medium";
let live = null; // the stroke being drawn
let opening = false; // true while the pad shows the digit the page opened with
let sent = props.value; // the last value the pad and Python agree on

const isEmpty = () => !drawing.base && !drawing.strokes.length;

function refresh() {
  find(".hint").classList.toggle("gone", !isEmpty() && !opening);
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
  opening = false;
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
  replace({ base: null, strokes: exampleStrokes(props.digits, digit) });
  // Whatever interrupts the writing (a stroke, undo, another example) sends the drawing itself.
  if (await paper.write(drawing)) send();
}

/** Shows a picture that did not come from strokes: a drawing restored after Gradio rebuilt the component. */
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

function adopt(value) {
  sent = value;
  history = [];
  drawing = EMPTY;
  opening = Boolean(value) && value === props.opening.value;
  if (opening) drawing = { base: null, strokes: exampleStrokes(props.digits, props.opening.digit) };
  else if (value) showPicture(value);
  refresh();
  paper.show(drawing);
}

followPointer(find(".paper"), {
  begin(point) {
    // The digit the page opened with makes way; whatever the visitor put on the paper stays.
    const strokes = opening ? [] : drawing.strokes;
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
  drawStrokes(canvas.getContext("2d"), exampleStrokes(props.digits, digit), canvas.width);
  button.append(canvas);
  button.addEventListener("click", () => writeExample(digit));
  find(".examples").append(button);
}

/** Shows the digit that the model made of the drawing: people learn from it why one was misread. */
function showSeen() {
  const digit = window.vitDemoSeen;
  find(".seen").hidden = !digit;
  if (digit) find(".seen img").src = digit;
}
document.addEventListener("vit-demo:seen", showSeen); // the stage may have been first, or may follow
showSeen();

// Gradio hands null over as an empty string, and reports the pad's own values back to it.
watch("value", () => {
  if ((props.value || null) !== (sent || null)) adopt(props.value);
});
adopt(props.value);
