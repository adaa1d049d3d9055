// What a test of a heatmap found, in words.

import { formatArea } from "./numbers.js";

/** [conclusion, measurements]: one sentence on what deletion and insertion mean, then both measurements. */
export function faithfulnessText(name, { deletion, insertion }) {
  const deletes = deletion.area < deletion.random_area;
  const inserts = insertion.area > insertion.random_area;
  return [
    conclusion(deletes, inserts),
    `Deletion: with its brightest patches removed first, *${name}* is lost ${deletes ? "faster" : "no faster"} than in ` +
      `random order: ${comparison(deletion, deletes, "lower")} Insertion: with its brightest patches inserted first, ` +
      `it returns ${inserts ? "sooner" : "no sooner"}: ${comparison(insertion, inserts, "higher")}`,
  ];
}

function conclusion(deletes, inserts) {
  if (deletes && inserts) return "*Yes, better than random*: the bright patches matter to the prediction.";
  if (deletes) return "*In part*: the prediction needs the bright patches, but they do not restore it on their own.";
  if (inserts) return "*In part*: the bright patches restore the prediction, but it also holds without them.";
  return "*No better than random*: do not read the bright patches as the reason for the prediction.";
}

/** Random orders differ, so a heatmap that does better than their mean may still do worse than some. */
function comparison({ area, random_area: randomArea, random, orders_beaten: ordersBeaten }, isBetter, goodSide) {
  const asGood = random.length - ordersBeaten;
  const caveat = isBetter && asGood ? `, though ${asGood} of the ${random.length} random orders did as well` : "";
  return `area ${formatArea(area)} against ${formatArea(randomArea)} (${goodSide} is better)${caveat}.`;
}

/** What it means how similar a heatmap stays when all weights are random. */
export function randomizationText(correlations) {
  const last = correlations.at(-1);
  const value = formatArea(last).replace("-", "−");
  const meaning =
    last > 0.5 ? "much of it depends on the image, not on what was learned" : "it depends on what the model learned";
  return `With all weights randomized, its rank correlation with this heatmap is ${value} (1: the same, 0: unrelated): ${meaning}.`;
}
