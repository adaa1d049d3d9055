// What a kept map is, in words, as data and as code that computes it again.

import { isDefaultMap, mapFields } from "../methods.js";
import { formatProbability } from "../numbers.js";
import { targetOf } from "../text.js";

const plain = (text) => text.replaceAll("*", "");

/** The caption of a kept picture: lines of text. */
export function captionOf({ result, method, view, map }) {
  const { preset, patch_size: patchSize } = result.source;
  const first = result.predictions[0];
  const prediction = first ? ` · prediction ${first.label}, ${formatProbability(first.probability)}` : "";
  const peak = map.reduce((best, value) => Math.max(best, Math.abs(value)), 0);
  return [
    `${method.label} · ${plain(method.subject(result, view))}`,
    `${preset}, patches of ${patchSize} × ${patchSize} pixels${prediction}`,
    `largest value ${plain(method.format(peak))} (${method.unit})`,
  ];
}

/** The fields of a map as they are in a request, and the class by name. */
function fieldsOf({ result, view, methods, name }) {
  const fields = mapFields(methods, result, { ...view, method: name, pinned: view.query });
  const target = methods[name].classSpecific ? targetOf(result, view.label).label : null;
  return { fields, target };
}

/** Everything about a map that a program needs: plain values for JSON; `map` is a list of rows. */
export function valuesOf(kept) {
  const { result, method, map } = kept;
  const { fields, target } = fieldsOf(kept);
  const { preset, patch_size, fit, dropped } = result.source;
  const rows = Array.from({ length: result.rows }, (_, row) =>
    [...map.slice(row * result.columns, (row + 1) * result.columns)].map((value) =>
      Number.isFinite(value) ? value : null,
    ),
  );
  return {
    preset,
    patch_size,
    fit,
    dropped,
    ...fields,
    label: target,
    title: method.label,
    unit: method.unit,
    class_specific: method.classSpecific,
    predictions: result.predictions.map(({ label, probability }) => ({ label, probability })),
    rows: result.rows,
    columns: result.columns,
    map: rows,
  };
}

/** The file that the code reads: an example of the package, or one that the visitor has. */
function fileOf({ source }) {
  if (source.example)
    return {
      lines: ["from vit_demo.web.example_photos import EXAMPLE_PHOTOS"],
      path: `EXAMPLE_PHOTOS["${source.example}"].path`,
    };
  return { lines: [], path: source.upload ? '"photo.jpg"  # your photo' : '"drawing.png"  # "Input picture" saves it' };
}

/** Python code that computes the map. */
export function pythonOf(kept) {
  const { result, name } = kept;
  const { fields, target } = fieldsOf(kept);
  const { preset, patch_size: size, fit, dropped } = result.source;
  const { lines, path } = fileOf(result);
  const place = (patch) => `(${Math.floor(patch / result.columns)}, ${patch % result.columns})`;
  const options = [`"${name}"`];
  if (target !== null) options.push(`label=${JSON.stringify(target)}`);
  if ("block" in fields) options.push(`layer=${fields.block}`);
  if ("head" in fields) options.push(`head=${fields.head < 0 ? "None" : fields.head}`);
  if (fields.query !== undefined && fields.query !== null) options.push(`query=${place(fields.query)}`);
  if (fields.direction === "to") options.push('direction="to"');
  const without = dropped.length ? `ex = ex.drop_patches([${dropped.map(place).join(", ")}])\n` : "";
  return `${["import vit_demo", ...lines].join("\n")}

image = ${path}
ex = vit_demo.explore(image, preset="${preset}", patch_size=${size}, fit="${fit}")
${without}values = ex.heatmap(${options.join(", ")})
ex.overlay(values).save("${name}.png")
`;
}

/** The shell command for the map, or null where the command line has no option for a choice. */
export function commandOf(kept) {
  const { result, name } = kept;
  const { fields, target } = fieldsOf(kept);
  const { preset, patch_size: size, fit, dropped, upload, example } = result.source;
  if (dropped.length || !isDefaultMap(result, fields)) return null;
  const file = upload || example ? "photo.jpg" : "drawing.png";
  const label =
    target === null ? "" : ` --label ${/^\w+$/.test(target) ? target : `'${target.replaceAll("'", "'\\''")}'`}`;
  const how = fit === "crop" ? "" : ` --fit ${fit}`;
  return `python -m vit_demo explain ${file} --preset ${preset} --patch-size ${size} --method ${name}${label}${how}`;
}
