// "What each depth would have said": the first answer before the first block and after each, asked for when opened.

function createDepths() {
  const panel = find(".depths");
  const list = find(".depths ol");
  const message = find(".depths .message-line");
  let result = null;

  async function show() {
    const mine = result;
    if (!panel.open || !mine || !mine.top.length) return;
    mine.depths ??= await askServer({ about: "logit_lens", source: mine.source }, () => mine === result && panel.open);
    if (mine !== result || !mine.depths) return;
    setText(message, mine.depths.error ?? "");
    const items = (mine.depths.answer?.depths ?? []).map(({ label, probability }, depth) => {
      const bar = make("i");
      bar.style.setProperty("--much", probability);
      const item = make(
        "li", {},
        make("small", { textContent: depth ? `block ${depth}` : "no block" }),
        make("span", { className: "label", textContent: label, title: label }),
        make("div", { className: "track" }, bar),
        make("span", { className: "number", textContent: percent(probability) }),
      );
      item.classList.toggle("agrees", label === mine.top[0].label);
      return item;
    });
    list.replaceChildren(...items);
    if (mine.depths.error) mine.depths = null; // worth another try
  }

  panel.addEventListener("toggle", show);
  return function sync(next) {
    result = next;
    panel.hidden = Boolean(next && !next.top.length);
    if (!next) list.replaceChildren();
    show();
  };
}
