// What a test of a heatmap found, in words.

import { formatArea } from "./numbers.js";

/** [conclusion, measurements]: one sentence on what deletion and insertion mean, then both measurements. */
export function faithfulnessText(name, { deletion, insertion }) {
  const deletes = deletion.area < deletion.random_area;
  const inserts = insertion.area > insertion.random_area;
  return [
    conclusion(deletes, inserts),
    `Deletion: with its strongest patches removed first, *${name}* is lost ${deletes ? "faster" : "no faster"} than in ` +
      `random order: ${comparison(deletion, deletes, "lower")} Insertion: with its strongest patches inserted first, ` +
      `it returns ${inserts ? "sooner" : "no sooner"}: ${comparison(insertion, inserts, "higher")}`,
  ];
}

function conclusion(deletes, inserts) {
  if (deletes && inserts) return "*Yes, better than random*: its strongest patches matter to the prediction.";
  if (deletes) return "*In part*: the prediction needs its strongest patches, but they do not restore it on their own.";
  if (inserts) return "*In part*: its strongest patches restore the prediction, but it also holds without them.";
  return "*No better than random*: do not read its strongest patches as the reason for the prediction.";
}

/** Random orders differ, so a heatmap that does better than their mean may still do worse than some. */
function comparison({ area, random_area: randomArea, random, orders_beaten: ordersBeaten }, isBetter, goodSide) {
  const asGood = random.length - ordersBeaten;
  const caveat = isBetter && asGood ? `, though ${asGood} of the ${random.length} random orders did as well` : "";
  return `area ${formatArea(area)} against ${formatArea(randomArea)} (${goodSide} is better)${caveat}.`;
}

/**
 * How similar a heatmap stays when all weights are random, and no more than that: `correlations` as the weights are
 * randomized, for a map of `numPatches`.
 */
export function randomizationText(correlations, numPatches) {
  const last = correlations.at(-1);
  const value = formatArea(last).replace("-", "−");
  return `With all weights randomized, its rank correlation with this heatmap is ${value} (1: the same order of patches, 0: unrelated): ${similarity(last, numPatches)}.`;
}

/** Two unrelated maps of n patches correlate by less than 2 / √(n - 1) in 95 % of all cases. */
function similarity(correlation, numPatches) {
  const chance = 2 / Math.sqrt(Math.max(1, numPatches - 1));
  if (Math.abs(correlation) <= chance) return `no more than chance gives with ${numPatches} patches`;
  if (correlation < 0) return "the order is partly reversed";
  if (correlation > 0.7) return "most of the order needs nothing that was learned";
  return "part of the order needs nothing that was learned";
}
