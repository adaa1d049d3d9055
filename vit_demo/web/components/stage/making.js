// "How is this made?": the section about the shown method in the project's docs, fetched when it is opened.

function createMaking() {
  const panel = find(".making");
  const text = find(".making .text");
  const sections = new Map(); // method -> HTML
  let shown = "";

  async function show() {
    const method = shown;
    if (!panel.open || text.dataset.method === method) return;
    if (!sections.has(method)) {
      const said = await askServer({ about: "method_docs", method }, () => shown === method && panel.open);
      if (!said) return;
      if (said.error) return text.replaceChildren(said.error);
      sections.set(method, said.answer.html);
    }
    text.innerHTML = sections.get(method);
    text.dataset.method = method;
  }

  panel.addEventListener("toggle", show);
  return function sync(method) {
    if (method === shown) return;
    shown = method;
    show();
  };
}
