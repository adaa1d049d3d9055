// @ts-check
// "Predict, then reveal": a question with its options, and what the visitor answered for each picture.

import { isNew, make, makeButton, setText } from "../../../shared/dom.js";
import { cellOf, middlePatch } from "../../../shared/geometry.js";
import { english, formatDecimals, translate, translateName } from "../../../shared/language.js";
import { formatProbability, formatShare, placeOf, scoreOf } from "../../format.js";
import { similarities } from "../../result.js";
import { NUM_STEPS } from "./texts.js";
import { lengthOf, settledAfter } from "./tour.js";

const SHOWN = -1; // the answer was shown without a guess

/**
 * `show(result, step, ask)` shows the question that `ask()` returns, or nothing for null; returns the question that is
 * `asked`, and whether its answer is `revealed`. `onAnswer()` is called after an answer, `onNext()` to go on. An answered
 * question stays as it was when it was answered.
 */
export function createQuiz(host, { onAnswer, onNext }) {
  const prompt = make("p", { className: "prompt" });
  const options = make("div", { className: "options" });
  const why = make("p", { className: "why" });
  why.setAttribute("role", "status");
  host.append(make("h3", { textContent: english("Predict, then see") }), prompt, options, why);
  const answers = new WeakMap(); // result -> Map from step to {ask, choice}

  function show(result, step, ask) {
    const known = answers.get(result)?.get(step);
    const askNow = known?.ask ?? ask;
    const asked = askNow();
    host.hidden = !asked;
    if (!asked) return { asked, revealed: true };
    const choice = known ? known.choice : null;
    if (isNew(options, [step, asked, choice])) write(result, step, askNow, choice);
    return { asked, revealed: choice !== null };
  }

  function write(result, step, ask, choice) {
    const question = ask();
    const optionButton = (i, ...face) => makeButton(() => answer(result, step, ask, i), ...face);
    setText(prompt, question.prompt);
    const buttons = question.options.map((words, i) => {
      const face = make("span", { translate: false }, words);
      const button = optionButton(i, { className: "option", disabled: choice !== null }, face);
      if (choice !== null && i === question.answer) button.classList.add("right");
      if (choice === i && i !== question.answer) button.classList.add("wrong");
      return button;
    });
    const reveal = optionButton(SHOWN, { className: "option reveal", hidden: choice !== null }, english("Show me"));
    const next = makeButton(onNext, { className: "option onward", hidden: choice === null || step === NUM_STEPS - 1 });
    next.append(english("Next"), " →");
    options.replaceChildren(...buttons, reveal, next);
    setText(why, choice === null ? "" : `${verdict(question, choice)} ${question.why}`);
  }

  function answer(result, step, ask, choice) {
    const store = answers.get(result) ?? answers.set(result, new Map()).get(result);
    store.set(step, { ask, choice });
    onAnswer();
  }

  return { show };
}

function verdict({ options, answer }, choice) {
  if (choice === answer) return translate("*Right.*");
  const right = { answer: options[answer] };
  return choice === SHOWN ? translate("*{answer}.*", right) : translate("*Not quite; right is {answer}.*", right);
}

// "Predict, then reveal": questions whose answers are computed from the numbers of this picture.

/**
 * The question of a step, {prompt, options, answer, why, marks}, or null where it has none. `answer` is the index of the
 * right option; `marks` are the patches that the options are about, as [patch, letter].
 */
export function questionOf(step, { result, facts, shared, block, tour }) {
  if (step === 0) return halfPatches(facts);
  if (step === 2 && shared.positions) return nearestPosition(facts, shared);
  if (step === 3) return strongestPatch(result, block, tour);
  if (step === 5 && block?.mlp) return largerChange(block, tour);
  if (step === 6) return facts.hasClasses ? whenSettled(facts, shared) : howSimilar(facts, shared);
  if (step === 7 && shared.labels.classes?.length >= 4) return secondClass(facts, shared);
  return null;
}

function halfPatches({ patches }) {
  return {
    prompt: translate("With patches half as wide and half as high, how many would there be?"),
    options: [2 * patches, 4 * patches, 8 * patches].map(String),
    answer: 1,
    why: translate(
      "Each patch becomes four, so there are {patches}. What is done to each token becomes four times the work; attention, which compares every token with every other, about sixteen times.",
      { patches: 4 * patches },
    ),
  };
}

/** Which positions resemble that of the patch in the middle. */
function nearestPosition(facts, { positions }) {
  if (Math.min(facts.rows, facts.columns) < 3) return null;
  const middle = middlePatch(facts);
  const [midRow, midColumn] = cellOf(middle, facts);
  const similarity = similarities(positions, facts.patches, middle);
  const groups = /** @type {number[][]} */ ([[], [], []]);
  similarity.forEach((value, patch) => {
    const [row, column] = cellOf(patch, facts);
    const [down, right] = [Math.abs(row - midRow), Math.abs(column - midColumn)];
    if (down + right === 1) groups[0].push(value);
    else if (down + right > 1 && Math.min(down, right) === 0) groups[1].push(value);
    else if (down + right > 1) groups[2].push(value);
  });
  const means = groups.map((values) => values.reduce((sum, value) => sum + value, 0) / values.length);
  const options = [
    translate("those right next to it"),
    translate("the rest of its row and column"),
    translate("all others"),
  ];
  const answer = means.indexOf(Math.max(...means));
  const numbers = means.map((mean) => formatDecimals(mean, 2)).join(" · ");
  return {
    prompt: translate("Which positions are most similar to the marked one?"),
    options,
    answer,
    why: translate(
      "Mean similarities, in the order of the answers: {numbers}. Point at a place to see its similarity to all others.",
      { numbers },
    ),
  };
}

/** Which of four patches the chosen token attends to most in the chosen head: the strongest and three ordinary ones. */
function strongestPatch(result, { weights }, { patch: chosen, head, block, fromClassToken }) {
  const asked = fromClassToken ? null : chosen; // what a patch attends to in itself is no guess at a place
  const kept = Array.from(result.tokenOf, (token, patch) => ({ patch, share: weights[token] })).filter(
    ({ patch, share }) => share !== undefined && patch !== asked,
  );
  if (kept.length < 4) return null;
  const ranked = [...kept].sort((a, b) => b.share - a.share);
  const ranks = [0, 0.25, 0.5, 0.75].map((part) => Math.floor(part * ranked.length));
  const marked = ranks.map((rank) => ranked[rank]).sort((a, b) => a.patch - b.patch);
  const letters = ["A", "B", "C", "D"];
  const values = { head: head + 1, block: block + 1 };
  return {
    prompt: fromClassToken
      ? translate(
          "Which of the marked patches does the class token attend to most in head {head} of block {block}?",
          values,
        )
      : translate(
          "Which of the marked patches does the outlined patch, {place}, attend to most in head {head} of block {block}?",
          {
            ...values,
            place: placeOf(result, chosen),
          },
        ),
    options: marked.map(({ patch }, i) => `${letters[i]}: ${placeOf(result, patch)}`),
    answer: marked.indexOf(ranked[0]),
    why: translate(
      "Attention goes where a key fits the query. The key of that patch fits best, and gets {share}; of the others here none gets more than {next}.",
      { share: formatShare(ranked[0].share), next: formatShare(ranked[ranks[1]].share) },
    ),
    marks: marked.map(({ patch }, i) => [patch, letters[i]]),
  };
}

function largerChange({ attention, mlp }, { block }) {
  const [byAttention, byMlp] = [lengthOf(attention), lengthOf(mlp)];
  return {
    prompt: translate("What changes this token more in block {block}?", { block: block + 1 }),
    options: [translate("attention"), translate("the MLP")],
    answer: byAttention >= byMlp ? 0 : 1,
    why: translate("What attention adds has the length {attention}, what the MLP adds {mlp}.", {
      attention: formatDecimals(byAttention, 2),
      mlp: formatDecimals(byMlp, 2),
    }),
  };
}

function whenSettled({ blocks, prediction }, { depth_class: depthClass }) {
  const settled = settledAfter(depthClass);
  const third = Math.ceil(blocks / 3);
  const ends = [...new Set([third, Math.min(2 * third, blocks - 1), blocks])];
  const options = ends.map((end, i) => {
    if (i === 0) return translate("after block {block}, or before", { block: end });
    const first = ends[i - 1] + 1;
    return first === end
      ? translate("after block {block}", { block: end })
      : translate("after block {first} to {last}", { first, last: end });
  });
  return {
    prompt: translate("When does “{prediction}” take the lead for good?", { prediction: translateName(prediction) }),
    options,
    answer: ends.findIndex((end) => settled <= end),
    why:
      settled === 0
        ? translate("It leads even before the first block.")
        : translate("It leads from block {block} on.", { block: settled }),
  };
}

const SIMILARITIES = [
  [0.3, english("hardly at all (below 0.3)")],
  [0.8, english("partly (0.3 to 0.8)")],
  [Number.POSITIVE_INFINITY, english("almost the same (above 0.8)")],
];

function howSimilar({ blocks }, { depth_similarity: similarity }) {
  const middle = Math.floor(blocks / 2);
  const value = similarity[middle];
  return {
    prompt: translate("How similar is the output after block {block} to the final one?", { block: middle }),
    options: SIMILARITIES.map(([, words]) => translate(words)),
    answer: SIMILARITIES.findIndex(([end]) => value < end),
    why: translate("The cosine similarity is {value}.", { value: formatDecimals(value, 2) }),
  };
}

function secondClass({ scores }, { labels, logits, logsumexp }) {
  const [first, ...others] = labels.classes.slice(0, 4).map(translateName);
  const options = [...others].sort((a, b) => a.localeCompare(b, "en"));
  const probability = formatProbability(scoreOf(logits[1], scores, logsumexp[0]), scores);
  return {
    prompt: translate("“{first}” comes first. What comes second?", { first }),
    options,
    answer: options.indexOf(others[0]),
    why: translate("“{name}” comes second, with {probability}.", { name: others[0], probability }),
  };
}
