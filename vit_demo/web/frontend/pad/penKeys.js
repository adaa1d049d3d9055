// A pen for the keyboard: arrow keys move it, Space puts it on the paper and lifts it, Escape lifts it. And Ctrl+Z.

const STEP = 1 / 20; // of the paper's side
const FINE = 1 / 80; // with Shift
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

const isUndo = ({ ctrlKey, metaKey, shiftKey, key }) => (ctrlKey || metaKey) && !shiftKey && key.toLowerCase() === "z";

/** Calls `begin(point)`, `extend(points)` and `end()` as a pointer would, and `undo()` and `clear()`; `nib` shows the pen. */
export function followKeys(canvas, nib, { begin, extend, end, undo, clear }) {
  let at = [0.5, 0.5];
  let isDown = false;

  function place() {
    [nib.style.left, nib.style.top] = at.map((value) => `${100 * value}%`);
    nib.classList.toggle("down", isDown);
    nib.hidden = false;
  }

  function lift() {
    if (!isDown) return;
    isDown = false;
    end();
  }

  function move([x, y], step) {
    at = [at[0] + x * step, at[1] + y * step].map((value) => Math.min(0.95, Math.max(0.05, value)));
    if (isDown) extend([at]);
  }

  function press() {
    if (isDown) return lift();
    isDown = true;
    begin(at);
  }

  canvas.addEventListener("keydown", (event) => {
    const { key, shiftKey } = event;
    if (isUndo(event) || key === "Delete" || key === "Backspace") {
      lift();
      if (isUndo(event)) undo();
      else clear();
    } else if (key in ARROWS) move(ARROWS[key], shiftKey ? FINE : STEP);
    else if (key === " ") press();
    else if (key === "Escape") lift();
    else return;
    event.preventDefault();
    if (key in ARROWS || key === " ") place();
  });
  canvas.addEventListener("blur", () => {
    lift();
    nib.hidden = true;
  });
  canvas.addEventListener("pointerdown", () => {
    lift();
    nib.hidden = true;
  });
}

/** Calls `undo()` for Ctrl+Z on the page, as long as the pad is what was used last. */
export function followUndo(pad, undo) {
  const stopped = new AbortController();
  let isLast = false;

  const listen = (name, callback) =>
    document.addEventListener(
      name,
      (event) => {
        if (pad.isConnected) callback(event);
        else stopped.abort();
      },
      { signal: stopped.signal },
    );

  for (const name of ["pointerdown", "focusin"]) {
    listen(name, ({ target }) => {
      isLast = pad.contains(target);
    });
  }
  listen("keydown", (event) => {
    if (!isLast || !isUndo(event) || event.defaultPrevented) return;
    event.preventDefault();
    undo();
  });
}
