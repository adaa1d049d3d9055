// A result: the payload of one forward pass, decoded, with what can be asked of it without asking the server.

const ROWS_KEPT = 2000; // computed rows and columns remembered, 3 KB each at 785 tokens

async function openResult(payload) {
  const picture = new Image();
  picture.src = payload.image;
  await picture.decode();
  const [rows, columns] = payload.grid;
  return {
    ...payload,
    picture,
    rows,
    columns,
    patches: rows * columns,
    tokens: payload.prefix + rows * columns - payload.dropped.length,
    tokenOf: tokensOf(payload, rows * columns),
    summary: { levels: decodeBytes(payload.summary.map), peaks: decodeFloat32(payload.summary.peak) },
    rollout: { levels: decodeBytes(payload.rollout.map), peak: payload.rollout.peak },
    traces: new Map(Object.entries(payload.trace).map(([block, trace]) => [Number(block), decodeTrace(trace)])),
    kept: new Map(),
  };
}

/** The token that stands for each patch; -1 for one that was knocked out. */
function tokensOf({ prefix, dropped }, patches) {
  const gone = new Set(dropped);
  let next = prefix;
  return Int32Array.from({ length: patches }, (_, patch) => (gone.has(patch) ? -1 : next++));
}

/** The values of all tokens laid out patch by patch; nothing looks at a patch that is gone, so it has 0. */
const overPatches = (result, values) => Float32Array.from(result.tokenOf, (token) => (token < 0 ? 0 : values[token]));

/** Averages over heads: `head` is one head, or -1 for the mean of the true values of all. */
function overHeads(result, head, length, ofHead) {
  if (head >= 0) return ofHead(head);
  const mean = new Float32Array(length);
  for (let h = 0; h < result.heads; h++) {
    const values = ofHead(h);
    for (let i = 0; i < length; i++) mean[i] += values[i] / result.heads;
  }
  return mean;
}

/** Whether a view is in the summary, which is there for every block; anything else needs the block's trace. */
const isSummarised = (result, { query, direction }) =>
  query === null && (direction === "from" || !result.class_token);

/** What the class token gives each patch: there for all blocks and heads from the start, in 256 levels. */
function summaryMap(result, block, head) {
  return overHeads(result, head, result.patches, (h) => {
    const index = block * result.heads + h;
    const levels = result.summary.levels.subarray(index * result.patches, (index + 1) * result.patches);
    return Float32Array.from(levels, (level) => (level / 255) * result.summary.peaks[index]);
  });
}

function rolloutMap(result) {
  return Float32Array.from(result.rollout.levels, (level) => (level / 255) * result.rollout.peak);
}

/** What `token` gives every token, exp(q_token . k_j - lse_token). Sums to 1. */
function attentionRow({ q, k, lse }, tokens, head, token) {
  const width = q.length / lse.length;
  const first = head * tokens;
  const row = new Float32Array(tokens);
  const query = q.subarray((first + token) * width, (first + token + 1) * width);
  for (let j = 0, at = first * width; j < tokens; j++) {
    let sum = -lse[first + token];
    for (let d = 0; d < width; d++) sum += query[d] * k[at++];
    row[j] = Math.exp(sum);
  }
  return row;
}

/** What every token gives `token`, exp(q_i . k_token - lse_i). */
function attentionColumn({ q, k, lse }, tokens, head, token) {
  const width = q.length / lse.length;
  const first = head * tokens;
  const column = new Float32Array(tokens);
  const key = k.subarray((first + token) * width, (first + token + 1) * width);
  for (let i = 0, at = first * width; i < tokens; i++) {
    let sum = -lse[first + i];
    for (let d = 0; d < width; d++) sum += q[at++] * key[d];
    column[i] = Math.exp(sum);
  }
  return column;
}

/** One row ("from") or column ("to") of a block whose trace is here, for all tokens, computed once. */
function tokenMap(result, { block, head, direction }, token) {
  const name = `${block} ${head} ${direction} ${token}`;
  if (!result.kept.has(name)) {
    if (result.kept.size >= ROWS_KEPT) result.kept.clear();
    const compute = direction === "from" ? attentionRow : attentionColumn;
    const trace = result.traces.get(block);
    result.kept.set(name, overHeads(result, head, result.tokens, (h) => compute(trace, result.tokens, h, token)));
  }
  return result.kept.get(name);
}
