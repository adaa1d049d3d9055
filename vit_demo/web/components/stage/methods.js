// The ways to look at a result. A further method is one more entry in the table:
//   label       on its button
//   aboutClass  whether the picture depends on the class
//   served      whether the server makes the map; otherwise it follows from what came with the result
//   slow        whether it takes hundreds of passes, too many to make it again and again
//   uses        which of block, head, direction and patch matter to it
//   map         (result, view) => the value of every patch, unless it is served
//   subject     (result, view) => the caption's words
//   sentence    (result, view) => what one is looking at; *stars* make words bold
//   reading     (result, view, patch, value) => what the value of one patch means
//   write       (value) => the value with its unit
// A view is what is really shown: {block, head, direction, query, label}; query is a patch, or null for the class token,
// and label the index of a class.

const METHODS = {
  attention: {
    label: "Attention",
    uses: ["block", "head", "direction", "patch"],
    map: attentionMap,
    subject: (result, { block, head, query }) =>
      `*${tokenName(result, query)}* · block ${block + 1} of ${result.blocks} · ${headName(result, head)}`,
    sentence: attentionSentence,
    reading: attentionReading,
    write: share,
  },
  rollout: {
    label: "Rollout",
    uses: [],
    map: rolloutMap,
    subject: (result) => `*${tokenName(result, null)}* · rollout through all ${result.blocks} blocks`,
    sentence: (result) =>
      `Attention of *all ${result.blocks} blocks*, followed from the ${restingName(result)} back to the picture: ` +
      "how much each patch can have reached the answer along all paths together.",
    reading: (result, view, patch, value) => `*${share(value)}* of the rollout comes from this patch`,
    write: share,
  },
  value_weighted: {
    label: "Value-weighted",
    served: true,
    uses: ["block"],
    subject: (result, { block }) =>
      `*${tokenName(result, null)}* · value-weighted attention · block ${block + 1} of ${result.blocks}`,
    sentence: (result, { block }) =>
      `What each patch really *adds* to the ${restingName(result)} in block ${block + 1}: attention times the length ` +
      "of what is carried. A patch that is looked at but has nothing to give stays dark.",
    reading: (result, view, patch, value) => `adds a vector of length *${plainNumber(value)}*`,
    write: plainNumber,
  },
  relevance: {
    label: "Relevance",
    served: true,
    aboutClass: true,
    uses: [],
    subject: (result, view) => `for *${className(result, view)}* · relevance through all ${result.blocks} blocks`,
    sentence: (result, view) =>
      `Which patches speak for *${className(result, view)}*: the attention of all blocks, counted only where more of ` +
      "it would have raised the score of this class.",
    reading: (result, view, patch, value) => `speaks for *${className(result, view)}* with *${plainNumber(value)}*`,
    write: plainNumber,
  },
  attnlrp: {
    label: "AttnLRP",
    served: true,
    aboutClass: true,
    uses: [],
    subject: (result, view) => `for *${className(result, view)}* · AttnLRP through all ${result.blocks} blocks`,
    sentence: (result, view) =>
      `What each patch *contributed* to the score of *${className(result, view)}*: the score, handed back layer by ` +
      "layer to what it was made from.",
    reading: (result, view, patch, value) =>
      value < 0
        ? `speaks against *${className(result, view)}* with *${plainNumber(-value)}*`
        : `contributes *${plainNumber(value)}* to the score of *${className(result, view)}*`,
    write: plainNumber,
  },
  occlusion: {
    label: "Occlusion",
    served: true,
    slow: true,
    aboutClass: true,
    uses: [],
    subject: (result, view) => `for *${className(result, view)}* · each patch left out once`,
    sentence: (result, view) =>
      `What *${className(result, view)}* loses when one patch leaves the picture. Dark patches are not missed: often ` +
      "a neighbour says the same.",
    reading: occlusionReading,
    write: plainNumber,
  },
  patch_dropping: {
    label: "Patch dropping",
    served: true,
    slow: true,
    aboutClass: true,
    uses: [],
    subject: (result, view) => `for *${className(result, view)}* · hundreds of random parts of the picture`,
    sentence: (result, view) =>
      `What each patch is worth to *${className(result, view)}*: learned from hundreds of passes that saw only a random ` +
      "*quarter or half* of the patches, with a hint from relevance and AttnLRP.",
    reading: (result, view, patch, value) =>
      `worth *${plainNumber(value)}* standard deviations of the score to ${className(result, view)}`,
    write: plainNumber,
  },
};

/** What a click on a class shows when the picture did not depend on the class: what measures best (benchmarks/). */
const CLASS_METHOD = "patch_dropping";

const pillOf = (method) => (method.aboutClass ? "depends on the class" : "does not depend on the class");

/** What the server needs to know to make the map of a view: only what matters to its method. */
function questionOf(result, { method, block, head, direction, pinned, label }) {
  const { uses, aboutClass } = METHODS[method];
  const question = { method };
  if (uses.includes("block")) question.block = block;
  if (uses.includes("head")) Object.assign(question, { head, direction, query: pinned });
  if (aboutClass) question.label = targetOf(result, label).index;
  return question;
}

/** Whether a question is about what its method shows by default, which is what the check with forgotten weights does. */
const isPlain = (result, { block = result.blocks - 1, head = -1, query = null, direction = "from" }) =>
  block === result.blocks - 1 && head < 0 && query === null && direction === "from";

function attentionMap(result, view) {
  if (isSummarised(result, view)) return summaryMap(result, view.block, view.head);
  const token = view.query === null ? 0 : result.tokenOf[view.query];
  return overPatches(result, tokenMap(result, view, token));
}

function attentionSentence(result, { block, head, direction, query }) {
  const where = `block ${block + 1}, ${head < 0 ? `averaged over its ${result.heads} heads` : `head ${head + 1}`}`;
  const patch = query === null ? null : `*patch at ${patchPlace(result, query)}*`;
  if (patch && direction === "from") {
    return `Where the ${patch} looks in ${where}. It takes most from the bright patches.`;
  }
  if (patch) return `Which patches look at the ${patch} in ${where}. The bright ones take most from it.`;
  if (!result.class_token) {
    return `How much each patch is looked at in ${where}, taken over *all tokens*: this model has no class token.`;
  }
  if (direction === "from") {
    return (
      `How much the *class token* takes from each patch in ${where}. ` +
      "Bright patches feed the answer directly in this block."
    );
  }
  return `Which patches look at the *class token* in ${where}. The bright ones take most from it.`;
}

function attentionReading(result, view, patch, value) {
  const much = `*${share(value)}*`;
  const itself = view.query === patch;
  if (isSummarised(result, view)) return `${much} of the attention goes to this patch`;
  if (view.direction === "from") return `gives ${much} of its attention ${itself ? "to itself" : "here"}`;
  return `gets ${much} of ${itself ? "its own attention" : "this patch’s attention"}`;
}

/** A difference of logarithms says little to a reader; the two probabilities it stands for say it all. */
function occlusionReading(result, view, patch, value) {
  const { label, probability } = targetOf(result, view.label);
  const left = Math.min(1, probability * Math.exp(-value));
  return `without this patch ${label} is at *${percent(left)}* instead of ${percent(probability)}`;
}
