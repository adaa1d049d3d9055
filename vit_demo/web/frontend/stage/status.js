// Whether the result on the stage is the one that was requested last, and what to do if it is not.

import { resultStatus, retryResult } from "../shared/channels.js";
import { make, setText } from "../shared/dom.js";
import { english } from "../shared/language.js";

/**
 * Follows `resultStatus`. Its states: "done"; "pending", the result of before is marked as old; "failed" and "lost", a
 * sentence in every section, with a button that tries again where that may help. Where the picture would be, if there is
 * none, the stage has the sentence already, and only the button is added.
 */
export function followStatus(element, stage) {
  const text = make("span");
  const retry = make("button", { type: "button", textContent: english("Retry"), className: "quiet" });
  const bar = make("div", { className: "result-status", hidden: true }, text, retry);
  const spoken = make("p", { className: "visually-hidden" });
  spoken.setAttribute("role", "status");
  stage.append(bar, spoken);
  const buttons = [retry, element.querySelector(".retry")];
  for (const button of buttons) button.addEventListener("click", () => retryResult.publish());

  function show({ state, sentence, canRetry = true }) {
    stage.classList.toggle("old", state !== "done");
    stage.dataset.state = state;
    bar.hidden = !sentence;
    for (const button of buttons) button.hidden = !sentence || !canRetry;
    setText(text, sentence);
    setText(spoken, sentence);
  }

  resultStatus.follow(element, show);
  show(resultStatus.latest());
}
