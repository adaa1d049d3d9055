// What each step shows beside the picture. A figure is a function of the tour's state that returns the nodes to show.

import { make } from "../../../shared/dom.js";
import { english } from "../../../shared/language.js";
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

const OUTSIDE = english(
  "This fused kernel stores no scores and no shares. The lines below compute them outside the network, from the same queries and keys, as for every heatmap; torch documents that the kernel computes the same.",
);

/** The code of a step, with where it stands; before lines that are not of the network, that they are not. */
export function codeNodes(excerpts) {
  const firstOutside = excerpts.find(({ where }) => !where.startsWith("vit_demo/model/"));
  return excerpts.flatMap((excerpt) => [
    ...(excerpt === firstOutside ? [make("p", { textContent: OUTSIDE })] : []),
    make("small", { translate: false, textContent: excerpt.where }),
    make("pre", { tabIndex: 0, textContent: excerpt.code }),
  ]);
}
