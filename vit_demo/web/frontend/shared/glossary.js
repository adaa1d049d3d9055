// The field's terms, each explained where it is met: on hover, on focus with the Tab key, and on tap.

import { make, setText } from "./dom.js";
import { english, translate } from "./language.js";

/** Terms in the order in which they are looked for: all words that stand for one, and its explanation. */
const TERMS = [
  [
    english("class token|class tokens"),
    english(
      "A token beside those of the patches. It belongs to no patch and gathers from all of them; after the last block, the prediction is read from it.",
    ),
  ],
  [
    english("register|registers"),
    english("A token beside those of the patches that the network uses as scratch space; nothing is read from it."),
  ],
  [
    english("patch size"),
    english("Smaller patches give a finer map, but more tokens, and attention compares every pair of them."),
  ],
  [
    english("patch|patches"),
    english(
      "A square of the picture. A Vision Transformer cuts the picture into patches and reads them as a sequence.",
    ),
  ],
  [
    english("token|tokens"),
    english("The list of numbers that stands for a patch inside the network; every block writes it anew."),
  ],
  [
    english("attention"),
    english(
      "How a token reads from the others: it divides its attention among all tokens, itself included, so its shares sum to 100 %. No class enters the calculation, so attention is the same for every class.",
    ),
  ],
  [
    english("rank correlation"),
    english("How alike two maps order the patches: 1 for the same order, 0 for unrelated orders, −1 for the reverse."),
  ],
  [
    english("deletion"),
    english(
      "Patches are removed, the strongest of the heatmap first. If the heatmap is faithful, the probability falls quickly.",
    ),
  ],
  [
    english("insertion"),
    english(
      "Patches return to an empty picture, the strongest of the heatmap first. If the heatmap is faithful, the probability rises quickly.",
    ),
  ],
  [
    english("logit lens"),
    english("The classifier head is applied to the tokens of an earlier block, as if that were the last."),
  ],
  [english("logit|logits"), english("The score of a class, before softmax turns all scores into probabilities.")],
  [english("PCA"), english("Principal component analysis: the directions in which the tokens differ most.")],
  [english("norm|norms"), english("The length of a token: the root of the sum of its squared numbers.")],
  [
    english("rollout"),
    english("Attention of all blocks multiplied, so that it reaches from the output back to the image."),
  ],
  [
    english("AttnLRP"),
    english("Layer-wise relevance propagation for attention: the score of a class is passed back to the patches."),
  ],
  [
    english("block|blocks"),
    english(
      "One layer of the network: attention, in which tokens read from each other, then a small network for each token.",
    ),
  ],
  [
    english("head|heads"),
    english(
      "One of several attentions that a block computes side by side, each with its own queries, keys and values.",
    ),
  ],
];

/** All terms with their explanations, as a list of definitions. */
export function createTermList(host) {
  host.replaceChildren(
    ...TERMS.flatMap(([words, explanation]) => {
      const [word] = translate(words).split("|");
      return [make("dt", { textContent: word }), make("dd", { textContent: translate(explanation) })];
    }),
  );
}

/** Sets text as `setText` does, and makes the first of each term a button with its explanation. */
export function setExplainedText(node, text, tooltip) {
  if (!setText(node, text)) return;
  for (const [words, explanation] of TERMS) explainFirst(node, patternOf(translate(words)), explanation, tooltip);
}

/** Whole words, where a script has spaces between them. */
const patternOf = (words) => new RegExp(`(?<!\\p{Script=Latin})(?:${words})(?!\\p{Script=Latin})`, "iu");

function explainFirst(node, pattern, explanation, tooltip) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let part = walker.nextNode(); part; part = walker.nextNode()) {
    const found = pattern.exec(part.data);
    if (!found || part.parentElement.matches(".term")) continue;
    const rest = part.splitText(found.index);
    rest.splitText(found[0].length);
    const term = make("button", { type: "button", className: "term", textContent: found[0] });
    rest.replaceWith(term);
    tooltip.attach(term, explanation);
    return;
  }
}

/** The tooltip of a stage: one element, above everything, beside the term that it explains. */
export function createTooltip(host) {
  const tip = make("div", { className: "tooltip", popover: "manual", id: `${host.id || "stage"}-tooltip` });
  tip.setAttribute("role", "tooltip");
  host.append(tip);

  function show(term, explanation) {
    setText(tip, explanation);
    term.setAttribute("aria-describedby", tip.id);
    tip.showPopover?.();
    const at = term.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - tip.offsetWidth - 8);
    const below = at.bottom + 6 + tip.offsetHeight <= innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? at.bottom + 6 : at.top - 6 - tip.offsetHeight}px`;
  }

  const hide = () => tip.isConnected && tip.matches(":popover-open") && tip.hidePopover();

  function attach(term, explanation) {
    for (const event of ["pointerenter", "focus", "click"]) {
      term.addEventListener(event, () => show(term, explanation));
    }
    for (const event of ["pointerleave", "blur"]) term.addEventListener(event, hide);
    term.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  }

  return { attach };
}
