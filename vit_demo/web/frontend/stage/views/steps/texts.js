// @ts-check
// The words of the tour, in English: scripts/translations.py takes each string of this file for a text of the page.

import { translate } from "../../../shared/language.js";

const shape = (...sizes) => `[1, ${sizes.join(", ")}]`;
const sequence = ({ tokens, width }) => shape(tokens, width);

const READS = {
  cls: "the class token",
  mean: "the mean of all patch tokens",
  all: "the mean of all tokens",
  "cls+mean": "the class token and the mean of the patch tokens, side by side",
  "cls+next": "the class token and the token after it, side by side",
  attention: "what attention pooling takes from the tokens",
};

const READINGS = {
  softmax:
    "*Softmax* turns scores into probabilities: e to the power of each score, divided by the sum of these over all classes.",
  sigmoid: "The *sigmoid* turns each score into a probability of its own, whatever the others are.",
  none: "They are no probabilities: the model was trained to give these numbers.",
};

export const readBy = ({ pool }) => translate(READS[pool]);

function prefixSentences({ hasClassToken, hasClasses, registers, pool, readsClassToken }) {
  if (!hasClassToken && registers) {
    return [
      "In front comes {count} register: a token that belongs to no patch.|In front come {count} registers: tokens that belong to no patch.",
    ];
  }
  if (!hasClassToken && pool === "attention") {
    return ["This network has no class token: in the end, attention pooling reads its tokens."];
  }
  if (!hasClassToken) return ["This network has no class token: in the end it takes the mean of its tokens."];
  const unread = "In front comes the *class token*: it belongs to no patch, and starts the same for every picture.";
  const answer = hasClasses
    ? "In front comes the *class token*: it belongs to no patch, starts the same for every picture, and is where the answer will be collected."
    : "In front comes the *class token*: it belongs to no patch, starts the same for every picture, and is where a summary of the picture will be collected.";
  const collected = readsClassToken ? answer : unread;
  const spare =
    "Then comes {count} register, which serves as scratch space.|Then come {count} registers, which serve as scratch space.";
  return registers ? [collected, spare] : [collected];
}

const POSITIONS = {
  learned: [
    "A sequence has no rows and columns, so each place adds a learned vector of its own to its token, the *position embedding*.",
  ],
  sincos: [
    "A sequence has no rows and columns, so each place adds a fixed pattern of sines and cosines of its own to its token, the *position embedding*.",
  ],
  added: [
    "A sequence has no rows and columns, so each place adds a vector of its own to its token, the *position embedding*.",
  ],
  normed: [
    "A sequence has no rows and columns, so each place adds a vector of its own to its token, the *position embedding*.",
    "A norm then scales each token before the first block.",
  ],
  none: [
    "This network adds no position embedding: positions enter in attention, which rotates queries and keys by them or adds a bias to the scores.",
  ],
  unseen: ["The position embedding of this network cannot be told apart, so it is not shown."],
};

/** Each step for a network's facts: its title, its sentences, the shape before and after, and what {count} stands for. */
const STEPS = [
  {
    title: "Cut the picture into patches",
    sentences: (f) => [
      "The picture is cut into {rows} × {columns} = {patches} squares of {patchSize} × {patchSize} pixels, called *patches*.",
      "Laid out row by row they form a sequence, and a Transformer handles them as it would the words of a sentence.",
      ...(f.channels === 1 ? ["The network gets the drawing inverted: bright ink on dark paper."] : []),
    ],
    before: (f) => [shape(f.channels, ...f.inputSize), f.channels === 1 ? "one grey picture" : "red, green, blue"],
    after: (f) => [`${f.rows} × ${f.columns}`, "{patches} patches of {patchValues} numbers"],
  },
  {
    title: "Turn each patch into a token",
    sentences: (f) => [
      f.hasFilters
        ? "Each patch is compared with {width} learned *filters*: multiply pixel by pixel, add everything up, and one number is left for each filter."
        : "This network turns each patch into {width} numbers, but not by one filter for each number.",
      "These {width} numbers are the patch's *token*, and from here on the network works with tokens only.",
    ],
    before: (f) => [shape(f.channels, ...f.inputSize), "the picture, {patches} patches"],
    after: (f) => [shape(f.patches, f.width), "tokens"],
  },
  {
    title: "Say where each patch belongs",
    count: (f) => f.registers,
    sentences: (f) => [...prefixSentences(f), ...POSITIONS[f.positions]],
    before: (f) => [shape(f.patches, f.width), "tokens"],
    after: (f) => [
      sequence(f),
      f.hasClassToken ? "with the class token" : f.addsPositions ? "with positions" : "tokens",
    ],
  },
  {
    title: "Attention: what a token attends to",
    sentences: (f) => [
      "Each token makes a *query* (what it looks for), a *key* (what it offers) and a *value* (what it hands over), {headWidth} numbers each.",
      "The better another token's key matches its query, the more a token attends to it: this is *attention*, and its shares add up to 100 %.",
      f.heads === 1
        ? "Each block of this network does this once: it has one *head*."
        : "Each block does this {heads} times side by side, each time with weights of its own: these are its *heads*.",
    ],
    before: (f) => [shape(f.heads, f.tokens, f.headWidth), "queries, and as many keys and values"],
    after: (f) => [shape(f.heads, f.tokens, f.tokens), "attention of each token to every token"],
  },
  {
    title: "Put the heads together",
    sentences: (f) => [
      f.heads === 1
        ? "There is one head, and it gives {concatenated} numbers."
        : "The {heads} heads look for different things, and their results are put side by side: {heads} × {headWidth} = {concatenated} numbers.",
      f.mixesHeads
        ? "A linear map mixes them, and the result is *added* to the token, so that the token keeps what it already had."
        : "In this network nothing mixes them: they are *added* to the token, so that it keeps what it already had.",
    ],
    before: (f) => [shape(f.heads, f.tokens, f.headWidth), "from all heads"],
    after: (f) => [sequence(f), "added to the tokens"],
  },
  {
    title: "Work on each token by itself",
    sentences: (f) => [
      !f.hidden
        ? "Each token also passes alone through a small network, the *MLP*; in this network its part cannot be told apart."
        : f.gated
          ? "Now each token passes alone through a small network, the *MLP*: out to {hidden} numbers, each the product of two, of which one serves as a gate, and back to {width}."
          : "Now each token passes alone through a small network, the *MLP*: out to {hidden} numbers, of which the negative ones are pushed almost to zero, and back to {width}.",
      "Attention moves information between patches; the MLP works with what has arrived, and its result is added too.",
    ],
    before: (f) => (f.hidden ? [shape(f.tokens, f.hidden), "inside the MLP"] : [sequence(f), "tokens"]),
    after: (f) => [sequence(f), "added to the tokens"],
  },
  {
    title: "Repeat, block by block",
    count: (f) => f.blocks,
    sentences: (f) => [
      "Attention and MLP together are one *block*; {blocks} of them follow each other, each with weights of its own.",
      f.hasClasses
        ? "If the last layer is applied after every block, the prediction can be watched as it forms."
        : "Comparing the output after every block with the final one shows it forming.",
    ],
    before: (f) => [sequence(f), "before the first block"],
    after: (f) => [sequence(f), "after {count} block: the same shape|after {count} blocks: the same shape"],
  },
  {
    title: "Read the answer",
    sentences: (f) =>
      f.hasClasses
        ? [
            "The last linear map, the *classifier head*, reads {read} and gives each of the {classes} classes a score, its *logit*.",
            READINGS[f.scores],
            "That is the whole way: {patches} squares became tokens, looked at each other {blocks} times, and gave the answer.",
          ]
        : !f.isOfTokens
          ? [
              "This model has no classifier head: its output, {features} numbers that describe the picture, is computed from {read}.",
            ]
          : [
              "This model has no classifier head: its output is {read}, {features} numbers that describe the picture.",
              "Patches whose tokens are most similar to it are bright.",
            ],
    before: (f) => [sequence(f), "tokens"],
    after: (f) => [
      shape(f.hasClasses ? f.classes : f.features),
      f.hasClasses ? "one score for each class" : "the output",
    ],
  },
];

export const NUM_STEPS = STEPS.length;

export const titleOf = (step) => translate(STEPS[step].title);

/** What a step says of a network: {sentences, before, after}; the last two are a shape and what it means. */
export function wordsOf(step, facts) {
  const { sentences, before, after, count } = STEPS[step];
  const values = { ...facts, count: count?.(facts), read: readBy(facts) };
  const written = (text) => translate(text, values);
  const meaning = (/** @type {string[]} */ [size, text]) => [size, written(text)];
  return { sentences: sentences(facts).map(written), before: meaning(before(facts)), after: meaning(after(facts)) };
}
