// The form of the section Build: a starting point, and the fields of the configuration that a visitor may change.

import { make } from "../../../shared/dom.js";
import { english } from "../../../shared/language.js";
import { LIMITS } from "./network.js";

const NUMBERS = [
  ["image_size", english("Image size"), english("pixels")],
  ["patch_size", english("Patch size"), english("pixels")],
  ["in_channels", english("Channels"), english("1 or 3")],
  ["num_classes", english("Classes"), english("0 for none")],
  ["embed_dim", english("Width"), english("per token")],
  ["depth", english("Depth"), english("blocks")],
  ["num_heads", english("Heads"), english("per block")],
];

const CHOICES = [
  [
    "pool",
    english("The head reads"),
    [
      ["cls", english("the class token")],
      ["mean", english("the mean of the patches")],
      ["all", english("the mean of all tokens")],
      ["cls+mean", english("class token and mean, side by side")],
      ["cls+next", english("class token and the token after it")],
    ],
  ],
  [
    "class_token",
    english("Class token"),
    [
      [true, english("yes")],
      [false, english("no")],
    ],
  ],
  [
    "pos_embed",
    english("Positions"),
    [
      ["learned", english("learned")],
      ["sincos", english("sines and cosines")],
    ],
  ],
];

let forms = 0;

/**
 * Fills a form. `onChange(network)` is called with {start, fields}: the title of a starting point, and the fields by name
 * that the visitor has changed. `show(network, {config, patchSize})` writes them into the fields.
 */
export function createForm(form, networks, onChange) {
  const id = `build-${++forms}`;
  let current = null;
  const start = make("select", { id: `${id}-start` }, ...groups(networks));
  start.addEventListener("change", () => onChange({ start: start.value, fields: {} }));
  form.append(field(start, english("Start from")));

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

  const changed = (name, value) => ({ ...current, fields: { ...current.fields, [name]: value } });

  function show(network, { config, patchSize }) {
    current = network;
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
    const titles = networks.filter(({ group }) => group === label).map(({ title }) => title);
    return make("optgroup", { label }, ...titles.map((title) => make("option", { value: title, textContent: title })));
  });
}

function field(control, title, unit = "") {
  const label = make("label", { htmlFor: control.id, textContent: title });
  if (unit) label.append(make("small", { textContent: unit }));
  return make("div", { className: "field" }, label, control);
}
