// The ways to look at a result. A further method is one more entry in the table:
//   label     on its button
//   pill      what the picture can and cannot claim
//   asks      whether block, head, direction and patch matter to it
//   map       (result, view) => the value of every patch
//   subject   (result, view) => the caption's words
//   sentence  (result, view) => what one is looking at; *stars* make words bold
//   share     (result, view, patch) => what the value of one patch means, up to the number and after it
// A view is what is really shown: {block, head, direction, query}; query is a patch, or null for the class token.

const METHODS = {
  attention: {
    label: "Attention",
    pill: "does not depend on the class",
    asks: true,
    map: attentionMap,
    subject: (result, { block, head, query }) =>
      `*${tokenName(result, query)}* · block ${block + 1} of ${result.blocks} · ${headName(result, head)}`,
    sentence: attentionSentence,
    share: attentionShare,
  },
  rollout: {
    label: "Rollout",
    pill: "does not depend on the class",
    asks: false,
    map: rolloutMap,
    subject: (result) => `*${tokenName(result, null)}* · rollout through all ${result.blocks} blocks`,
    sentence: (result) =>
      `Attention of *all ${result.blocks} blocks*, followed from the ${restingName(result)} back to the picture: ` +
      "how much each patch can have reached the answer along all paths together.",
    share: () => ["", " of the rollout comes from this patch"],
  },
};

/** Without a class token nothing stands for the whole picture, so the mean of all tokens does. */
const restingName = (result) => (result.class_token ? "class token" : "average of all tokens");

const patchPlace = (result, patch) =>
  `row ${Math.floor(patch / result.columns) + 1}, column ${(patch % result.columns) + 1}`;

const tokenName = (result, query) => (query === null ? restingName(result) : `patch ${patchPlace(result, query)}`);

const headName = (result, head) => (head < 0 ? `mean of ${result.heads} heads` : `head ${head + 1}`);

function attentionMap(result, view) {
  if (isSummarised(result, view)) return summaryMap(result, view.block, view.head);
  const token = view.query === null ? 0 : result.prefix + view.query;
  return tokenMap(result, view, token).subarray(result.prefix);
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

function attentionShare(result, view, patch) {
  const itself = view.query === patch;
  if (isSummarised(result, view)) return ["", " of the attention goes to this patch"];
  if (view.direction === "from") return ["gives ", itself ? " of its attention to itself" : " of its attention here"];
  return ["gets ", itself ? " of its own attention" : " of this patch’s attention"];
}
