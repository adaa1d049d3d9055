// The words of the tour. Each step has a title, two sentences and the shape before and after, for a network's facts.

const shape = (...sizes) => `[1, ${sizes.join(", ")}]`;
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const READS = {
  cls: "the class token",
  mean: "the mean of all patch tokens",
  all: "the mean of all tokens",
  "cls+mean": "the class token and the mean of the patch tokens, side by side",
  "cls+next": "the class token and the token after it, side by side",
};

export const readBy = ({ pool }) => READS[pool];

function prefixSentence({ hasClassToken, hasClasses, registers }) {
  const spare = registers ? `, then ${plural(registers, "register")}, which serve as scratch space` : "";
  if (hasClassToken) {
    return `In front comes the *class token*${spare}: it belongs to no patch, starts the same for every picture, and is where ${hasClasses ? "the answer" : "a summary of the picture"} will be collected.`;
  }
  if (registers) return `In front come ${plural(registers, "register")}: tokens that belong to no patch.`;
  return "This network has no class token: in the end it takes the mean of its tokens.";
}

const sequence = ({ tokens, width }) => shape(tokens, width);

export const STEPS = [
  {
    title: "Cut the picture into patches",
    sentences: (f) => [
      `The picture is cut into ${f.rows} × ${f.columns} = ${f.patches} squares of ${f.patchSize} × ${f.patchSize} pixels, called *patches*.`,
      "Laid out row by row they form a sequence, and a Transformer handles them as it would the words of a sentence.",
    ],
    before: (f) => [shape(f.channels, ...f.inputSize), f.channels === 1 ? "one grey picture" : "red, green, blue"],
    after: (f) => [shape(f.patches, f.patchValues), `${f.patches} patches of ${f.patchValues} numbers`],
  },
  {
    title: "Turn each patch into a token",
    sentences: (f) => [
      `Each patch is compared with ${f.width} learned *filters*: multiply pixel by pixel, add everything up, and one number is left for each filter.`,
      `These ${f.width} numbers are the patch's *token*, and from here on the network works with tokens only.`,
    ],
    before: (f) => [shape(f.patches, f.patchValues), "patches"],
    after: (f) => [shape(f.patches, f.width), "tokens"],
  },
  {
    title: "Say where each patch belongs",
    sentences: (f) => [
      prefixSentence(f),
      `A sequence has no rows and columns, so each place adds ${f.learnedPositions ? "a learned vector" : "a fixed pattern of sines and cosines"} of its own to its token, the *position embedding*.`,
    ],
    before: (f) => [shape(f.patches, f.width), "tokens"],
    after: (f) => [sequence(f), f.hasClassToken ? "with the class token" : "with positions"],
  },
  {
    title: "Attention: what a token takes from the others",
    sentences: (f) => [
      `Each token makes a *query* (what it looks for), a *key* (what it offers) and a *value* (what it hands over), ${f.headWidth} numbers each in every head.`,
      "The better a key matches the query, the larger that token's share of what is taken: this is *attention*, and the shares add up to 100 %.",
    ],
    before: (f) => [shape(f.heads, f.tokens, f.headWidth), "queries, and as many keys and values"],
    after: (f) => [shape(f.heads, f.tokens, f.tokens), "shares: each token of each other one"],
  },
  {
    title: "Put the heads together",
    sentences: (f) => [
      f.heads === 1
        ? `There is one head, and it brings ${f.width} numbers.`
        : `The ${f.heads} heads look for different things, and what they bring is put side by side: ${f.heads} × ${f.headWidth} = ${f.width} numbers.`,
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
      `Now each token passes alone through a small network, the *MLP*: out to ${f.hidden} numbers, of which the negative ones are pushed almost to zero, and back to ${f.width}.`,
      "Attention moves information between patches; the MLP works with what has arrived, and its result is added too.",
    ],
    before: (f) => [shape(f.tokens, f.hidden), "inside the MLP"],
    after: (f) => [sequence(f), "added to the tokens"],
  },
  {
    title: "Repeat, block by block",
    sentences: (f) => [
      `Attention and MLP together are one *block*; ${f.blocks} of them follow each other, each with weights of its own.`,
      f.hasClasses
        ? "If the last layer is applied after every block, the prediction can be watched as it forms."
        : "Comparing the output after every block with the final one shows it forming.",
    ],
    before: (f) => [sequence(f), "before the first block"],
    after: (f) => [sequence(f), `after ${plural(f.blocks, "block")}: the same shape`],
  },
  {
    title: "Read the answer",
    sentences: (f) =>
      f.hasClasses
        ? [
            `The last linear map, the *classifier head*, reads ${readBy(f)} and gives each of the ${f.classes} classes a score, its *logit*.`,
            "*Softmax* turns scores into probabilities: e to the power of each score, divided by the sum of these over all classes.",
          ]
        : [
            `This model has no classifier head: its output is ${readBy(f)}, ${f.features} numbers that describe the picture.`,
            "Patches whose tokens are most similar to it are bright.",
          ],
    before: (f) => [sequence(f), "tokens"],
    after: (f) => [
      shape(f.hasClasses ? f.classes : f.features),
      f.hasClasses ? "one score for each class" : "the output",
    ],
  },
];
