// @ts-check
// The film as data: what is shown and said at which moment of it, from a result and the film's numbers alone.

import { constants } from "../../shared/constants.js";
import { english, plain, translate, translateName } from "../../shared/language.js";
import { barOf, formatProbability, formatShare, placeOf } from "../format.js";
import { decodeFloat32, decodeUint32 } from "../result.js";
import { readBy } from "../views/steps/texts.js";

const SECONDS_OF_A_WORD = 0.2;
const BEFORE_READING = 0.2;
export const MANY = 40; // tokens from which on only the strongest threads are drawn, and the rest as one
const STRONGEST = 12;
const REST = 0.98; // of a beat: where one that steps through the film stops
const SAID = 0.7; // of the beat in which the class token collects: from then on its block is over
const LEAST = { cut: 1.4, tokens: 1.4, join: 1.2, look: 0.7, collect: 0.8, read: 1.6, end: 0.7 }; // seconds of each kind of beat
const FIRST_BLOCKS = { look: [2.2, 0.9], collect: [2, 1.2] }; // seconds: what is new takes longer

/** The reply of the kind "film" with its arrays as lists by block. */
export function decodeFilm(reply) {
  const { width, components, classes, labels } = reply;
  const [attention, shares, tokens, answers] = ["attention", "shares", "tokens", "answers"].map((name) =>
    decodeFloat32(reply[name]),
  );
  const depths = classes.length ? answers.length / classes.length : 0;
  const count = tokens.length / components.length;
  const pairs = decodeUint32(reply.pairs);
  return { width, components, classes, labels, attention, shares, tokens, answers, pairs, depths, count };
}

const part = (values, index, parts) => {
  const length = values.length / parts;
  return values.subarray(index * length, (index + 1) * length);
};

/** What is said after so many blocks, [{index, label, probability}], most likely first; empty without classes. */
export function answersAt(numbers, depth) {
  const { classes, labels, answers, depths } = numbers;
  if (!depths) return [];
  const said = part(answers, depth, depths);
  return classes
    .map((index, i) => ({ index, name: labels[i], label: translateName(labels[i]), probability: said[i] }))
    .sort((a, b) => b.probability - a.probability);
}

/** The attention of a block to every token, the strongest pairs of squares, and each token's components after some blocks. */
export const attentionOf = (numbers, result, block) => part(numbers.attention, block, result.numBlocks);
export const pairsOf = (numbers, result, block) => {
  const [places, shares] = [numbers.pairs, numbers.shares].map((values) => part(values, block, result.numBlocks));
  return Array.from(shares, (share, i) => ({ from: places[2 * i], to: places[2 * i + 1], share }));
};
export const tokensAt = (numbers, result, depth) => part(numbers.tokens, depth, result.numBlocks + 1);

/** The tokens of whose attention there are threads of their own; `rest` is the share of the `others`, all squares, drawn as one. */
export function chosenOf(attention, { collector, numPrefix }) {
  const tokens = Array.from(attention.keys()).filter((token) => token !== collector);
  const isMany = tokens.length >= MANY;
  const order = (a, b) => Number(b < numPrefix) - Number(a < numPrefix) || attention[b] - attention[a];
  const chosen = isMany ? [...tokens].sort(order).slice(0, STRONGEST) : tokens;
  const sum = (list) => list.reduce((total, token) => total + attention[token], 0);
  return { isMany, chosen, rest: sum(tokens) - sum(chosen), others: tokens.length - chosen.length };
}

/** The share of those whose threads are drawn as one, as they are called. */
export const othersOf = (/** @type {number} */ count) =>
  translate("the other square|the other {count} squares together", { count });

/** What the thread is that is drawn for many; empty where each has its own. */
export const othersWords = ({ isMany, rest, others }) =>
  isMany ? translate("grey: {others}, {share}", { others: othersOf(others), share: formatShare(rest) }) : "";

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** How long it takes to read a text. */
const reading = (text) => {
  const signs = plain(text).match(/[\u4e00-\u9fff]/g)?.length ?? 0;
  return BEFORE_READING + SECONDS_OF_A_WORD * ((plain(text).match(/[^\s:;?!]+/g) ?? []).length + signs / 2);
};

/**
 * The film of a result: {beats, seconds, numPrefix, collector, title, isRead, summary}. A beat is {kind, block, words, spoken, start, seconds, step}: `step` is
 * what a touch opens of the eight steps. `numbers` are decoded, `query` the square that is followed, or null; `end` is the
 * headline of the first screen. `collector` is the token that collects, -1 if it is none, but the average of all, `title` what it is called on the
 * picture, `isRead` whether the answer is read from it, `captions` what stripes, arrows and threads are, and `summary` what one has seen.
 *
 * @param {{result: any, numbers: any, query: number | null, end: string}} given
 */
export function filmOf({ result, numbers, query, end }) {
  const { numBlocks, hasClassToken, numPatches, dropped, tokenOf } = result;
  const count = numPatches - dropped.length;
  const numPrefix = result.numTokens - count;
  const registers = numPrefix - Number(hasClassToken);
  const collector = query !== null ? tokenOf[query] : hasClassToken ? 0 : -1;
  const token =
    query !== null
      ? translate("square in {place}", { place: placeOf(result, query) })
      : hasClassToken
        ? translate("class token")
        : translate("average of all tokens");
  const values = { count, token, width: numbers.width, blocks: numBlocks, registers, read: readBy(result) };
  const beats = /** @type {any[]} */ ([]);
  const collects = query !== null ? COLLECTS.square : hasClassToken ? COLLECTS.classToken : COLLECTS.all;
  const place = query === null ? "" : placeOf(result, query);
  const captions = {
    stripes: translate("each stripe is one number: violet above 0, orange below"),
    look: translate("squares look at each other"),
    collect: translate(collects, { place }),
  };

  function add(kind, text, more = {}) {
    const {
      block = null,
      step = {},
      spoken = "",
      least = LEAST[kind],
      words = translate(text, values),
      caption = "", // what is new on the picture
      pace = 1,
    } = more;
    const start = beats.length ? beats.at(-1).start + beats.at(-1).seconds : 0;
    const seconds = Math.max(least, pace * reading(`${words} ${caption}`));
    beats.push({ kind, block, words, spoken: plain(`${words} ${spoken}`.trim()), start, seconds, step });
  }

  const gone = dropped.length;
  const cut = gone ? translate(CUT_WITHOUT, { squares: numPatches, count: gone }) : translate(CUT, values);
  add("cut", "", { words: cut, step: { step: 0 } });
  add("tokens", TOKENS, { step: { step: 1 } });
  const joins = [joining(result, query)];
  if (registers > 0) joins.push(REGISTERS);
  const join = joins.map((text) => translate(text, { ...values, count: registers || count })).join(" ");
  add("join", "", { words: join, caption: captions.stripes, step: { step: 2 } });
  for (let block = 0; block < numBlocks; block++) {
    const at = { block, step: { step: 3, block, head: 0, fromClassToken: collector === 0 && hasClassToken } };
    const nameOf = (each) => placeOf(result, tokenOf.indexOf(each));
    const pairs = pairsOf(numbers, result, block);
    const inBlock = (text) => translate(text, { ...values, block: block + 1 });
    const least = (kind) => FIRST_BLOCKS[kind][block] ?? LEAST[kind];
    const [first] = pairs;
    if (first) {
      const strongest = { from: nameOf(first.from), to: nameOf(first.to), share: formatShare(first.share) };
      const spoken = translate("Strongest: {from} looks at {to}, {share}.", strongest);
      const words = block ? inBlock(BLOCK) : translate(FIRST_LOOK, { arrows: pairs.length });
      add("look", "", {
        ...at,
        words,
        spoken: `${sentence(captions.look)} ${spoken}`,
        least: least("look"),
        pace: block ? 0 : 1,
      });
    }
    const attention = attentionOf(numbers, result, block);
    const most = attention.subarray(numPrefix).reduce((best, share, i, all) => (share > all[best] ? i : best), 0);
    const [answer] = answersAt(numbers, block + 1);
    const spoken = [
      sentence(captions.collect),
      translate("Most from {place}: {share}.", {
        place: nameOf(most + numPrefix),
        share: formatShare(attention[most + numPrefix]),
      }),
      answer ? earlyWords(answer, result, block + 1) : "",
    ];
    const words = inBlock(block ? BLOCK : FIRST_COLLECT);
    const caption = othersWords(chosenOf(attention, { collector, numPrefix }));
    add("collect", "", {
      ...at,
      words,
      caption,
      spoken: spoken.join(" "),
      least: least("collect"),
      pace: block ? 0 : 1,
    });
  }
  add("read", numbers.depths ? READ : READ_WITHOUT_CLASSES, { step: { step: 7 } });
  const summary = summaryOf(result, query);
  add("end", "", { words: end, spoken: summary, step: { step: 7 }, pace: 0 });
  return {
    beats,
    seconds: beats.at(-1).start + beats.at(-1).seconds,
    numPrefix,
    collector,
    title: place || token,
    summary,
    captions,
    isRead: query === null && (isRead(result) || !hasClassToken),
  };
}

/** A scene whose numbers are not there yet: its picture is cut, so that something moves at once. */
export function sceneBefore(result) {
  const none = new Float32Array(0);
  const attention = new Float32Array(result.numBlocks * result.numTokens);
  const numbers = {
    width: 0,
    components: [0],
    classes: [],
    labels: [],
    attention,
    shares: none,
    pairs: none,
    depths: 0,
  };
  const whole = filmOf({ result, numbers, query: null, end: "" });
  const [cut] = whole.beats;
  return { result, numbers, query: null, film: { ...whole, beats: [cut], seconds: cut.seconds } };
}

const CUT = english("The picture is cut into 1 square.|The picture is cut into {count} squares.");
const CUT_WITHOUT = english(
  "The picture is cut into {squares} squares, of which 1 is gone.|The picture is cut into {squares} squares, of which {count} are gone.",
);
const TOKENS = english("Each becomes {width} numbers: a *token*.");
const REGISTERS = english(
  "A register comes with it, as scratch space.|{count} registers come with it, as scratch space.",
);
const FIRST_LOOK = english("Block 1: arrows show *who looks at whom*, the {arrows} strongest.");
const FIRST_COLLECT = english("Block 1: the thicker a thread, the more *attention*.");
const BLOCK = english("Block {block} of {blocks}.");
/** What the threads are, as it stands beside them. */
const COLLECTS = {
  classToken: english("the class token collects"),
  square: english("{place} collects"),
  all: english("what all tokens look at, on average"),
};
const READ = english("After block {blocks} the answer is read from {read}.");
const READ_WITHOUT_CLASSES = english("After block {blocks} the description of the picture is read from {read}.");

/** Whether the head reads the class token, alone or beside others; some networks have one that only the squares look at. */
const isRead = ({ hasClassToken, pool }) => hasClassToken && pool.startsWith("cls");

function joining(result, query) {
  if (query !== null) return english("This film follows one token, that of the *{token}*.");
  if (!result.hasClassToken) {
    return english("No token stands for the whole picture here, so the film follows the *{token}*.");
  }
  if (!isRead(result)) {
    return english(
      "One more joins, the *class token*. It has no square. This network reads something else at the end.",
    );
  }
  return result.predictions.length
    ? english("The *class token* joins: it collects the answer.")
    : english("The *class token* joins: it describes the picture.");
}

/** What would be answered after the blocks so far, where what is said last has the number of the present one. */
const wordsSoFar = ({ label, probability }, { predictions: [first] }) =>
  translate("So far the answer would be *{label}*, {probability}.", {
    label,
    probability: formatProbability(probability, first.scores),
  });

/** What would be answered after so many blocks; only a tendency until the last. */
export const earlyWords = ({ label, probability }, { predictions: [first] }, block) =>
  translate("After block {block} the answer would be *{label}*, {probability}.", {
    ...{ block, label },
    probability: formatProbability(probability, first.scores),
  });

const SUMMARY = {
  description: english(
    "{count} squares became tokens, looked at each other {blocks} times, and now describe the picture.",
  ),
  classToken: english(
    "{count} squares became tokens, looked at each other {blocks} times, and the class token collected the answer.",
  ),
  all: english(
    "{count} squares became tokens, looked at each other {blocks} times, and the answer was read from all of them.",
  ),
  square: english(
    "{count} squares became tokens and looked at each other {blocks} times. You followed the one in {place}.",
  ),
};

/** What one has seen. */
function summaryOf(result, query) {
  const { numPatches, dropped, numBlocks, predictions } = result;
  const ofAll = !predictions.length ? "description" : isRead(result) ? "classToken" : "all";
  const place = query === null ? "" : placeOf(result, query);
  return translate(SUMMARY[place ? "square" : ofAll], { count: numPatches - dropped.length, blocks: numBlocks, place });
}

/**
 * A moment of a film: {index and beat; `share` of the beat, 0 to 1; `depth`, the blocks that are over; `block`, the one whose
 * threads are newest, -1 before the first}.
 */
export function momentOf({ beats }, time) {
  const index = Math.max(
    0,
    beats.findLastIndex(({ start }) => start <= time),
  );
  const beat = beats[index];
  const share = Math.min(1, (time - beat.start) / beat.seconds);
  const last = beats.findLast(({ block }) => block !== null)?.block;
  const isAfter = beat.kind === "read" || beat.kind === "end";
  const block = beat.block ?? (isAfter ? last : -1);
  const isOver = isAfter || (beat.kind === "collect" && share >= SAID);
  return { index, beat, share, block, depth: block < 0 ? 0 : block + Number(isOver) };
}

/** Where a film stops at a beat, so that all of it is there. */
export const restOf = ({ beats }, index) => {
  const { start, seconds } = beats[Math.min(beats.length - 1, Math.max(0, index))];
  return start + (index >= beats.length - 1 ? 1 : REST) * seconds;
};

/** The first screen at a moment: its frame, with the headline of the film and the answers after the blocks that are over. */
export function frameAt(frame, { result, numbers, film }, moment) {
  const { beat, depth } = moment;
  const isEnd = beat.kind === "end";
  const [answer] = answersAt(numbers, depth);
  const isEarly = beat.block !== null && depth > 0 && answer;
  const next = isEnd ? film.summary : isEarly ? wordsSoFar(answer, result) : "";
  const headline = isEnd ? { ...frame.headline, was: "", next } : { was: "", text: beat.words, next };
  return {
    ...frame,
    headline,
    mechanism: "", // the film says it
    answers: isEnd ? frame.answers : answersOf(frame.answers, numbers, depth, result),
  };
}

/** The rows of the answers with the shares at a depth, empty before the first block; with many classes the leading one takes the last place if it has none. */
function answersOf(answers, numbers, depth, { predictions }) {
  const said = answersAt(numbers, depth);
  if (!answers || !said.length) return answers;
  const { scores } = predictions[0];
  const shown = answers.isFixed ? answers.rows : answers.rows.slice(0, constants.numClasses);
  const isListed = shown.some(({ index }) => index === said[0].index);
  const kept = isListed ? shown : [...shown.slice(0, -1), { ...shown.at(-1), ...said[0] }];
  const rows = kept.map((row) => {
    if (!depth) return { ...row, share: 0, number: "", isFirst: false, before: null, isRival: true };
    const { probability } = said.find(({ index }) => index === row.index) ?? { probability: 0 };
    const isFirst = row.index === said[0].index;
    return {
      ...row,
      share: barOf(probability, scores),
      number: formatProbability(probability, scores),
      isFirst,
      before: null,
      isRival: true,
    };
  });
  return {
    ...answers,
    rows,
    isLive: true,
    isFilm: true,
    isUnsure: depth < numbers.depths - 1 || answers.isUnsure,
    isOther: false,
  };
}
