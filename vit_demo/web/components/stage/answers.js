// The card "It says": always five rows, so that nothing below it moves; each asks what speaks for its class.

const ANSWERS = 5;
const OFFER = "Click one to see what speaks for it.";

/** `pick(index)` hears which class the visitor wants to know about. */
function createAnswers(pick) {
  const rows = Array.from({ length: ANSWERS }, (_, i) => {
    const label = make("span", { className: "label" });
    const number = make("span", { className: "number" });
    const bar = make("i");
    const face = make("button", { type: "button" }, label, number, make("span", { className: "track" }, bar));
    face.addEventListener("click", () => pick(shown[i].index));
    return { item: make("li", {}, face), face, label, number, bar };
  });
  let shown = [];
  find(".bars").append(...rows.map((row) => row.item));

  /** Shows a result, or empty rows without one; `whole` is the same before patches were knocked out. */
  function show(result, whole) {
    shown = result ? result.top : [];
    rows.forEach((row, i) => {
      const answer = shown[i];
      row.item.classList.toggle("first", i === 0 && Boolean(answer));
      row.face.disabled = !answer;
      row.label.textContent = row.label.title = answer ? answer.label : "";
      row.number.textContent = answer ? percent(answer.probability) : "";
      row.bar.style.width = answer ? `max(2px, ${100 * answer.probability}%)` : "0";
    });
    const note = noteOf(result, whole);
    setText(find(".note"), note);
    find(".note").classList.toggle("quietly", note === OFFER);
    setText(find(".verdict"), shown.length ? `It says *${shown[0].label}* · ${percent(shown[0].probability)}` : "");
    const timing = () => `${Math.max(1, Math.round(result.milliseconds))} ms on ${result.device}`;
    setText(find(".timing"), result ? timing() : "");
    const says = shown.length ? `It says ${shown[0].label}, ${(100 * shown[0].probability).toFixed(1)} percent. ` : "";
    setText(find(".spoken"), says + (note === OFFER ? "" : note.replaceAll("*", "")));
  }

  /** Marks the class that the picture is about, or none. */
  function mark(index) {
    rows.forEach((row, i) => row.face.setAttribute("aria-pressed", String(shown[i]?.index === index)));
  }

  return { show, mark };
}

function noteOf(result, whole) {
  if (!result) return "";
  if (!result.top.length) {
    return "This model was trained without classes: it sees, but names nothing, and no map can be about a class.";
  }
  const count = result.dropped.length;
  if (!count) return result.note || OFFER;
  const before = `*${whole.top[0].label}* at ${percent(whole.top[0].probability)}`;
  return `Without ${count === 1 ? "one patch" : `${count} patches`}. With all of them it says ${before}.`;
}
