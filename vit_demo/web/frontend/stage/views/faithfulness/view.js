// Whether a heatmap is faithful: deletion, insertion and randomization of the heatmap on the stage, on request.

import { constants } from "../../../shared/constants.js";
import { segmentChoice, setProgress, setText } from "../../../shared/dom.js";
import { english, translate } from "../../../shared/language.js";
import { formatArea } from "../../format.js";
import { createTooltip, setExplainedText } from "../../glossary.js";
import { BASELINES, compare, isDefaultMap, mapFields, testedClass } from "../../onDemand.js";
import { createMethodTable, faithfulnessText, lineChart, randomizationText } from "./findings.js";

const whatItDoes = (name) =>
  translate(
    "A heatmap is faithful if its strongest patches matter most to the prediction. So they are removed first (deletion) or inserted first (insertion), and the probability of *{name}* is compared with random orders.",
    { name },
  );

/** What a removed patch becomes. */
const REPLACEMENTS = {
  mean: english(
    "A removed patch is replaced by the colour that normalization maps to 0: nearly black for digits, plain grey for most models of photos.",
  ),
  blur: english("A removed patch is replaced by the same patch of a blurred picture."),
  black: english("A removed patch is replaced by black."),
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
  const tests = new WeakMap(); // result -> Map from the map's fields to its test
  let current = null; // {result, fields, subject, className}: the heatmap that can be tested now
  let drawn = null; // what the charts show: {result, test, version}
  let baseline = BASELINES[0][0];

  const group = `baseline-${Math.random().toString(36).slice(2)}`;
  const bar = segmentChoice(find(".baseline div"), english("Removed patches become"), group, BASELINES, (chosen) => {
    baseline = chosen;
    if (current) setCurrent(current);
  });
  bar.set(baseline);

  const testsOf = (result) => tests.get(result) ?? tests.set(result, new Map()).get(result);
  const keyOf = ({ fields }) => JSON.stringify(fields);
  const testOf = (heatmap) => heatmap && testsOf(heatmap.result).get(keyOf(heatmap));

  async function run() {
    const heatmap = current;
    if (testOf(heatmap)?.running) return cancel(heatmap);
    const { result, fields } = heatmap;
    const test = { running: true, progress: null, version: 0, found: null, correlations: null };
    Object.assign(test, { error: "", baseline: fields.baseline });
    testsOf(result).set(keyOf(heatmap), test);
    const put = (part) => {
      Object.assign(test, part);
      update();
    };
    const isCurrent = () => current?.result === result && testOf(current) === test;
    const onProgress = (progress) => put({ progress });
    update();
    const reply = await steps();
    if (!reply) forget(heatmap, test); // the visitor went elsewhere
    put({ running: false, error: reply?.error ?? "" });

    /** The heatmap's own curves, then each random order, then randomization; resolves to the last reply. */
    async function steps() {
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

  /** What is computed stops when nobody waits for it. */
  function cancel(heatmap) {
    forget(heatmap, testOf(heatmap));
    update();
  }

  /** Forgets a test that did not end, unless another one of the heatmap has begun since. */
  function forget(heatmap, test) {
    if (testOf(heatmap) === test) testsOf(heatmap.result).delete(keyOf(heatmap));
    if (drawn?.test === test) drawFindings(null);
  }

  function update() {
    const test = testOf(current);
    const isDone = test?.found && !test.running && !test.error;
    button.disabled = !current || Boolean(isDone);
    setText(button, test?.running ? english("Cancel") : isDone ? english("Tested") : english("Test this heatmap"));
    setProgress(find(".start .progress"), Boolean(test?.running), test?.progress);
    if (drawn && drawn.result !== current?.result) drawFindings(null);
    if (test?.found && (drawn?.test !== test || drawn.version !== test.version)) {
      drawFindings({ ...current, test, version: test.version });
    }
    card.classList.toggle("stale", Boolean(drawn && drawn.test !== test));
    find(".status").role = test?.error ? "status" : null; // what the test does is read like any text
    setExplainedText(find(".status"), test?.error || whatItDoes(current?.className ?? "…"), tooltip);
  }

  function drawFindings(next) {
    drawn = next;
    find(".findings").hidden = !next;
    if (!next) return;
    const { subject, className } = next;
    const { found, correlations, running } = next.test;
    const isCompared = found.deletion.random.length === constants.numOrders;
    const [conclusion, measurements] = isCompared ? faithfulnessText(className, found) : ["", ""];
    setText(find(".findings .subject"), `${subject} · ${translate("tested on *{name}*", { name: className })}`);
    setText(find(".conclusion"), conclusion || (running ? english("Random orders are being computed.") : ""));
    setExplainedText(
      find(".measurements"),
      `${measurements} ${translate(REPLACEMENTS[next.test.baseline])}`.trim(),
      tooltip,
    );
    const chart = (title, { curve, random, area, random_area: randomArea }, ends) => {
      const legend = [
        translate("this heatmap {area}", { area: formatArea(area) }),
        ...(random.length ? [translate("random {area}", { area: formatArea(randomArea) })] : []),
      ];
      return lineChart({ title, places: found.fractions, curve, randoms: random, ends, legend });
    };
    const charts = [
      chart(translate("{name}: patches removed", { name: className }), found.deletion, [
        translate("all patches"),
        translate("none left"),
      ]),
      chart(translate("{name}: patches inserted", { name: className }), found.insertion, [
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
    const { index, label: className } = testedClass(result, chosenMethod, choices.label);
    const fields = { label: index, ...mapFields(methods, result, choices) };
    setCurrent({ result, fields, subject: chosenMethod.subject(result, pinnedView), className });
  }

  function setCurrent(heatmap) {
    current = { ...heatmap, fields: { ...heatmap.fields, baseline } };
    table.show({ result: current.result, label: current.fields.label, className: current.className, baseline });
    update();
  }

  button.addEventListener("click", run);
  return { show, draw };
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
