// Controls in plain HTML: radio buttons that look like one bar, a select where there are too many, sliders.

const MOST_SEGMENTS = 7;

/**
 * Fills `host` with one choice among `options`, a list of [value, label].
 * Returns {set(value), enable(flag)}; `onChange(value)` hears of the visitor's choices only.
 */
function choice(host, name, options, onChange) {
  const build = options.length > MOST_SEGMENTS ? selectChoice : segmentChoice;
  return build(host, name, options, onChange);
}

/** Bars of one `family` are one choice in several rows. */
function segmentChoice(host, name, options, onChange, family = name) {
  const group = `${element.id}-${family}`;
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
    set: (value) => inputs.forEach((input, i) => (input.checked = options[i][0] === value)),
    enable: (flag) => inputs.forEach((input) => (input.disabled = !flag)),
  };
}

function selectChoice(host, name, options, onChange) {
  const select = make("select", {}, ...options.map(([, label], i) => make("option", { value: i, textContent: label })));
  select.setAttribute("aria-label", name);
  select.addEventListener("change", () => onChange(options[select.selectedIndex][0]));
  host.replaceChildren(select);
  return {
    set: (value) => (select.selectedIndex = options.findIndex(([option]) => option === value)),
    enable: (flag) => (select.disabled = !flag),
  };
}

/** A slider with its value written beside it by `write(value)`. */
function slider(input, write, onChange) {
  const host = input.parentElement;
  const label = host.previousElementSibling;
  label.htmlFor = input.id = `${element.id}-${input.dataset.control}`; // two stages can share a page
  input.addEventListener("input", () => onChange(Number(input.value)));
  return {
    set(value, most = input.max) {
      input.max = most;
      input.value = value;
      const range = Math.max(1, input.max - input.min);
      input.style.setProperty("--filled", `${(100 * (value - input.min)) / range}%`);
      setText(host.querySelector("span"), write(value));
      input.setAttribute("aria-valuetext", write(value));
    },
    enable: (flag) => (input.disabled = !flag),
  };
}

/** Builds all controls. `sync(choices, shape, result)` shows the state of a result, or of none, of so many blocks and heads. */
function createControls(change) {
  const control = (name) => find(`[data-control=${name}]`);
  const methodsOf = (host, name, ofClass) => {
    const chosen = Object.entries(METHODS).filter(([, { aboutClass }]) => Boolean(aboutClass) === ofClass);
    const options = chosen.map(([id, { label }]) => [id, label]);
    return segmentChoice(control(host), name, options, (value) => change({ method: value }), "method");
  };
  const method = methodsOf("method", "Show", false);
  const classMethod = methodsOf("class-method", "Show for a class", true);
  const directions = [["from", "where it looks"], ["to", "who looks at it"]];
  const direction = choice(control("direction"), "Direction", directions, (value) => change({ direction: value }));
  const ofAll = (value) => `${value} of ${control("block").max}`;
  const block = slider(control("block"), ofAll, (value) => change({ block: value - 1 }));
  const inPercent = (value) => `${value}${SPACE}%`;
  const opacity = slider(control("opacity"), inPercent, (value) => change({ opacity: value / 100 }));
  let head = null;
  let heads = 0;

  function offerHeads(count) {
    heads = count;
    const each = Array.from({ length: count }, (_, h) => [h, count < MOST_SEGMENTS ? `${h + 1}` : `head ${h + 1}`]);
    head = choice(control("head"), "Head", [[-1, "mean"], ...each], (value) => change({ head: value }));
  }

  function sync(choices, shape, result) {
    if (shape.heads !== heads) offerHeads(shape.heads);
    const { uses } = METHODS[choices.method];
    method.set(choices.method);
    classMethod.set(choices.method);
    direction.set(choices.direction);
    block.set(choices.block + 1, shape.blocks);
    opacity.set(Math.round(100 * choices.opacity));
    head.set(choices.head);
    for (const each of [method, opacity]) each.enable(Boolean(result));
    classMethod.enable(Boolean(result?.top.length));
    for (const [use, each] of Object.entries({ block, head, direction })) {
      each.enable(Boolean(result) && uses.includes(use));
    }
  }

  return { sync };
}
