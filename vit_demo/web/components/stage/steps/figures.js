// What each step shows beside the picture. A figure is a function of the tour's state that returns the nodes to show.

import { make } from "../../shared/dom.js";
import { classesFigure, depthFigure } from "./answerFigures.js";
import { headFigure, headsFigure, mlpFigure } from "./blockFigures.js";
import { productFigure, rowFigure, sequenceFigure } from "./patchFigures.js";

/**
 * The figures in the order of the steps. The state is {result, facts, shared, patch, block, tour, revealed, paint,
 * choose}: `patch` and `block` are the replies about the chosen patch and block, `paint` a painter of vectors.js,
 * `choose(part)` changes the tour.
 */
export const FIGURES = [
  rowFigure,
  productFigure,
  sequenceFigure,
  headFigure,
  headsFigure,
  mlpFigure,
  depthFigure,
  classesFigure,
];

/** What a step needs besides the reply of kind "steps". */
export const NEEDS = [[], ["patch"], ["patch"], ["block"], ["block"], ["block"], [], []];

/** Puts nodes into a host; the control that had the focus, by its `data-key`, gets it back. */
export function replaceNodes(host, nodes) {
  const { activeElement } = document;
  const key = host.contains(activeElement) ? activeElement.dataset.key : null;
  host.replaceChildren(...nodes);
  if (key) [...host.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key)?.focus();
}

/** The code of a step, with where it stands. */
export function codeNodes(excerpts) {
  return excerpts.flatMap(({ where, code }) => [
    make("small", { translate: false, textContent: where }),
    make("pre", { tabIndex: 0, textContent: code }),
  ]);
}
