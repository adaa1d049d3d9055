// @ts-check
// The Vision Transformer that is built: its fields, what is wrong with them, and the code that makes it.

import { english, formatInteger, translate } from "../../../shared/language.js";

/** The numbers that a visitor may change: field, title, unit, and the least and the largest value. */
export const NUMBERS = [
  ["image_size", english("Image size"), english("pixels"), 1, 2048],
  ["patch_size", english("Patch size"), english("pixels"), 1, 2048],
  ["in_channels", english("Channels"), english("1 grey, 3 colour"), 1, 64],
  ["num_classes", english("Classes"), english("0 for none"), 0, 100_000],
  ["embed_dim", english("Width"), english("per token"), 1, 8192],
  ["depth", english("Depth"), english("blocks"), 1, 128],
  ["num_heads", english("Heads"), english("per block"), 1, 512],
];

/**
 * The network that a visitor builds, {config, patchSize}, from {start, fields}: the title of a starting point, and the fields
 * that were changed. A flexible network keeps its stored kernel: only the patch size at which it runs changes.
 */
export function networkOf({ start, fields }, { defaults, networks }) {
  const from = networks.find(({ title }) => title === start);
  const { patch_size: wanted, ...others } = fields;
  const config = { ...defaults, ...from.config, ...others };
  if (wanted !== undefined && config.pos_embed_grid === null) config.patch_size = wanted;
  return { config, patchSize: wanted ?? from.patch_size };
}

/**
 * What is wrong with a network, as the field to change and one sentence; null if nothing is.
 * `config` has the fields of Python's ViTConfig; `patchSize` is the one at which the network runs.
 */
export function problemOf(config, patchSize) {
  for (const [field, title, , least, most] of NUMBERS) {
    const value = field === "patch_size" ? patchSize : config[field];
    if (!Number.isInteger(value) || value < least || value > most) {
      const values = { name: translate(title), least, most: formatInteger(most) };
      return [field, translate("{name}: enter a whole number from {least} to {most}.", values)];
    }
  }
  const { image_size: size, patch_size: kernel, embed_dim: width, num_heads: heads, pool } = config;
  const values = { size, patchSize, kernel, width, heads };
  const found = [
    [
      size % patchSize,
      "patch_size",
      english("{size} pixels cannot be cut into patches of {patchSize}: choose a divisor of {size}."),
    ],
    [
      size % kernel,
      "image_size",
      english("The stored kernel of {kernel} pixels does not divide an image of {size}: change the image size."),
    ],
    [
      width % heads,
      "embed_dim",
      english("A width of {width} cannot be shared equally by {heads} heads: choose a multiple of {heads}."),
    ],
    [
      pool.startsWith("cls") && !config.class_token,
      "class_token",
      english("The head cannot read a class token where there is none: add one."),
    ],
    [
      pool === "cls+next" && !config.num_registers,
      "pool",
      english(
        "The head cannot read the token after the class token where there are no registers: choose another pooling.",
      ),
    ],
  ].find(([isWrong]) => isWrong);
  return found ? [found[1], translate(String(found[2]), values)] : null;
}

// A network as Python code.

/** The call that makes a configuration: with the fields that differ from the defaults of ViTConfig. */
export function configCode(config, defaults) {
  const changed = Object.entries(config).filter(([name, value]) => value !== defaults[name]);
  const fields = changed.map(([name, value]) => `    ${name}=${literal(value)},\n`).join("");
  return fields ? `ViTConfig(\n${fields})` : "ViTConfig()";
}

/** The code that makes the network. */
export function pythonCode(config, patchSize, defaults) {
  const resampled = patchSize === config.patch_size ? "" : `, patch_size=${patchSize}`;
  return [
    "import torch",
    "from vit_demo.model import ViT, ViTConfig",
    "",
    `config = ${configCode(config, defaults)}`,
    "model = ViT(config).eval()",
    `images = torch.randn(1, ${config.in_channels}, ${config.image_size}, ${config.image_size})`,
    `print(model(images${resampled}).shape)`,
    "",
  ].join("\n");
}

/** What may be chosen of training digits and learning rates; Python's defaults first. */
export const NUM_DIGITS = [5000, 1000, 100];
export const RATES = [0.002, 0.0005, 0.01, 0];

/** The program that trains the same network. */
export function trainingCode({ network, fields, last }, defaults) {
  const { num_digits: digits, learning_rate: rate, shuffle_labels: shuffled } = fields;
  const options = [
    `steps=${last.steps}`,
    `seed=${last.seed}`,
    ...(digits === NUM_DIGITS[0] ? [] : [`num_digits=${digits}`]),
    ...(rate === RATES[0] ? [] : [`learning_rate=${rate}`]),
    ...(shuffled ? ["shuffle_labels=True"] : []),
  ];
  return [
    "import vit_demo",
    "from vit_demo.model import ViTConfig",
    "",
    `config = ${configCode(network, defaults)}`,
    `model, history = vit_demo.train_small(config, ${options.join(", ")})`,
    "print(history.accuracy[-1])",
    "",
  ].join("\n");
}

const CONSTANTS = { null: "None", true: "True", false: "False" };
const literal = (value) => CONSTANTS[String(value)] ?? JSON.stringify(value);
