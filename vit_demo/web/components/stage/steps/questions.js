// "Predict, then reveal": questions whose answers are computed from the numbers of this picture.

import { classTokenMap } from "../attention.js";
import { formatProbability, formatShare } from "../numbers.js";
import { defaultQueryName, placeOf } from "../text.js";
import { lengthOf, positionSimilarity, settledAfter } from "./tour.js";

/**
 * The question of a step, {prompt, options, answer, why, marks}, or null where it has none. `answer` is the index of the
 * right option; `marks` are the patches that the options are about, as [patch, letter].
 */
export function questionOf(step, { result, facts, shared, block, tour }) {
  if (step === 0) return halfPatches(facts);
  if (step === 2) return nearestPosition(facts, shared);
  if (step === 3) return strongestPatch(result);
  if (step === 5 && block) return largerChange(block, tour);
  if (step === 6) return facts.hasClasses ? whenSettled(facts, shared) : howSimilar(facts, shared);
  if (step === 7 && shared.labels.classes?.length >= 4) return secondClass(shared);
  return null;
}

function halfPatches({ patches }) {
  return {
    prompt: "With patches half as wide and half as high, how many would there be?",
    options: [2 * patches, 4 * patches, 8 * patches].map(String),
    answer: 1,
    why: `Each patch becomes four, so ${4 * patches}. Attention compares every token with every other: about sixteen times the work.`,
  };
}

/** Which positions resemble that of the patch in the middle. */
function nearestPosition({ rows, columns, patches }, { positions }) {
  if (Math.min(rows, columns) < 3) return null;
  const middle = Math.floor(rows / 2) * columns + Math.floor(columns / 2);
  const similarity = positionSimilarity(positions, patches, middle);
  const [midRow, midColumn] = [Math.floor(rows / 2), Math.floor(columns / 2)];
  const groups = [[], [], []];
  similarity.forEach((value, patch) => {
    const down = Math.abs(Math.floor(patch / columns) - midRow);
    const right = Math.abs((patch % columns) - midColumn);
    if (down + right === 1) groups[0].push(value);
    else if (down + right > 1 && Math.min(down, right) === 0) groups[1].push(value);
    else if (down + right > 1) groups[2].push(value);
  });
  const means = groups.map((values) => values.reduce((sum, value) => sum + value, 0) / values.length);
  const options = ["those right next to it", "the rest of its row and column", "all others"];
  const answer = means.indexOf(Math.max(...means));
  const numbers = means.map((mean) => mean.toFixed(2).replace("-", "−")).join(", ");
  return {
    prompt: "Which positions are most similar to the one in the middle?",
    options,
    answer,
    why: `Mean similarities, in the order of the answers: ${numbers}. Point at a place to see its similarity to all others.`,
  };
}

/** Which of four patches the class token takes most from in the last block: the strongest and three ordinary ones. */
function strongestPatch(result) {
  const { numBlocks, numPatches, tokenOf } = result;
  const map = classTokenMap(result, numBlocks - 1, -1);
  const kept = Array.from({ length: numPatches }, (_, patch) => patch).filter((patch) => tokenOf[patch] >= 0);
  if (kept.length < 4) return null;
  const ranked = [...kept].sort((a, b) => map[b] - map[a]);
  const ranks = [0, 0.25, 0.5, 0.75].map((share) => Math.round(share * (ranked.length - 1)));
  const patches = ranks.map((rank) => ranked[rank]).sort((a, b) => a - b);
  const answer = patches.indexOf(ranked[0]);
  const letters = ["A", "B", "C", "D"];
  const shares = patches.map((patch, i) => `${letters[i]} ${formatShare(map[patch])}`).join(", ");
  const who = defaultQueryName(result);
  return {
    prompt: `From which marked patch does the ${who} take most in the last block?`,
    options: patches.map((patch, i) => `${letters[i]}: ${placeOf(result, patch)}`),
    answer,
    why: `Mean of all heads: ${shares}.`,
    marks: patches.map((patch, i) => [patch, letters[i]]),
  };
}

function largerChange({ attention, mlp }, { block }) {
  const [byAttention, byMlp] = [lengthOf(attention), lengthOf(mlp)];
  return {
    prompt: `What changes this token more in block ${block + 1}?`,
    options: ["attention", "the MLP"],
    answer: byAttention >= byMlp ? 0 : 1,
    why: `What attention adds has the length ${byAttention.toFixed(2)}, what the MLP adds ${byMlp.toFixed(2)}.`,
  };
}

function whenSettled({ blocks, prediction }, { depth_class: depthClass }) {
  const settled = settledAfter(depthClass);
  const third = Math.ceil(blocks / 3);
  const ends = [...new Set([third, Math.min(2 * third, blocks - 1), blocks])];
  const options = ends.map((end, i) => {
    if (i === 0) return end === 1 ? "after block 1, or before" : `after block ${end}, or before`;
    const first = ends[i - 1] + 1;
    return first === end ? `after block ${end}` : `after block ${first} to ${end}`;
  });
  const when = settled === 0 ? "even before the first block" : `from block ${settled} on`;
  return {
    prompt: `When does “${prediction}” take the lead for good?`,
    options,
    answer: ends.findIndex((end) => settled <= end),
    why: `It leads ${when}.`,
  };
}

const SIMILARITIES = [
  [0.3, "hardly at all (below 0.3)"],
  [0.8, "partly (0.3 to 0.8)"],
  [Number.POSITIVE_INFINITY, "almost the same (above 0.8)"],
];

function howSimilar({ blocks }, { depth_similarity: similarity }) {
  const middle = Math.floor(blocks / 2);
  const value = similarity[middle];
  return {
    prompt: `How similar is the output after block ${middle} to the final one?`,
    options: SIMILARITIES.map(([, words]) => words),
    answer: SIMILARITIES.findIndex(([end]) => value < end),
    why: `The cosine similarity is ${value.toFixed(2).replace("-", "−")}.`,
  };
}

function secondClass({ labels, logits, logsumexp }) {
  const [first, ...others] = labels.classes.slice(0, 4);
  const options = [...others].sort((a, b) => a.localeCompare(b, "en"));
  const probability = formatProbability(Math.exp(logits[1] - logsumexp[0]));
  return {
    prompt: `“${first}” comes first. What comes second?`,
    options,
    answer: options.indexOf(others[0]),
    why: `“${others[0]}” comes second, with ${probability}.`,
  };
}
