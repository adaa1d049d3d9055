// Small helpers for the page.

/** Creates an element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Sets text in which *stars* make words bold; touches the page only when the text is new. */
export function setText(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...text.split("*").map((part, i) => (i % 2 ? make("b", { textContent: part }) : part)));
}

/** Shows or hides a thin progress bar; `progress` is 0 to 1, or null where it is not known. */
export function setProgress(bar, visible, progress = null) {
  bar.classList.toggle("on", visible);
  bar.classList.toggle("unknown", progress === null);
  bar.firstElementChild.style.width = `${100 * (progress ?? 1)}%`;
}
