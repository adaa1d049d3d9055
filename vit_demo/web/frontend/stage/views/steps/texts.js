// The words of the tour. Each step has a title, two sentences and the shape before and after, for a network's facts.

import { english, translate } from "../../../shared/language.js";

const shape = (...sizes) => `[1, ${sizes.join(", ")}]`;

const READS = {
  cls: english("the class token"),
  mean: english("the mean of all patch tokens"),
  all: english("the mean of all tokens"),
  "cls+mean": english("the class token and the mean of the patch tokens, side by side"),
  "cls+next": english("the class token and the token after it, side by side"),
};

export const readBy = ({ pool }) => translate(READS[pool]);

function prefixSentence({ hasClassToken, hasClasses, registers }) {
  if (hasClassToken) {
    const collected = hasClasses
      ? translate(
          "In front comes the *class token*: it belongs to no patch, starts the same for every picture, and is where the answer will be collected.",
        )
      : translate(
          "In front comes the *class token*: it belongs to no patch, starts the same for every picture, and is where a summary of the picture will be collected.",
        );
    if (!registers) return collected;
    const spare = translate(
      "Then comes {count} register, which serves as scratch space.|Then come {count} registers, which serve as scratch space.",
      { count: registers },
    );
    return `${collected} ${spare}`;
  }
  if (registers) {
    return translate(
      "In front comes {count} register: a token that belongs to no patch.|In front come {count} registers: tokens that belong to no patch.",
      { count: registers },
    );
  }
  return translate("This network has no class token: in the end it takes the mean of its tokens.");
}

const sequence = ({ tokens, width }) => shape(tokens, width);

export const STEPS = [
  {
    title: english("Cut the picture into patches"),
    sentences: (f) => [
      translate(
        "The picture is cut into {rows} × {columns} = {patches} squares of {patchSize} × {patchSize} pixels, called *patches*.",
        f,
      ),
      translate(
        "Laid out row by row they form a sequence, and a Transformer handles them as it would the words of a sentence. Nothing is copied: the convolution of the next step reads each patch in its place.",
      ),
    ],
    before: (f) => [
      shape(f.channels, ...f.inputSize),
      f.channels === 1 ? translate("one grey picture") : translate("red, green, blue"),
    ],
    after: (f) => [`${f.rows} × ${f.columns}`, translate("{patches} patches of {patchValues} numbers", f)],
  },
  {
    title: english("Turn each patch into a token"),
    sentences: (f) => [
      translate(
        "Each patch is compared with {width} learned *filters*: multiply pixel by pixel, add everything up, and one number is left for each filter.",
        f,
      ),
      translate(
        "These {width} numbers are the patch's *token*, and from here on the network works with tokens only.",
        f,
      ),
    ],
    before: (f) => [shape(f.channels, ...f.inputSize), translate("the picture, {patches} patches", f)],
    after: (f) => [shape(f.patches, f.width), translate("tokens")],
  },
  {
    title: english("Say where each patch belongs"),
    sentences: (f) => [
      prefixSentence(f),
      f.learnedPositions
        ? translate(
            "A sequence has no rows and columns, so each place adds a learned vector of its own to its token, the *position embedding*.",
          )
        : translate(
            "A sequence has no rows and columns, so each place adds a fixed pattern of sines and cosines of its own to its token, the *position embedding*.",
          ),
    ],
    before: (f) => [shape(f.patches, f.width), translate("tokens")],
    after: (f) => [sequence(f), f.hasClassToken ? translate("with the class token") : translate("with positions")],
  },
  {
    title: english("Attention: what a token attends to"),
    sentences: (f) => [
      translate(
        "Each token makes a *query* (what it looks for), a *key* (what it offers) and a *value* (what it hands over), {headWidth} numbers each in every head.",
        f,
      ),
      translate(
        "The better another token's key matches its query, the more a token attends to it: this is *attention*, and its shares add up to 100 %.",
      ),
    ],
    before: (f) => [shape(f.heads, f.tokens, f.headWidth), translate("queries, and as many keys and values")],
    after: (f) => [shape(f.heads, f.tokens, f.tokens), translate("attention of each token to every token")],
  },
  {
    title: english("Put the heads together"),
    sentences: (f) => [
      f.heads === 1
        ? translate("There is one head, and it gives {width} numbers.", f)
        : translate(
            "The {heads} heads look for different things, and their results are put side by side: {heads} × {headWidth} = {width} numbers.",
            f,
          ),
      f.mixesHeads
        ? translate(
            "A linear map mixes them, and the result is *added* to the token, so that the token keeps what it already had.",
          )
        : translate(
            "In this network nothing mixes them: they are *added* to the token, so that it keeps what it already had.",
          ),
    ],
    before: (f) => [shape(f.heads, f.tokens, f.headWidth), translate("from all heads")],
    after: (f) => [sequence(f), translate("added to the tokens")],
  },
  {
    title: english("Work on each token by itself"),
    sentences: (f) => [
      translate(
        "Now each token passes alone through a small network, the *MLP*: out to {hidden} numbers, of which the negative ones are pushed almost to zero, and back to {width}.",
        f,
      ),
      translate(
        "Attention moves information between patches; the MLP works with what has arrived, and its result is added too.",
      ),
    ],
    before: (f) => [shape(f.tokens, f.hidden), translate("inside the MLP")],
    after: (f) => [sequence(f), translate("added to the tokens")],
  },
  {
    title: english("Repeat, block by block"),
    sentences: (f) => [
      translate(
        "Attention and MLP together are one *block*; {blocks} of them follow each other, each with weights of its own.",
        f,
      ),
      f.hasClasses
        ? translate("If the last layer is applied after every block, the prediction can be watched as it forms.")
        : translate("Comparing the output after every block with the final one shows it forming."),
    ],
    before: (f) => [sequence(f), translate("before the first block")],
    after: (f) => [
      sequence(f),
      translate("after {count} block: the same shape|after {count} blocks: the same shape", { count: f.blocks }),
    ],
  },
  {
    title: english("Read the answer"),
    sentences: (f) =>
      f.hasClasses
        ? [
            translate(
              "The last linear map, the *classifier head*, reads {read} and gives each of the {classes} classes a score, its *logit*.",
              { read: readBy(f), classes: f.classes },
            ),
            translate(
              "*Softmax* turns scores into probabilities: e to the power of each score, divided by the sum of these over all classes.",
            ),
          ]
        : [
            translate(
              "This model has no classifier head: its output is {read}, {features} numbers that describe the picture.",
              { read: readBy(f), features: f.features },
            ),
            translate("Patches whose tokens are most similar to it are bright."),
          ],
    before: (f) => [sequence(f), translate("tokens")],
    after: (f) => [
      shape(f.hasClasses ? f.classes : f.features),
      f.hasClasses ? translate("one score for each class") : translate("the output"),
    ],
  },
];
