// What a test found, in words.

/** One sentence on what the test means, then the two measurements. */
function verdictWords(name, { deletion, insertion }) {
  const against = (side) => `${area(side.area)} against ${area(side.random_area)}`;
  const out = deletion.better
    ? `Removing its brightest patches first makes the model forget *${name}* faster than removing patches at random`
    : `Removing its brightest patches first makes the model forget *${name}* no faster than removing patches at random`;
  const back = insertion.better
    ? "Putting them back first brings it back sooner"
    : "Putting them back first brings it back no sooner";
  return [
    summaryWords(deletion.better, insertion.better),
    `${out}: ${against(deletion)} (lower is better). ${back}: ${against(insertion)} (higher is better).`,
  ];
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
  const lasts = last > 0.5;
  return lasts
    ? `With all weights shuffled it stays ${much} alike (1 is the same): much of it shows the picture, not what was learned.`
    : `With all weights shuffled it is only ${much} alike (1 is the same): it shows what was learned.`;
}
