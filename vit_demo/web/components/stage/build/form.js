// The form of the section Build: a starting point, and the fields of the configuration that a visitor may change.

import { make } from "../../shared/dom.js";
import { LIMITS } from "./network.js";

const NUMBERS = [
  ["image_size", "Image size", "pixels"],
  ["patch_size", "Patch size", "pixels"],
  ["in_channels", "Channels", "1 or 3"],
  ["num_classes", "Classes", "0 for none"],
  ["embed_dim", "Width", "per token"],
  ["depth", "Depth", "blocks"],
  ["num_heads", "Heads", "per block"],
];

const CHOICES = [
  [
    "pool",
    "The head reads",
    [
      ["cls", "the class token"],
      ["mean", "the mean of the patches"],
      ["all", "the mean of all tokens"],
      ["cls+mean", "class token and mean, side by side"],
      ["cls+next", "class token and the token after it"],
    ],
  ],
  [
    "class_token",
    "Class token",
    [
      [true, "yes"],
      [false, "no"],
    ],
  ],
  [
    "pos_embed",
    "Positions",
    [
      ["learned", "learned"],
      ["sincos", "sines and cosines"],
    ],
  ],
];

let forms = 0;

/**
 * Fills a form. `onStart(index)` is called for a new starting point, `onChange(network)` for any other change, with a
 * network {start, config, patchSize}. `show(network)` writes it into the fields.
 */
export function createForm(form, networks, { onStart, onChange }) {
  const id = `build-${++forms}`;
  let current = null;
  const start = make("select", { id: `${id}-start` }, ...groups(networks));
  start.addEventListener("change", () => onStart(Number(start.value)));
  form.append(field(start, "Start from"));

  const inputs = NUMBERS.map(([name, title, unit]) => {
    const input = make("input", {
      id: `${id}-${name}`,
      type: "number",
      inputMode: "numeric",
      min: 0,
      max: LIMITS[name],
    });
    input.addEventListener("input", () =>
      onChange(changed(name, input.value === "" ? Number.NaN : Number(input.value))),
    );
    form.append(field(input, title, unit));
    return { name, input };
  });
  const selects = CHOICES.map(([name, title, options]) => {
    const select = make(
      "select",
      { id: `${id}-${name}` },
      ...options.map(([, label], i) => make("option", { value: i, textContent: label })),
    );
    select.addEventListener("change", () => onChange(changed(name, options[select.selectedIndex][0])));
    form.append(field(select, title));
    return { name, select, options };
  });

  /** A flexible network keeps its stored kernel: only the patch size at which it runs changes. */
  function changed(name, value) {
    const config = { ...current.config };
    if (name === "patch_size") {
      if (current.config.pos_embed_grid === null) config.patch_size = value;
      return { ...current, config, patchSize: value };
    }
    return { ...current, config: { ...config, [name]: value } };
  }

  function show(network) {
    current = network;
    const { config, patchSize } = network;
    start.value = network.start;
    for (const { name, input } of inputs) {
      const value = name === "patch_size" ? patchSize : config[name];
      // A field that is being emptied stays empty.
      if (!Number.isNaN(value) && Number(input.value) !== value) input.value = value;
    }
    for (const { name, select, options } of selects) {
      select.selectedIndex = options.findIndex(([value]) => value === config[name]);
    }
  }

  return { show };
}

function groups(networks) {
  const names = [...new Set(networks.map(({ group }) => group))];
  return names.map((label) => {
    const options = networks.map(
      ({ group, title }, i) => group === label && make("option", { value: i, textContent: title }),
    );
    return make("optgroup", { label }, ...options.filter(Boolean));
  });
}

function field(control, title, unit = "") {
  const label = make("label", { htmlFor: control.id, textContent: title });
  if (unit) label.append(make("small", { textContent: unit }));
  return make("div", { className: "field" }, label, control);
}
