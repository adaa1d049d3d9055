// @ts-check
// The code of a step, and what is said about it.

import { make } from "../../../shared/dom.js";
import { english } from "../../../shared/language.js";

const OUTSIDE = english(
  "This fused kernel stores no scores and no shares. The lines below compute them outside the network, from the same queries and keys, as for every heatmap; torch documents that the kernel computes the same.",
);

const ELSEWHERE = english(
  "This network is of another library. In the Vision Transformer of this package, the step is:",
);

/** The code of a step, with where it stands; before lines that are not of the network, that they are not. */
export function codeNodes(excerpts, own) {
  const firstOutside = excerpts.find(({ where }) => !where.startsWith("vit_demo/model/"));
  const nodes = excerpts.flatMap((excerpt) => [
    ...(excerpt === firstOutside ? [make("p", { textContent: OUTSIDE })] : []),
    make("small", { translate: false, textContent: excerpt.where }),
    make("pre", { tabIndex: 0, textContent: excerpt.code }),
  ]);
  return own ? nodes : [make("p", { textContent: ELSEWHERE }), ...nodes];
}
