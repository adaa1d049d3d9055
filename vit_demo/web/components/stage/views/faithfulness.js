// Whether a heatmap is faithful: deletion, insertion and randomization of the heatmap on the stage, on request.

import { setProgress, setText } from "../../shared/dom.js";
import { lineChart } from "../charts.js";
import { faithfulnessText, randomizationText } from "../conclusions.js";
import { isDefaultMap, mapFields } from "../methods.js";
import { formatArea } from "../numbers.js";
import { targetOf } from "../text.js";

const WHAT_IT_DOES =
  "Remove its brightest patches first, or insert them first, and compare the prediction with random orders.";
const BASELINE =
  "A removed patch is replaced by the colour that normalization maps to 0: nearly black for digits, plain grey " +
  "for most models of photos.";

export const order = 30;

export const html = `
  <section class="card faithfulness">
    <div class="start">
      <div>
        <h2>Is this heatmap faithful?</h2>
        <p class="status" aria-live="polite"></p>
      </div>
      <button type="button" class="quiet">Test this heatmap</button>
      <div class="progress" aria-hidden="true"><i></i></div>
    </div>
    <div class="findings" hidden>
      <p class="subject"></p>
      <p class="conclusion" aria-live="polite"></p>
      <p class="measurements"></p>
      <div class="charts"></div>
      <p class="randomization"></p>
    </div>
  </section>`;

export function create(card, { request, methods }) {
  const find = (selector) => card.querySelector(selector);
  const button = find("button");
  const tests = new WeakMap(); // result -> Map from the map's fields to its test
  let current = null; // {result, fields, subject, className}: the heatmap that can be tested now
  let drawn = null; // {result, test, correlations}: what the charts show

  const testsOf = (result) => tests.get(result) ?? tests.set(result, new Map()).get(result);
  const keyOf = ({ fields }) => JSON.stringify(fields);

  async function run() {
    const heatmap = current;
    const { result, fields, subject, className } = heatmap;
    const test = { running: true, progress: null, subject, className, result: null, correlations: null, error: "" };
    testsOf(result).set(keyOf(heatmap), test);
    update();
    const options = {
      isCurrent: () => current?.result === result && testsOf(result).get(keyOf(current)) === test,
      onProgress(progress) {
        test.progress = progress;
        update();
      },
    };
    const send = (kind) => request({ ...fields, kind, source: result.source }, options);
    let reply = await send("faithfulness");
    if (reply?.result) {
      test.result = reply.result;
      if (!methods[fields.method].manyPasses && isDefaultMap(result, fields)) {
        update();
        test.progress = null;
        reply = await send("randomization");
        test.correlations = reply?.result?.correlations ?? null;
      }
    }
    test.running = false;
    test.error = reply?.error ?? "";
    if (!test.result && !test.error) testsOf(result).delete(keyOf(heatmap)); // the visitor went elsewhere
    update();
  }

  function update() {
    const test = current && testsOf(current.result).get(keyOf(current));
    const isDone = test?.result && !test.error;
    button.disabled = !current || Boolean(test?.running || isDone);
    button.textContent = test?.running ? "Testing …" : isDone ? "Tested" : "Test this heatmap";
    setProgress(find(".progress"), Boolean(test?.running), test?.progress);
    if (drawn && drawn.result !== current?.result) drawFindings(null);
    if (test?.result && (drawn?.test !== test || drawn.correlations !== test.correlations)) {
      drawFindings({ result: current.result, test, correlations: test.correlations });
    }
    card.classList.toggle("stale", Boolean(drawn && drawn.test !== test));
    setText(find(".status"), test?.error || WHAT_IT_DOES);
  }

  function drawFindings(next) {
    drawn = next;
    find(".findings").hidden = !next;
    if (!next) return;
    const { result, correlations, subject, className } = next.test;
    const [conclusion, measurements] = faithfulnessText(className, result);
    setText(find(".subject"), subject);
    setText(find(".conclusion"), conclusion);
    setText(find(".measurements"), `${measurements} ${BASELINE}`);
    const chart = (title, { curve, random, area, random_area: randomArea }, ends) => {
      const legend = [`this heatmap ${formatArea(area)}`, `random ${formatArea(randomArea)}`];
      return lineChart({ title, places: result.fractions, curve, randoms: random, ends, legend });
    };
    const charts = [
      chart(`${className}: patches removed`, result.deletion, ["all patches", "none left"]),
      chart(`${className}: patches inserted`, result.insertion, ["no patch", "all patches"]),
    ];
    if (correlations) charts.push(randomizationChart(correlations));
    find(".charts").replaceChildren(...charts);
    setText(find(".randomization"), correlations ? randomizationText(correlations) : "");
  }

  /** Without a result there is nothing to test; with one, the next frame says what. */
  function show(result) {
    current = null;
    card.hidden = Boolean(result && !result.predictions.length);
    update();
  }

  function draw({ result, choices, chosenMethod, pinnedView }) {
    if (!result.predictions.length) return;
    const { index, label: className } = targetOf(result, choices.label);
    const fields = { label: index, ...mapFields(methods, result, choices) };
    current = { result, fields, subject: chosenMethod.subject(result, pinnedView), className };
    update();
  }

  button.addEventListener("click", run);
  return { show, draw };
}

function randomizationChart(correlations) {
  return lineChart({
    title: "Similarity as the weights are randomized",
    places: correlations.map((_, i) => i / (correlations.length - 1)),
    curve: correlations,
    randoms: [],
    ends: ["trained weights", "all weights random"],
    legend: ["rank correlation with this heatmap"],
  });
}
