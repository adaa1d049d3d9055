// Controls in plain HTML: radio buttons that look like one bar, a select where there are too many, sliders.

import { make, setText } from "../shared/dom.js";
import { SPACE } from "./numbers.js";

const MOST_SEGMENTS = 7;

/** Fills `host` with one choice among `options`, a list of [value, label]; returns {set(value), enable(flag)}. */
function choice(host, name, group, options, onChange) {
  const build = options.length > MOST_SEGMENTS ? selectChoice : segmentChoice;
  return build(host, name, group, options, onChange);
}

/** Bars of one `group` are one choice in several rows. */
function segmentChoice(host, name, group, options, onChange) {
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
function slider(input, id, format, onChange) {
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

/**
 * Builds all controls. `idPrefix` is different for each stage of a page; `onChange(part)` gets the choices that change.
 * `update(choices, shape, result)` shows the choices for a network of that shape, {numBlocks, numHeads}.
 */
export function createControls(element, methods, idPrefix, onChange) {
  const control = (name) => element.querySelector(`[data-control=${name}]`);
  const group = (name) => `${idPrefix}-${name}`;
  const methodChoice = (host, name, classSpecific) => {
    const offered = Object.entries(methods).filter(([, method]) => method.classSpecific === classSpecific);
    const options = offered.map(([id, { label }]) => [id, label]);
    return segmentChoice(control(host), name, group("method"), options, (method) => onChange({ method }));
  };
  const method = methodChoice("method", "Show", false);
  const classMethod = methodChoice("class-method", "Show for a class", true);
  const directions = [
    ["from", "where it looks"],
    ["to", "who looks at it"],
  ];
  const direction = choice(control("direction"), "Direction", group("direction"), directions, (value) =>
    onChange({ direction: value }),
  );
  const ofAll = (value) => `${value} of ${control("block").max}`;
  const block = slider(control("block"), group("block"), ofAll, (value) => onChange({ block: value - 1 }));
  const inPercent = (value) => `${value}${SPACE}%`;
  const opacity = slider(control("opacity"), group("opacity"), inPercent, (value) =>
    onChange({ opacity: value / 100 }),
  );
  let head = null;
  let numHeads = 0;

  function offerHeads(count) {
    numHeads = count;
    const each = Array.from({ length: count }, (_, h) => [h, count < MOST_SEGMENTS ? `${h + 1}` : `head ${h + 1}`]);
    const options = [[-1, "mean"], ...each];
    head = choice(control("head"), "Head", group("head"), options, (value) => onChange({ head: value }));
  }

  function update(choices, shape, result) {
    if (shape.numHeads !== numHeads) offerHeads(shape.numHeads);
    const { uses } = methods[choices.method];
    method.set(choices.method);
    classMethod.set(choices.method);
    direction.set(choices.direction);
    block.set(choices.block + 1, shape.numBlocks);
    opacity.set(Math.round(100 * choices.opacity));
    head.set(choices.head);
    for (const each of [method, opacity]) each.enable(Boolean(result));
    classMethod.enable(Boolean(result?.predictions.length));
    for (const [use, each] of Object.entries({ block, head, direction })) {
      each.enable(Boolean(result) && uses.includes(use));
    }
  }

  return { update };
}
