// The sets of patches that are enough for a class, and that it needs: how they are requested, and in words.

import { cellOf } from "../../../shared/geometry.js";
import { translate, translateName } from "../../../shared/language.js";
import { formatProbability } from "../../format.js";

/** What is looked for, one after the other: what comes after the first set that is enough has no patch of it. */
const WANTED = ["enough", "needed", "enough", "enough"];

/**
 * Requests the sets. `send(fields)` resolves to a reply, `put(part)` gets {sets, isDone}; resolves to the last reply. A set
 * is {wanted, isOther, patches, probability, prediction, is_minimal, passes}; its patches are null if there is none.
 */
export async function findSets(send, put) {
  const sets = [];
  for (const wanted of WANTED) {
    const without = sets.filter((set) => set.wanted === "enough").flatMap(({ patches }) => patches);
    const reply = await send(wanted === "enough" ? { wanted, without } : { wanted });
    if (!reply?.result) return reply;
    sets.push({ ...reply.result, wanted });
    const isDone = sets.length === WANTED.length || (wanted === "enough" && !reply.result.patches);
    put({ sets: smallestFirst(sets), isDone, progress: null });
    if (isDone) return reply;
  }
}

/** The smallest set that is enough, those that are needed, and the other sets that are enough. */
function smallestFirst(sets) {
  const size = ({ patches }) => patches?.length ?? Infinity;
  const enough = sets.filter(({ wanted }) => wanted === "enough").sort((one, other) => size(one) - size(other));
  enough.forEach((set, i) => {
    set.isOther = i > 0;
  });
  return [enough[0], ...sets.filter((set) => !enough.includes(set)), ...enough.slice(1)];
}

/** What a set shows of a class, which is one of the result's predictions; *stars* make words bold. */
export function captionOf(set, result, target) {
  const { patches, prediction, passes } = set;
  const canChange = target.scores !== "sigmoid" && result.predictions.length > 1;
  const isPredicted = canChange && target === result.predictions[0];
  const values = {
    count: patches?.length,
    all: result.numPatches - result.dropped.length,
    name: target.label,
    probability: patches && formatProbability(set.probability, target.scores),
    whole: formatProbability(target.probability, target.scores),
    prediction: prediction && translateName(prediction),
  };
  const text = set.wanted === "enough" ? enoughText(set, values) : neededText(set, values, isPredicted, target.scores);
  const isCertain = !patches || set.is_minimal;
  return isCertain ? text : `${text} ${translate("The search ended after {passes} tries: fewer may do.", { passes })}`;
}

function enoughText({ patches, isOther }, values) {
  if (!patches) return translate("*There is no other way*: the patches that are left are not enough.");
  return isOther
    ? translate(
        "*Another way to see it*: 1 other patch, {probability} for {name}.|*Another way to see it*: {count} other patches, {probability} for {name}.",
        values,
      )
    : translate(
        "*1 of {all} patches is enough*: {probability} for {name}, {whole} with all patches.|*{count} of {all} patches are enough*, the fewest found: {probability} for {name}, {whole} with all patches.",
        values,
      );
}

function neededText({ patches }, values, isPredicted, scores) {
  if (isPredicted) {
    return patches
      ? translate(
          "*Without this patch* the model says {prediction}: {probability} is left for {name}.|*Without these {count}* the model says {prediction}: {probability} is left for {name}.",
          values,
        )
      : translate("*No patch is needed*: {name} stays the prediction down to a single patch.", values);
  }
  return patches
    ? translate(
        "*Without this patch* less than half is left: {probability} for {name}.|*Without these {count}* less than half is left: {probability} for {name}.",
        values,
      )
    : scores === "none"
      ? translate("*No patch is needed*: {name} keeps half of its score down to a single patch.", values)
      : translate("*No patch is needed*: {name} keeps half of its probability down to a single patch.", values);
}

/** Which patches are shown, or left out, for screen readers. */
export function spokenPatches({ wanted, patches }, grid) {
  const rows = new Map();
  for (const patch of [...patches].sort((one, other) => one - other)) {
    const [row, column] = cellOf(patch, grid).map((index) => index + 1);
    rows.set(row, [...(rows.get(row) ?? []), column]);
  }
  const line = ([row, places]) =>
    places.length === 1
      ? translate("row {row}, column {column}", { row, column: places[0] })
      : translate("row {row}, columns {columns}", { row, columns: places.join(", ") });
  const list = [...rows].map(line).join("; ");
  return wanted === "enough"
    ? translate("Nothing but these patches. {list}", { list })
    : translate("Everything but these patches. {list}", { list });
}
