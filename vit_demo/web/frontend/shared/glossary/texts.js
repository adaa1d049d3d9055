// @ts-check
// The words of the glossary; in a texts.js every string is one that is translated.

/** Terms in the order in which one needs them: all words that stand for one, and after the colon its explanation. */
export const TERMS = [
  "patch|patches: A square of the picture. A Vision Transformer cuts the picture into patches and reads them as a sequence.",
  "patch size: Smaller patches give a finer map, but more tokens, and attention compares every pair of them.",
  "token|tokens: The list of numbers that stands for a patch inside the network; every block writes it anew.",
  "embedding|embeddings: A list of numbers that stands for something: for a patch, the token that it starts as; for a place, what is added to that token.",
  "class token|class tokens: A token beside those of the patches. It belongs to no patch and gathers from all of them; after the last block, the prediction is read from it.",
  "register|registers: A token beside those of the patches that the network uses as scratch space; nothing is read from it.",
  "attention: How a token reads from the others: its shares, with what it keeps for itself, add up to 100 %. No class enters the calculation: attention does not depend on the class.",
  "query, key, value: Three lists of numbers that each token makes in every head: what it looks for, what it offers, and what it hands over. The better a key matches a query, the more of its value is taken.",
  "head|heads: One of several attentions that a block computes side by side, each with its own queries, keys and values.",
  "classifier head|classifier heads: The last layer of the network: it turns the token that the answer is read from into a score for each class.",
  "MLP: A small network of two layers, through which each token passes by itself.",
  "residual: What attention and MLP compute is added to the token and does not replace it, so that the token keeps what it had.",
  "block|blocks: One layer of the network: attention, in which tokens read from each other, then a small network for each token.",
  "logit|logits: The score of a class, before softmax turns all scores into probabilities.",
  "softmax: It turns scores into shares that add up to 100 %: e to the power of each score, divided by the sum of these.",
  "gradient|gradients: How fast a score rises or falls while a number inside the network is changed a little.",
  "rollout: Attention of all blocks multiplied, so that it reaches from the output back to the image.",
  "AttnLRP: Layer-wise relevance propagation for attention: the score of a class is passed back to the patches.",
  "deletion: Patches are masked, the strongest of the heatmap first. If the heatmap is faithful, the probability falls quickly.",
  "insertion: Patches return to an empty picture, the strongest of the heatmap first. If the heatmap is faithful, the probability rises quickly. It can disagree with deletion: that asks whether these patches are needed, insertion whether they are enough. Where many patches carry the same evidence, a few are enough and none is needed.",
  "rank correlation: How alike two maps order the patches: 1 for the same order, 0 for unrelated orders, −1 for the reverse.",
  "logit lens: The classifier head is applied to the tokens of an earlier block, as if that were the last.",
  "PCA: Principal component analysis: the directions in which the tokens differ most.",
  "norm|norms: The length of a token: the root of the sum of its squared numbers.",
];
