// The words of the glossary; in a texts.js every string is one that is translated.

/** Terms in the order in which they are looked for: all words that stand for one, and its explanation. */
export const TERMS = [
  [
    "class token|class tokens",
    "A token beside those of the patches. It belongs to no patch and gathers from all of them; after the last block, the prediction is read from it.",
  ],
  [
    "register|registers",
    "A token beside those of the patches that the network uses as scratch space; nothing is read from it.",
  ],
  ["patch size", "Smaller patches give a finer map, but more tokens, and attention compares every pair of them."],
  [
    "patch|patches",
    "A square of the picture. A Vision Transformer cuts the picture into patches and reads them as a sequence.",
  ],
  ["token|tokens", "The list of numbers that stands for a patch inside the network; every block writes it anew."],
  [
    "attention",
    "How a token reads from the others: it divides its attention among all tokens, itself included, so its shares sum to 100 %. No class enters the calculation, so attention is the same for every class.",
  ],
  [
    "rank correlation",
    "How alike two maps order the patches: 1 for the same order, 0 for unrelated orders, −1 for the reverse.",
  ],
  [
    "deletion",
    "Patches are removed, the strongest of the heatmap first. If the heatmap is faithful, the probability falls quickly.",
  ],
  [
    "insertion",
    "Patches return to an empty picture, the strongest of the heatmap first. If the heatmap is faithful, the probability rises quickly.",
  ],
  ["logit lens", "The classifier head is applied to the tokens of an earlier block, as if that were the last."],
  ["logit|logits", "The score of a class, before softmax turns all scores into probabilities."],
  ["PCA", "Principal component analysis: the directions in which the tokens differ most."],
  ["norm|norms", "The length of a token: the root of the sum of its squared numbers."],
  ["rollout", "Attention of all blocks multiplied, so that it reaches from the output back to the image."],
  ["AttnLRP", "Layer-wise relevance propagation for attention: the score of a class is passed back to the patches."],
  [
    "block|blocks",
    "One layer of the network: attention, in which tokens read from each other, then a small network for each token.",
  ],
  [
    "head|heads",
    "One of several attentions that a block computes side by side, each with its own queries, keys and values.",
  ],
];
