// @ts-check
// What a saved map is, in words, as data and as code that computes it again.

import { cellOf } from "../../../shared/geometry.js";
import { plain, translate } from "../../../shared/language.js";
import { againstOf, formatArea, probabilityOf, targetOf } from "../../format.js";
import { peakOf } from "../../heatmapColours.js";
import { BASELINES, mapFields, measureOf, testedClass } from "../../onDemand.js";

const SENT_PRECISION = "attention within 0.0001, other maps float32";

const FEW = 6; // silent heads, more of which would make the name of a file too long

const COUNTING =
  "block, head, query, dropped and silent count from 0, patches row by row; head -1 is the mean of all heads";

/** Heads as block.head, counted from `first`: from 1 as on the page and in links, or from 0 as by the command line. */
const headNames = (silent, first) =>
  silent.map((head) => head.map((i) => i + first).join(".")).join(first ? ", " : ",");

/** The caption of a saved picture: lines of text. */
export function captionOf(saved) {
  const { result, method, view, map } = saved;
  const { preset, patch_size: patchSize } = result.source;
  const [first] = result.predictions;
  const without = { count: result.dropped.length, all: result.numPatches };
  const silent = { count: result.silent.length, names: headNames(result.silent, 1) };
  const changes = [
    without.count && translate("with 1 of {all} squares rubbed out|with {count} of {all} squares rubbed out", without),
    silent.count && translate("without 1 head ({names})|without {count} heads ({names})", silent),
  ].filter(Boolean);
  const [name, subject] = [translate(method.label), plain(method.subject(result, view))];
  const prediction =
    first && translate("prediction {label}, {probability}", { label: first.label, probability: probabilityOf(first) });
  const about = [prediction, ...changes].filter(Boolean).join(" ");
  const model = translate("{preset}, patches of {patchSize} × {patchSize} pixels", { preset, patchSize });
  return [
    subject.includes(name) ? subject : `${name} · ${subject}`,
    about ? `${model} · ${about}` : model,
    translate("largest value {value} ({unit})", {
      value: plain(method.format(peakOf(map))),
      unit: translate(method.unit),
    }),
    ...measuredOf(saved).map(faithfulnessLine),
  ];
}

const faithfulnessLine = ({ baseline, deletion, insertion }) => {
  const side = ({ area, random_area: random }) =>
    translate("{area} (random order {random})", { area: formatArea(area), random: formatArea(random) });
  const words = Object.fromEntries(BASELINES)[baseline];
  return translate("faithfulness: deletion {deletion}, insertion {insertion}; masked squares become: {words}", {
    deletion: side(deletion),
    insertion: side(insertion),
    words: translate(words),
  });
};

/** What the visitor has measured of this map, for each replacement of removed patches. */
export function measuredOf(saved) {
  const { result, view, curves } = saved;
  if (!result.predictions.length) return [];
  const { index: label } = testedClass(result, saved.method, view.label);
  return curves.measured(result, { label, ...fieldsOf(saved).fields });
}

/** The fields of a map as they are in a request, and its classes by name. */
export function fieldsOf({ result, view, methods, name }) {
  const fields = mapFields(methods, result, { ...view, method: name, pinned: view.query });
  const target = methods[name].classSpecific ? targetOf(result, view.label).name : null;
  return { fields, target, against: againstOf(result, view)?.name };
}

/**
 * Everything about a map that a program needs: plain values for JSON; `map` is a list of rows. `exact` are the package's
 * values; null where there is no server to ask, and the map has the precision in which it was sent.
 */
export function valuesOf(saved, exact) {
  const { result, method } = saved;
  const map = exact ?? saved.map;
  const { fields, target, against } = fieldsOf(saved);
  const { preset, patch_size, fit, dropped, silent = [] } = result.source;
  const faithfulness = measuredOf(saved).map(({ baseline, deletion, insertion }) => {
    const random = { deletion: deletion.random_area, insertion: insertion.random_area };
    const measure = measureOf(result, { label: targetOf(result, fields.label).index, against: fields.against });
    return { removed: baseline, measure, deletion: deletion.area, insertion: insertion.area, random };
  });
  const rows = Array.from({ length: result.rows }, (_, row) =>
    [...map.slice(row * result.columns, (row + 1) * result.columns)].map((value) =>
      Number.isFinite(value) ? value : null,
    ),
  );
  return {
    picture: pictureOf(saved),
    preset,
    patch_size,
    fit,
    dropped,
    silent,
    ...fields,
    label: target,
    against,
    title: method.label,
    unit: method.unit,
    class_specific: method.classSpecific,
    ...(faithfulness.length ? { faithfulness } : {}),
    predictions: result.predictions.map(({ name: label, probability }) => ({ label, probability })),
    counting: COUNTING,
    rows: result.rows,
    columns: result.columns,
    precision: exact ? "float32" : SENT_PRECISION,
    map: rows,
  };
}

const pictureOf = ({ result: { source, predictions, pixelated } }) =>
  source.example ?? (pixelated ? `drawing-${predictions[0]?.label ?? ""}` : "photo");

const fileSafe = (text) => text.replaceAll(/[^\p{L}\p{N}.]+/gu, "-").replaceAll(/^-|-$/g, "");

/** The name of a saved map without its extension: picture, method, places (from 1, as on the page), silent heads, model. */
export function nameOf(saved) {
  const { result, name } = saved;
  const { preset, patch_size: size } = result.source;
  const options = optionsOf(saved).map(([part]) => part);
  const { length } = result.silent;
  const heads = length > FEW ? `${length}-heads` : headNames(result.silent, 1);
  const silent = length ? ["without", heads] : [];
  return [pictureOf(saved), name, ...options, ...silent, preset, String(size)].map(fileSafe).join("-");
}

/** What is chosen of a map, each as a part of a name, as an argument of Python, and of the command where it is no default. */
function optionsOf(saved) {
  const { result } = saved;
  const { fields, target, against } = fieldsOf(saved);
  const { block, head, query = null, direction } = fields;
  const [row, column] = cellOf(query, result);
  return [
    target !== null && [target, `label=${JSON.stringify(target)}`, `--label ${quoted(target)}`],
    against && [`not-${against}`, `against=${JSON.stringify(against)}`, `--against ${quoted(against)}`],
    "block" in fields && [`block${block + 1}`, `block=${block}`, block < result.numBlocks - 1 && `--block ${block}`],
    "head" in fields && (head < 0 ? ["mean", "head=None"] : [`head${head + 1}`, `head=${head}`, `--head ${head}`]),
    query !== null && [`row${row + 1}-col${column + 1}`, `query=(${row}, ${column})`, `--query ${row},${column}`],
    direction === "to" && ["to", 'direction="to"', "--direction to"],
  ].filter(Boolean);
}

const quoted = (text) => (/^\w+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The name of the file with the model's input; code and command read it. */
export const nameOfInput = (saved) =>
  `${fileSafe(pictureOf(saved))}-input-${fileSafe(saved.result.source.preset)}-${saved.result.source.patch_size}.png`;

/** How that file becomes the input again: as it is. */
const fitOf = ({ fit }) => (fit === "crop" ? "squash" : fit);

/** Python code that computes the map. */
export function pythonOf(saved) {
  const { result, name } = saved;
  const { fields } = fieldsOf(saved);
  const { preset, patch_size: size, dropped, silent = [], words } = result.source;
  const place = (patch) => `(${cellOf(patch, result).join(", ")})`;
  const options = [`"${name}"`, ...optionsOf(saved).map(([, argument]) => argument)];
  const counted = ["block", "head", "query"].some((each) => (fields[each] ?? -1) !== -1) ? "  # counted from 0" : "";
  const without =
    (dropped.length ? `ex = ex.drop_patches([${dropped.map(place).join(", ")}])\n` : "") +
    (silent.length ? `ex = ex.without(heads=${JSON.stringify(silent)})\n` : "");
  const fit = result.pixelated ? "" : `, fit="${fitOf(result.source)}"`;
  const labels = words ? `, labels=${JSON.stringify(words)}` : "";
  return `import vit_demo  # after pip install .

image = "${nameOfInput(saved)}"  # "Save, share, code": "Input picture"
ex = vit_demo.explore(image, model="${preset}", patch_size=${size}${fit}${labels})
${without}values = ex.heatmap(${options.join(", ")})${counted}
ex.overlay(values, method="${name}").save("${name}.png")
`;
}

/** The shell command for the map, or null if patches were dropped, which the command line cannot do. */
export function commandOf(saved) {
  const { result, name } = saved;
  const { preset, patch_size: size, dropped, silent = [], words } = result.source;
  if (dropped.length) return null;
  const options = [
    `python -m vit_demo explain ${nameOfInput(saved)} --preset ${preset} --patch-size ${size} --method ${name}`,
    !result.pixelated && `--fit ${fitOf(result.source)}`,
    silent.length > 0 && `--without-heads ${headNames(silent, 0)}`,
    words && `--labels ${quoted(words.join())}`,
    ...optionsOf(saved).map(([, , option]) => option),
  ];
  return options.filter(Boolean).join(" ");
}
