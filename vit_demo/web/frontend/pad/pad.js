// @ts-check
// The pad: the tools of the drawing, the example digits, and a small paper where the picture of the stage is not in sight.

import { makeButton, onFiles, put, rove } from "../shared/dom.js";
import { english, languageChange, translate } from "../shared/language.js";
import { modelInput, pageState, shownResult } from "../shared/pageState.js";
import { createPadCanvas, listenToKeys, listenToPointer, listenToUndo } from "./canvas.js";
import { fileOf, sketch } from "./sketch.js";

const AT_PICTURE = "(min-width: 901px), (min-width: 601px) and (min-height: 560px)"; // where there is room, as in page.css

/**
 * Starts the pad in its element. `onPhoto(file)` gets a photo of a digit, and `photos` has those of uploads. `say(sentence, onOffer)`
 * is about a photo.
 */
export function createPad(element, { photos, onPhoto }) {
  const find = (selector) => element.querySelector(selector);
  const [canvas, photo, file, tools] = [".paper", ".photo", "input", ".pens"].map(find);
  const pens = [...tools.querySelectorAll("[data-pen]")];
  const [undo, clear] = ["undo", "clear"].map((name) => find(`[data-action=${name}]`));
  const paper = createPadCanvas(canvas);

  function refresh() {
    const picture = sketch.picture();
    const isEmpty = sketch.isEmpty();
    // What the browser cannot show, such as HEIC, and a photo of before a reload: as the model saw it.
    const own = photos.get(fileOf(picture));
    const address = !sketch.isDrawing() && fileOf(picture) && (own ?? modelInput.latest().digit);
    put(photo, { hidden: !address });
    photo.classList.toggle("seen", !own);
    if (address && photo.src !== address) photo.src = address;
    find(".hint").classList.toggle("faded", !isEmpty);
    put(undo, { disabled: !sketch.canUndo() });
    put(clear, { disabled: isEmpty });
    for (const button of pens) {
      put(button, { ariaPressed: String(button.dataset.pen === sketch.pen()) });
    }
    element.querySelectorAll(".example").forEach((button, digit) => {
      put(button, {
        ariaLabel: translate("Example {digit}", { digit }),
        ariaPressed: String(picture?.digit === digit && !sketch.isDrawing()),
      });
    });
    for (const group of [tools, find(".digits")]) rove(group);
    paper.show(sketch.strokes());
  }

  listenToKeys(canvas, find(".nib"), sketch); // first: a pointer ends the keyboard's stroke
  listenToPointer(canvas, sketch);
  listenToUndo(element, sketch.undo, sketch.isHeld);
  undo.addEventListener("click", sketch.undo);
  clear.addEventListener("click", sketch.clear);
  find("[data-action=photo]").addEventListener("click", () => file.click());
  onFiles(file, onPhoto);
  photo.addEventListener("error", () => {
    if (photos.delete(sketch.picture()?.upload)) refresh();
  });
  for (const button of pens) button.addEventListener("click", () => sketch.choosePen(button.dataset.pen));
  for (let digit = 0; digit < 10; digit++) {
    find(".digits").append(makeButton(() => sketch.example(digit), { className: "example" }, String(digit)));
  }

  for (const each of [sketch, modelInput, languageChange]) each.subscribe(element, refresh);

  /** The tools stand at the picture on which one draws. */
  const room = matchMedia(AT_PICTURE);
  function place() {
    const isOnPicture = !["compare", "teach"].includes(pageState.get()?.view.section ?? "");
    const acts = room.matches && isOnPicture && document.querySelector(".explore .acts");
    if (acts && !acts.contains(tools)) acts.append(tools);
    else if (!acts && !element.contains(tools)) find(".sheet").after(tools);
  }
  room.addEventListener("change", place);
  for (const each of [pageState, shownResult]) each.subscribe(element, place);

  /** Shows a sentence about a photo; `onOffer` is called if the visitor wants to see it as one of anything. */
  function say(sentence, onOffer = /** @type {(() => void) | null} */ (null)) {
    const take = () => {
      say("");
      onOffer?.();
    };
    const offer = onOffer ? [" ", makeButton(take, { className: "link" }, english("See it as a photo"))] : [];
    find(".problem").replaceChildren(...(sentence ? [sentence, ...offer] : []));
  }

  return { say };
}
