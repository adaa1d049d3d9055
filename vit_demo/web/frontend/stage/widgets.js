// Widgets in plain HTML: radio buttons that look like one bar, a select where there are too many, sliders.

import { make, setText } from "../shared/dom.js";

export const MOST_SEGMENTS = 7;

/** Fills `host` with one choice among `options`, a list of [value, label]; returns {set(value), enable(flag)}. */
export function choice(host, name, group, options, onChange) {
  const build = options.length > MOST_SEGMENTS ? selectChoice : segmentChoice;
  return build(host, name, group, options, onChange);
}

/** Radio buttons in one bar. */
export function segmentChoice(host, name, group, options, onChange) {
  const bar = make("div", { className: "segments" });
  bar.setAttribute("role", "radiogroup");
  bar.setAttribute("aria-label", name);
  const inputs = options.map(([value, label]) => {
    const input = make("input", { type: "radio", name: group });
    input.dataset.value = value;
    input.addEventListener("change", () => onChange(value));
    const face = make("label", { textContent: label }, input);
    face.dataset.label = label; // a hidden bold copy keeps the width, so that choosing moves nothing
    bar.append(face);
    return input;
  });
  host.replaceChildren(bar);
  return {
    set(value) {
      inputs.forEach((input, i) => {
        input.checked = options[i][0] === value;
      });
    },
    enable(flag) {
      for (const input of inputs) input.disabled = !flag;
    },
  };
}

function selectChoice(host, name, _group, options, onChange) {
  const select = make("select", {}, ...options.map(([, label], i) => make("option", { value: i, textContent: label })));
  select.setAttribute("aria-label", name);
  select.addEventListener("change", () => onChange(options[select.selectedIndex][0]));
  host.replaceChildren(select);
  return {
    set(value) {
      select.selectedIndex = options.findIndex(([option]) => option === value);
    },
    enable(flag) {
      select.disabled = !flag;
    },
  };
}

/** A slider with its value written beside it by `format(value)`. */
export function slider(input, id, format, onChange) {
  const host = input.parentElement;
  const label = host.previousElementSibling;
  label.htmlFor = input.id = id;
  input.addEventListener("input", () => onChange(Number(input.value)));
  return {
    set(value, most = input.max) {
      input.max = most;
      input.value = value;
      const range = Math.max(1, input.max - input.min);
      input.style.setProperty("--filled", `${(100 * (value - input.min)) / range}%`);
      setText(host.querySelector("span"), format(value));
      input.setAttribute("aria-valuetext", format(value));
    },
    enable(flag) {
      input.disabled = !flag;
    },
  };
}
