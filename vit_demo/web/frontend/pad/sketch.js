// @ts-check
// The drawing: its strokes, the pen, and what can be undone. The picture of the stage and the small paper both draw on it.

import { createChannel } from "../shared/pageState.js";
import { addPoints, exampleStrokes, PENS } from "./strokes.js";
import { rounded } from "./strokesInLink.js";

/** The name of a picture that is no strokes, but a file of the visitor's or one of the digits for tests. */
export const fileOf = (picture) => picture?.upload ?? picture?.example;

/**
 * A drawing; `open` connects it with the page's state. A surface calls `begin(point)`, `extend(points)` and `end()` for a
 * stroke, or `cancel()`; `subscribe(element, callback)` tells of each change, also within a stroke.
 */
export function createSketch() {
  const { publish, subscribe } = createChannel();
  /** @type {{digits: any, onChange: (picture: any, isStep: boolean) => void} | null} */
  let page = null;
  let picture; // undefined until the first is shown
  let strokes = []; // of the picture, and of the stroke being drawn
  let history = [];
  let pen = "medium";
  let live = /** @type {any} */ (null); // the stroke being drawn
  const drawn = new WeakSet(); // strokes that were drawn here
  let isHeld = true;
  let written = /** @type {any[] | null} */ (null); // strokes that the page writes by itself, which are nobody's drawing

  const strokesOf = ({ digit, strokes: drawn = undefined }) =>
    drawn ?? (digit === undefined ? [] : exampleStrokes(/** @type {any} */ (page).digits, digit));

  function put(next) {
    picture = next;
    strokes = strokesOf(next ?? {});
    live = written = null;
    publish();
  }

  function replace(next, isStep) {
    history.push(picture);
    put(next);
    page?.onChange(picture, isStep);
  }

  return {
    subscribe,
    /** Connects the drawing with the page: the strokes of its example digits, and what is called with each new picture. */
    open(given) {
      page = given;
      publish();
    },
    isOpen: () => page !== null,
    /** Whether drawing is what one does with the picture now, so that keys undo it. */
    hold(next) {
      isHeld = next;
    },
    isHeld: () => isHeld,
    /** Another picture is on the paper, which cannot be undone. */
    show(next) {
      if (next === picture) return;
      history = [];
      put(next);
    },
    /** Strokes that are shown, but belong to no picture; null for those of the picture again. */
    write(next) {
      written = next;
      publish();
    },
    picture: () => picture,
    strokes: () => written ?? strokes,
    isWritten: () => written !== null,
    isDrawing: () => live !== null,
    isEmpty: () => !strokes.length && !fileOf(picture),
    canUndo: () => history.length > 0,
    pen: () => pen,
    choosePen(next) {
      pen = next;
      publish();
    },
    begin(point) {
      // A stroke on an example, or on what was added to a class, starts a new drawing; the eraser changes it.
      const isNew = (picture?.digit !== undefined || picture?.isAdded) && pen !== "eraser";
      const before = isNew ? [] : strokesOf(picture ?? {});
      written = null;
      live = before.length || pen !== "eraser" ? { width: PENS[pen], points: [point] } : null;
      if (live) strokes = [...before, live];
      publish();
    },
    extend(points) {
      if (!live) return; // it was undone while it was drawn, or erases nothing
      addPoints(live.points, points);
      publish();
    },
    cancel: () => put(picture),
    end() {
      if (!live) return;
      const next = { strokes: strokes.map((stroke) => rounded(stroke, stroke === live ? undefined : 0)) };
      drawn.add(next.strokes);
      replace(next, false);
    },
    /** Whether the visitor has drawn it here. */
    isOwn: () => live !== null || drawn.has(picture?.strokes),
    undo() {
      if (!history.length) return;
      put(history.pop());
      page?.onChange(picture, false);
    },
    clear() {
      if (strokes.length || fileOf(picture)) replace(null, false);
    },
    example: (digit) => replace({ digit }, true),
    /** The strokes of an example. */
    exampleOf: (digit) => strokesOf({ digit }),
  };
}

/** The drawing of this page; the inputs and the stage share it by importing it. */
export const sketch = createSketch();
