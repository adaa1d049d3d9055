// What a test found, in words.

/** One sentence on what the test means, then the two measurements. */
function verdictWords(name, { deletion, insertion }) {
  const deletes = deletion.area < deletion.random_area;
  const inserts = insertion.area > insertion.random_area;
  const out = `Removing its brightest patches first makes the model forget *${name}* ${deletes ? "faster" : "no faster"} ` +
    "than removing patches at random";
  const back = `Putting them back first brings it back ${inserts ? "sooner" : "no sooner"}`;
  return [
    summaryWords(deletes, inserts),
    `${out}: ${numberWords(deletion, deletes, "lower")} ${back}: ${numberWords(insertion, inserts, "higher")}`,
  ];
}

/** Random orders differ, so a map that does better than their mean may still lose to some. */
function numberWords({ area: ours, random_area: chance, random, beaten }, better, good) {
  const lost = random.length - beaten;
  const though = better && lost ? `, though ${lost} of the ${random.length} random orders did as well` : "";
  return `${area(ours)} against ${area(chance)} (${good} is better)${though}.`;
}

function summaryWords(deletes, inserts) {
  if (deletes && inserts) return "*Yes, better than chance*: its bright patches matter to the answer.";
  if (deletes) return "*In part*: its bright patches are needed for the answer, but do not bring it back alone.";
  if (inserts) return "*In part*: its bright patches bring the answer back, but it can do without them.";
  return "*No better than chance*: do not read its bright patches as the reason for the answer.";
}

/** What it means how alike a map stays when the whole network has forgotten. */
function forgettingWords(alike) {
  const last = alike.at(-1);
  const much = `${last < 0 ? "−" : ""}${Math.abs(last).toFixed(2)}`;
  const meaning = last > 0.5 ? "much of it shows the picture, not what was learned" : "it shows what was learned";
  return `With all weights shuffled its likeness to this map is ${much} (1 is the same, 0 is chance): ${meaning}.`;
}
