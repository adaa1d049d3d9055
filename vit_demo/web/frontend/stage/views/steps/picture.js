// The picture beside every step: the visitor points at a patch to choose it.

import { make, setText } from "../../../shared/dom.js";
import { middlePatch, neighbour, patchBox } from "../../../shared/geometry.js";
import { english } from "../../../shared/language.js";
import { fitCanvas, paintResult } from "../../picture.js";
import { followPatches } from "../../pointing.js";

const OPACITY = 0.7;

/**
 * Adds a picture to `host`. `show({result, mapOf, chosen, marks, caption, canChoose})` paints it: `mapOf(hovered)` returns
 * one value for each patch or null, `chosen` is a patch or null, `marks` are [patch, letter], `caption(hovered)` the words
 * below it. `onChoose(patch)` is called when a visitor chooses a patch.
 */
export function createPicture(host, onChoose) {
  const canvas = make("canvas", { className: "tour-picture", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", english("The picture in its patches: arrow keys choose one"));
  const box = make("div", { className: "picture-box" }, canvas);
  const words = make("p", { className: "picture-caption" });
  host.append(box, words);
  let shown = null;
  let hovered = null;

  function paint() {
    if (!shown || !box.clientWidth) return;
    const { result, mapOf, chosen, marks, caption } = shown;
    const size = fitCanvas(canvas, box, result.size);
    const dropped = new Set(result.dropped);
    paintResult(canvas, size, result, { map: mapOf(hovered), opacity: OPACITY, queried: chosen, hovered, dropped });
    paintLetters(canvas, size, result, marks);
    setText(words, caption(hovered));
  }

  function show(next) {
    if (next.result !== shown?.result) hovered = null;
    shown = next;
    paint();
  }

  function hover(patch) {
    if (patch === hovered) return;
    hovered = patch;
    paint();
  }

  /** Outlines a patch at once: its numbers may still be on their way. */
  function choose(patch) {
    if (shown.result.tokenOf[patch] < 0) return;
    shown = { ...shown, chosen: patch };
    paint();
    onChoose(patch);
  }

  followPatches(canvas, () => shown?.result ?? null, {
    hover,
    click: choose,
    move(step) {
      let patch = shown.chosen ?? middlePatch(shown.result);
      // Past dropped patches, which have no token.
      do {
        const next = neighbour(patch, step, shown.result);
        if (next === patch) return;
        patch = next;
      } while (shown.result.tokenOf[patch] < 0);
      choose(patch);
    },
    press() {},
    leave: () => hover(null),
  });
  new ResizeObserver(paint).observe(box);

  return { show };
}

/** Letters in the middle of patches, white on a dark disc, so that they can be read on any picture. */
function paintLetters(canvas, [width, height], result, marks) {
  const context = canvas.getContext("2d");
  for (const [patch, letter] of marks) {
    const { left, top, width: w, height: h } = patchBox(patch, { left: 0, top: 0, width, height }, result);
    const [x, y] = [left + w / 2, top + h / 2];
    context.beginPath();
    context.arc(x, y, 10, 0, 2 * Math.PI);
    context.fillStyle = "rgb(23 24 28 / 85%)";
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = "#fff";
    context.stroke();
    context.fillStyle = "#fff";
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(letter, x, y + 0.5);
  }
}
