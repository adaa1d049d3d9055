// What a test of a heatmap found, in words.

import { translate } from "../shared/language.js";
import { formatArea } from "./numbers.js";

/** [conclusion, measurements]: one sentence on what deletion and insertion mean, then both measurements. */
export function faithfulnessText(name, { deletion, insertion }) {
  const deletes = deletion.area < deletion.random_area;
  const inserts = insertion.area > insertion.random_area;
  return [
    conclusion(deletes, inserts),
    [
      deletes
        ? translate(
            "Deletion: with its strongest patches removed first, *{name}* is lost faster than in random order:",
            { name },
          )
        : translate(
            "Deletion: with its strongest patches removed first, *{name}* is lost no faster than in random order:",
            { name },
          ),
      comparison(deletion, deletes, translate("lower is better")),
      inserts
        ? translate("Insertion: with its strongest patches inserted first, it returns sooner:")
        : translate("Insertion: with its strongest patches inserted first, it returns no sooner:"),
      comparison(insertion, inserts, translate("higher is better")),
    ].join(" "),
  ];
}

function conclusion(deletes, inserts) {
  if (deletes && inserts)
    return translate("*Yes, better than random*: its strongest patches matter to the prediction.");
  if (deletes) {
    return translate("*In part*: the prediction needs its strongest patches, but they do not restore it on their own.");
  }
  if (inserts) {
    return translate("*In part*: its strongest patches restore the prediction, but it also holds without them.");
  }
  return translate("*No better than random*: do not read its strongest patches as the reason for the prediction.");
}

/** Random orders differ, so a heatmap that does better than their mean may still do worse than some. */
function comparison({ area, random_area: randomArea, random, orders_beaten: ordersBeaten }, isBetter, goodSide) {
  const asGood = random.length - ordersBeaten;
  const values = {
    area: formatArea(area),
    random: formatArea(randomArea),
    goodSide,
    count: asGood,
    all: random.length,
  };
  return isBetter && asGood
    ? translate(
        "area {area} against {random} ({goodSide}), though {count} of the {all} random orders did as well.|area {area} against {random} ({goodSide}), though {count} of the {all} random orders did as well.",
        values,
      )
    : translate("area {area} against {random} ({goodSide}).", values);
}

/**
 * How similar a heatmap stays when all weights are random, and no more than that: `correlations` as the weights are
 * randomized, for a map of `numPatches`.
 */
export function randomizationText(correlations, numPatches) {
  const last = correlations.at(-1);
  return translate(
    "With all weights randomized, the map’s rank correlation with this heatmap is {value} (1: the same order of patches, 0: unrelated): {similarity}.",
    { value: formatArea(last), similarity: similarity(last, numPatches) },
  );
}

/** Two unrelated maps of n patches correlate by less than 2 / √(n - 1) in 95 % of all cases. */
function similarity(correlation, numPatches) {
  const chance = 2 / Math.sqrt(Math.max(1, numPatches - 1));
  if (Math.abs(correlation) <= chance) {
    return translate("no more than expected by chance with {patches} patches", { patches: numPatches });
  }
  if (correlation < 0) return translate("the order is partly reversed");
  if (correlation > 0.7) return translate("most of the order does not depend on the learned weights");
  return translate("part of the order does not depend on the learned weights");
}
