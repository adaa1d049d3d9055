// A choice among a few as one bar of radio buttons.

import { make } from "../shared/dom.js";

/** Fills a host with radio buttons of one name; `set(options, value)` takes a list of [value, label, small lines]. */
export function createRadios(host, titleId, onChange) {
  let shown = "";

  host.setAttribute("role", "radiogroup");
  host.setAttribute("aria-labelledby", titleId);
  host.classList.add("segments");

  function set(options, value) {
    const key = JSON.stringify(options);
    if (key !== shown) {
      host.replaceChildren(...options.map(segment));
      shown = key;
    }
    for (const input of host.querySelectorAll("input")) input.checked = input.value === String(value);
  }

  function segment([value, text, lines = []]) {
    const input = make("input", { type: "radio", name: host.id, value });
    input.addEventListener("change", () => onChange(value));
    if (lines.length) return make("label", {}, make("span", { textContent: text }), ...lines.map(small), input);
    const face = make("label", { textContent: text }, input);
    face.dataset.label = text; // a hidden bold copy keeps the width, so that choosing moves nothing
    return face;
  }

  const small = (textContent) => make("small", { textContent });

  return { set };
}
