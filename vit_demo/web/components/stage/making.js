// "How is this made?": the section about the shown method in the project's docs, fetched when it is opened.

function createMaking() {
  const panel = find(".making");
  const text = find(".making .text");
  const sections = new Map(); // method -> HTML
  let shown = "";
  let written = ""; // the method whose section is on the page

  async function show() {
    const method = shown;
    if (!panel.open || written === method) return;
    if (!sections.has(method)) {
      const said = await askServer({ about: "method_docs", method }, () => shown === method && panel.open);
      if (!said) return;
      if (said.error) {
        written = "";
        return text.replaceChildren(said.error);
      }
      sections.set(method, said.answer.html);
    }
    text.innerHTML = sections.get(method);
    written = method;
  }

  panel.addEventListener("toggle", show);
  function sync(method) {
    if (method === shown) return;
    shown = method;
    show();
  }

  return { sync, retry: show };
}
