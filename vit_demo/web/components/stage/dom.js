// Small helpers for the page.

const find = (selector) => element.querySelector(selector);

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** Sets text in which *stars* make words bold; touches the page only when the text is new. */
function setText(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...text.split("*").map((part, i) => (i % 2 ? make("b", { textContent: part }) : part)));
}

const SPACE = "\u00a0"; // a number and its unit stay on one line

/** A probability for reading: one decimal, and never a rounded 0 or 100. */
function percent(value) {
  if (value < 0.001) return `<0.1${SPACE}%`;
  if (value < 1 && value >= 0.9995) return `>99.9${SPACE}%`;
  return `${(100 * value).toFixed(1)}${SPACE}%`;
}

/** An attention share, which is small on fine grids: two decimals below 1 %. */
function share(value) {
  if (value > 0 && value < 0.0001) return `<0.01${SPACE}%`;
  return `${(100 * value).toFixed(value < 0.01 ? 2 : 1)}${SPACE}%`;
}
