// A network as Python code.

/** The code that makes the network: the fields that differ from the defaults of ViTConfig. */
export function pythonCode(config, patchSize, defaults) {
  const changed = Object.entries(config).filter(([name, value]) => value !== defaults[name]);
  const fields = changed.map(([name, value]) => `    ${name}=${literal(value)},\n`).join("");
  const call = fields ? `ViTConfig(\n${fields})` : "ViTConfig()";
  const resampled = patchSize === config.patch_size ? "" : `, patch_size=${patchSize}`;
  return [
    "import torch",
    "from vit_demo.model import ViT, ViTConfig",
    "",
    `config = ${call}`,
    "model = ViT(config).eval()",
    `images = torch.randn(1, ${config.in_channels}, ${config.image_size}, ${config.image_size})`,
    `print(model(images${resampled}).shape)`,
    "",
  ].join("\n");
}

function literal(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return `"${value}"`;
  return String(value);
}
