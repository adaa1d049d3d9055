// Whether a heatmap is faithful: deletion, insertion and randomization of the heatmap on the stage, on request.

import { constants } from "../../../shared/constants.js";
import { segmentChoice, setProgress, setText } from "../../../shared/dom.js";
import { createTooltip, setExplainedText } from "../../../shared/glossary/glossary.js";
import { english, translate } from "../../../shared/language.js";
import { createTasks } from "../../../shared/tasks.js";
import { className, formatArea, formatNumber, percent } from "../../format.js";
import { BASELINES, compare, isDefaultMap, mapFields, measureOf, PROBABILITY, testedClass } from "../../onDemand.js";
import { asPercentage, createMethodTable, faithfulnessText, lineChart, randomizationText } from "./findings.js";

/** What the test does, by what it measures of the class. */
const WHAT_IT_DOES = {
  probability: english(
    "A heatmap is faithful if its strongest patches matter most to *{name}*. So they are removed first (deletion) or inserted first (insertion), and the probability of *{name}* is compared with random orders.",
  ),
  logit: english(
    "A heatmap is faithful if its strongest patches matter most to *{name}*. So they are removed first (deletion) or inserted first (insertion), and the score of *{name}*, its logit, is compared with random orders: its probability is below {least}, too small to fall.",
  ),
  score: english(
    "A heatmap is faithful if its strongest patches matter most to the prediction. So they are removed first (deletion) or inserted first (insertion), and the score of *{name}* is compared with random orders.",
  ),
  "difference of logits": english(
    "A heatmap is faithful if its strongest patches matter most to *{name}*. So they are removed first (deletion) or inserted first (insertion), and what speaks for *{name}*, the difference of both scores, is compared with random orders.",
  ),
};

/** What a removed patch becomes. */
const REPLACEMENTS = {
  mean: english(
    "A removed patch is replaced by the colour that normalization maps to 0: almost blank paper for digits, plain grey for most models of photos.",
  ),
  blur: english("A removed patch is replaced by the same patch of a blurred picture."),
  black: english("A removed patch is replaced by pixels of value 0: black in a photo, blank paper for digits."),
};

export const order = 30;

export const html = `
  <section class="card faithfulness">
    <div class="start">
      <div>
        <h2>Is this heatmap faithful?</h2>
        <p class="status"></p>
      </div>
      <div class="baseline"><span class="name">Removed patches become</span><div></div></div>
      <button type="button" class="quiet test">Test this heatmap</button>
      <div class="progress" aria-hidden="true"><i></i></div>
    </div>
    <div class="findings" hidden>
      <p class="subject"></p>
      <p class="conclusion" aria-live="polite"></p>
      <p class="measurements"></p>
      <div class="charts"></div>
      <p class="randomization"></p>
    </div>
    <div class="every">
      <button type="button" class="quiet" disabled>Compare all methods</button>
      <p class="table-status" aria-live="polite"></p>
      <div class="progress" aria-hidden="true"><i></i></div>
      <div class="scroller"><table hidden></table></div>
    </div>
  </section>`;

export function create(card, { request, methods, curves }) {
  const find = (selector) => card.querySelector(selector);
  const button = find(".test");
  const tooltip = createTooltip(card);
  const table = createMethodTable(find(".every"), methods, curves);
  const tests = createTasks(() => current, update);
  let current = null; // {result, fields, subject, name, measure}: the heatmap that can be tested now, its class, and what is measured of that
  let drawn = null; // what the charts show: {test, version}
  let baseline = BASELINES[0][0];

  const bar = segmentChoice(find(".baseline div"), english("Removed patches become"), BASELINES, (chosen) => {
    baseline = chosen;
    if (current) setCurrent(current);
  });
  bar.set(baseline);

  function run() {
    if (tests.of(current)?.running) return tests.cancel(current);
    const { result, fields } = current;
    tests.start(current, { version: 0, found: null, correlations: null, baseline: fields.baseline }, steps);

    /** The heatmap's own curves, then each random order, then randomization; resolves to the last reply. */
    async function steps({ put, isCurrent, onProgress }) {
      const own = await curves.ofMap(result, fields, { isCurrent, onProgress });
      if (!own?.result) return own;
      const draw = (randoms) =>
        put({
          found: compare(own.result, randoms),
          version: randoms.length,
          progress: randoms.length / constants.numOrders,
        });
      draw([]);
      const others = await curves.ofRandomOrders(result, fields, { isCurrent, onOrder: draw });
      if (!others?.randoms || methods[fields.method].manyPasses || !isDefaultMap(result, fields)) return others;
      put({ progress: null });
      const last = await request(
        { ...fields, kind: "randomization", source: result.source },
        { isCurrent, onProgress },
      );
      put({ correlations: last?.result?.correlations ?? null, version: constants.numOrders + 1 });
      return last;
    }
  }

  function update() {
    const test = tests.of(current);
    const isDone = test?.found && !test.running && !test.error;
    button.disabled = !current || Boolean(isDone);
    setText(button, test?.running ? english("Cancel") : isDone ? english("Tested") : english("Test this heatmap"));
    setProgress(find(".start .progress"), Boolean(test?.running), test?.progress);
    if (drawn && (drawn.test !== test || test.isForgotten)) drawFindings(null); // a verdict is about its own heatmap
    if (test?.found && (drawn?.test !== test || drawn.version !== test.version)) {
      drawFindings({ ...current, test, version: test.version });
    }
    const values = { name: current?.name ?? "…", least: percent(100 * constants.improbable) };
    find(".status").role = test?.error ? "status" : null; // what the test does is read like any text
    setExplainedText(
      find(".status"),
      test?.error || translate(WHAT_IT_DOES[current?.measure ?? PROBABILITY], values),
      tooltip,
    );
  }

  function drawFindings(next) {
    drawn = next;
    find(".findings").hidden = !next;
    if (!next) return;
    const { subject, name, measure } = next;
    const { found, correlations, running } = next.test;
    const isCompared = found.deletion.random.length === constants.numOrders;
    const [conclusion, measurements] = isCompared ? faithfulnessText(name, found) : ["", ""];
    const testedOn = translate("tested on *{name}* ({measure})", { name, measure: translate(measure) });
    setText(find(".findings .subject"), `${subject} · ${testedOn}`);
    setText(find(".conclusion"), conclusion || (running ? english("Random orders are being computed.") : ""));
    if (conclusion && document.activeElement === button) find(".conclusion").scrollIntoView({ block: "nearest" });
    setExplainedText(
      find(".measurements"),
      `${measurements} ${translate(REPLACEMENTS[next.test.baseline])}`.trim(),
      tooltip,
    );
    const chart = (title, { curve, random, area, random_area: randomArea }, ends) => {
      const legend = [
        translate("this heatmap {area}", { area: formatArea(area) }),
        ...(random.length ? [randomWords(random.length, formatArea(randomArea))] : []),
      ];
      return lineChart({ title, places: found.fractions, curve, randoms: random, ends, legend, format });
    };
    const format = measure === PROBABILITY ? asPercentage : formatNumber;
    const charts = [
      chart(translate("{name}: patches removed", { name }), found.deletion, [
        translate("all patches"),
        translate("none left"),
      ]),
      chart(translate("{name}: patches inserted", { name }), found.insertion, [
        translate("no patch"),
        translate("all patches"),
      ]),
    ];
    if (correlations) charts.push(randomizationChart(correlations));
    find(".charts").replaceChildren(...charts);
    const { numPatches, dropped } = next.result;
    const text = correlations ? randomizationText(correlations, numPatches - dropped.length) : "";
    setExplainedText(find(".randomization"), text, tooltip);
  }

  /** Without a result there is nothing to test; with one, the next frame says what. */
  function show(result) {
    current = null;
    card.hidden = Boolean(result && !result.predictions.length);
    if (!result) table.show(null);
    update();
  }

  function draw({ result, choices, chosenMethod, pinnedView }) {
    if (!result.predictions.length) return;
    const { index, label } = testedClass(result, chosenMethod, choices.label);
    const fields = { label: index, ...mapFields(methods, result, choices) };
    const name = chosenMethod.classSpecific ? className(result, pinnedView) : label;
    const measure = measureOf(result, fields);
    setCurrent({ result, fields, subject: chosenMethod.subject(result, pinnedView), name, measure });
  }

  function setCurrent(heatmap) {
    current = { ...heatmap, fields: { ...heatmap.fields, baseline } };
    const { label, against } = current.fields;
    table.show({ ...current, label, against, baseline });
    update();
  }

  button.addEventListener("click", run);
  return { show, draw };
}

/** The mean area of the random orders, and how many are still to come. */
function randomWords(count, area) {
  const all = constants.numOrders;
  return count < all
    ? translate("random, {count} of {all} so far: {area}", { count, all, area })
    : translate("random {area}", { area });
}

function randomizationChart(correlations) {
  return lineChart({
    title: translate("Similarity as the weights are randomized"),
    places: correlations.map((_, i) => i / (correlations.length - 1)),
    curve: correlations,
    randoms: [],
    ends: [translate("trained weights"), translate("all weights random")],
    legend: [translate("rank correlation with this heatmap")],
    format: formatArea,
  });
}
