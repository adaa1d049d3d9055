// "Predict, then reveal": a question with its options, and what the visitor answered for each picture.

import { make, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";

const SHOWN = -1; // the answer was shown without a guess

/**
 * `show(result, step, ask)` shows the question that `ask()` returns, or nothing for null; returns whether its answer may be
 * seen. `onAnswer(result, step)` is called after an answer. An answered question stays as it was when it was answered.
 */
export function createQuiz(host, onAnswer) {
  const prompt = make("p", { className: "prompt" });
  const options = make("div", { className: "options" });
  const why = make("p", { className: "why" });
  why.setAttribute("role", "status");
  host.append(make("h3", { textContent: english("Predict, then see") }), prompt, options, why);
  const answers = new WeakMap(); // result -> Map from step to {ask, choice}
  let written = "";

  function show(result, step, ask) {
    const known = answers.get(result)?.get(step);
    const asked = known?.ask ?? ask;
    const question = asked();
    host.hidden = !question;
    if (!question) return true;
    const choice = known ? known.choice : null;
    const next = JSON.stringify([step, question, choice]);
    if (next !== written) write(result, step, asked, choice);
    written = next;
    return choice !== null;
  }

  function write(result, step, ask, choice) {
    const question = ask();
    setText(prompt, question.prompt);
    const buttons = question.options.map((words, i) => {
      const button = make(
        "button",
        { type: "button", className: "option" },
        make("span", { translate: false, textContent: words }),
      );
      button.disabled = choice !== null;
      if (choice !== null && i === question.answer) button.classList.add("right");
      if (choice === i && i !== question.answer) button.classList.add("wrong");
      button.addEventListener("click", () => answer(result, step, ask, i));
      return button;
    });
    const reveal = make("button", { type: "button", className: "option reveal", textContent: english("Show me") });
    reveal.hidden = choice !== null;
    reveal.addEventListener("click", () => answer(result, step, ask, SHOWN));
    options.replaceChildren(...buttons, reveal);
    setText(why, choice === null ? "" : `${verdict(question, choice)} ${question.why}`);
  }

  function answer(result, step, ask, choice) {
    const store = answers.get(result) ?? answers.set(result, new Map()).get(result);
    store.set(step, { ask, choice });
    onAnswer(result, step);
  }

  return { show };
}

function verdict({ options, answer }, choice) {
  if (choice === answer) return translate("*Right.*");
  const right = { answer: options[answer] };
  return choice === SHOWN ? translate("*{answer}.*", right) : translate("*Not quite: {answer}.*", right);
}
