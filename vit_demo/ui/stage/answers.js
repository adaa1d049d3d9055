// The card "It says": always five rows, so that nothing below it moves.

const ANSWERS = 5;

function createAnswers() {
  const rows = Array.from({ length: ANSWERS }, () => {
    const label = make("span", { className: "label" });
    const number = make("span", { className: "number" });
    const bar = make("i");
    const item = make("li", {}, label, number, make("div", { className: "track" }, bar));
    return { item, label, number, bar };
  });
  find(".bars").append(...rows.map((row) => row.item));

  /** Shows a result, or empty rows without one. */
  return function showAnswers(result) {
    const top = result ? result.top : [];
    rows.forEach((row, i) => {
      const answer = top[i];
      row.item.classList.toggle("first", i === 0 && Boolean(answer));
      row.label.textContent = row.label.title = answer ? answer.label : "";
      row.number.textContent = answer ? percent(answer.probability) : "";
      row.bar.style.width = answer ? `max(2px, ${100 * answer.probability}%)` : "0";
    });
    const note = noteOf(result);
    setText(find(".note"), note);
    setText(find(".verdict"), top.length ? `It says *${top[0].label}* · ${percent(top[0].probability)}` : "");
    const timing = () => `${Math.max(1, Math.round(result.milliseconds))} ms on ${result.device}`;
    setText(find(".timing"), result ? timing() : "");
    const says = top.length ? `It says ${top[0].label}, ${(100 * top[0].probability).toFixed(1)} percent. ` : "";
    setText(find(".spoken"), says + note);
  };
}

function noteOf(result) {
  if (!result) return "";
  return result.top.length ? result.note : "This model was trained without classes: it sees, but names nothing.";
}
