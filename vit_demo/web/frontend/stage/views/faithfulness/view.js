// @ts-check
// Whether the colours can be trusted: deletion, insertion and randomization of the heatmap on the stage, on request. What was
// found with each mask stands side by side.

import { constants } from "../../../shared/constants.js";
import { isNew, make, makeButton, put, setProgress, setText } from "../../../shared/dom.js";
import { createTooltip, setExplainedText } from "../../../shared/glossary/glossary.js";
import { english, translate } from "../../../shared/language.js";
import { NOT_LOADED } from "../../../shared/requests.js";
import { createTasks } from "../../../shared/tasks.js";
import { showWithout } from "../../caption.js";
import { againstOf, className, formatArea, formatNumber, percent, targetOf } from "../../format.js";
import { BASELINES, compare, isDefaultMap, mapFields, measureOf, PROBABILITY, testedClass } from "../../onDemand.js";
import { fitCanvas, paintResult } from "../../picture.js";
import { FIRST_SECTION } from "../../sections.js";
import { asPercentage, faithfulnessText, lineChart, randomizationText } from "./findings.js";

const WHAT_IT_DOES = english(
  "If the colours are right, the strongest squares matter most to *{name}*. So the test masks them first (deletion), and then puts them first into an empty picture (insertion), and compares {what} with that of random orders.",
);

/** What is compared. */
const COMPARED = {
  probability: english("the probability of *{name}*"),
  logit: english("the score of *{name}*, because its probability is below {least},"),
  score: english("the score of *{name}*"),
  "difference of logits": english("the difference of both scores"),
};

export const html = `
  <section class="chapter faithfulness" aria-label="Can the colours be trusted?">
    <h2>Can the colours be trusted?</h2>
    <div class="beside">
      <figure class="mirror"><div><canvas role="img"></canvas></div><figcaption></figcaption></figure>
      <div class="verdicts">
        <p class="lead status"></p>
        <p class="without"></p>
        <div class="start">
          <button type="button" class="primary test"></button>
          <span class="masks"></span>
          <div class="progress" aria-hidden="true"><i></i></div>
        </div>
        <div class="findings" aria-live="polite"></div>
        <p class="randomization hint"></p>
        <div class="every">
          <button type="button" class="quiet" disabled>Compare all methods</button>
          <p class="hint table-status" aria-live="polite"></p>
          <div class="progress" aria-hidden="true"><i></i></div>
          <div class="scroller"><table hidden></table></div>
        </div>
        <h3>How little is enough?</h3>
        <div class="start"><button type="button" class="quiet enough"></button><p class="hint"></p></div>
        <div class="little">
          <figure hidden><div><canvas role="img"></canvas></div><figcaption></figcaption></figure>
          <figure hidden><div><canvas role="img"></canvas></div><figcaption></figcaption></figure>
        </div>
        <div data-place="download"></div>
      </div>
    </div>
  </section>`;

/** @type {import("../contract.d.ts").Create} */
export function create(card, { request, methods, curves, change, restore, load }) {
  const find = (selector) => card.querySelector(selector);
  const button = find(".test");
  const tooltip = createTooltip(card);
  let table = /** @type {any} */ (null); // of all methods, whose code is fetched when they are first compared
  let compared = /** @type {any} */ (null); // what they can be compared on
  const tests = createTasks(() => testedNow, update);
  let current = /** @type {any} */ (null); // {result, fields, name, measure}: the heatmap that can be tested now
  let testedNow = /** @type {any} */ (null); // what is tested: the same with a mask

  const withMask = (baseline) => ({ ...current, fields: { ...current.fields, baseline } });
  const taskOf = (baseline) => current && tests.of(withMask(baseline));
  const runningTask = () => BASELINES.map(([baseline]) => taskOf(baseline)).find((test) => test?.running);

  function run(baseline) {
    if (runningTask()) return tests.cancel(testedNow);
    testedNow = withMask(baseline);
    const { result, fields } = testedNow;
    tests.start(testedNow, { version: 0, found: null, correlations: null }, steps);

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
    const running = runningTask();
    const untested = BASELINES.filter(([baseline]) => {
      const { found, running, error } = taskOf(baseline) ?? {};
      return !found || running || error;
    });
    const isTested = !untested.includes(BASELINES[0]);
    button.disabled = !current || (isTested && !running);
    const idle = isTested ? english("Tested") : english("Test these colours");
    setText(button, running ? english("Cancel") : idle);
    const others = isTested && !running ? untested : [];
    const links = others.map(([baseline, words]) => {
      const again = translate("Again with {mask}", { mask: translate(words) });
      return makeButton(() => run(baseline), { className: "link" }, again);
    });
    find(".masks").replaceChildren(...links);
    setProgress(find(".start .progress"), Boolean(running), running?.progress);
    const values = { name: current?.name ?? "…", least: percent(100 * constants.improbable) };
    const error = BASELINES.map(([baseline]) => taskOf(baseline)?.error).find(Boolean);
    find(".status").role = error ? "status" : null; // what the test does is read like any text
    const what = translate(COMPARED[current?.measure ?? PROBABILITY], values);
    setExplainedText(find(".status"), error || translate(WHAT_IT_DOES, { ...values, what }), tooltip);
    drawFindings();
  }

  /** What was found with each mask, in columns beside each other; nothing of another heatmap. */
  function drawFindings() {
    const tested = BASELINES.map((mask) => [mask, taskOf(mask[0])]).filter(([, test]) => test?.found);
    const versions = tested.map(([[baseline], { version }]) => [baseline, version]);
    if (!isNew(find(".findings"), [current?.fields, current?.result.run, versions])) return;
    find(".findings").replaceChildren(...tested.map(([mask, test]) => findingOf(current, mask, test, tooltip)));
    const { correlations } = tested.map(([, test]) => test).find((test) => test.correlations) ?? {};
    const text = correlations
      ? randomizationText(correlations, current.result.numPatches - current.result.dropped.length)
      : "";
    setExplainedText(find(".randomization"), text, tooltip);
    if (correlations) find(".findings").append(randomizationChart(correlations));
  }

  function offer(/** @type {any} */ next) {
    compared = next;
    find(".every button").disabled = !next;
    table?.show(next);
  }

  find(".every button").addEventListener("click", async () => {
    try {
      const modules = /** @type {any} */ (table ? null : await load("methods.js"));
      table ??= modules["stage/views/faithfulness/methodTable.js"].createMethodTable(
        ...[find(".every"), methods, curves],
        (method) => change({ section: FIRST_SECTION, plain: false, method }),
      );
      table.show(compared);
      table.run();
    } catch (error) {
      console.error(error);
      setText(find(".table-status"), NOT_LOADED);
    }
  });

  /** Without a result there is nothing to test; with one, the next frame says what. */
  function show(result) {
    current = null;
    for (const part of [".status", ".start", ".findings", ".randomization", ".every"]) {
      find(part).hidden = Boolean(result && !result.predictions.length);
    }
    if (!result) offer(null);
    update();
  }

  function draw({ result, look, choices, chosenMethod, pinnedView }) {
    drawMirror(result, look);
    showWithout(find(".without"), result, restore);
    setText(find(".mirror figcaption"), chosenMethod.subject(result, pinnedView));
    if (!result.predictions.length) return;
    const { index, label } = testedClass(result, chosenMethod, choices.label);
    const fields = { label: index, ...mapFields(methods, result, choices) };
    const name = chosenMethod.classSpecific ? className(result, pinnedView) : label;
    const measure = measureOf(result, fields);
    current = { result, fields, name, measure };
    // Every method is tested on one class, whichever is shown.
    const about = { label: targetOf(result, choices.label).index, against: againstOf(result, choices)?.index };
    const title = className(result, choices);
    offer({ result, ...about, name: title, measure: measureOf(result, about), baseline: BASELINES[0][0] });
    update();
  }

  /** The map that is tested, small, as it stands in the picture. */
  function drawMirror(result, look) {
    const canvas = find(".mirror canvas");
    paintResult(canvas, fitCanvas(canvas, result.size), result, look);
    put(canvas, { ariaLabel: translate("The map that is tested") });
  }

  /** Brings the verdict and its curves into sight, computed now if they were not before. */
  function trust() {
    card.classList.add("asked");
    card.scrollIntoView({ block: "start" });
    if (current && !runningTask() && !taskOf(BASELINES[0][0])?.found) run(BASELINES[0][0]);
  }

  button.addEventListener("click", () => run(BASELINES[0][0]));
  return { show, draw, trust };
}

/** A column of what was found with one mask. */
function findingOf({ name, measure }, [, , heading, meaning], { found, running }, tooltip) {
  const isCompared = found.deletion.random.length === constants.numOrders;
  const [conclusion, measurements] = isCompared ? faithfulnessText(name, found) : ["", ""];
  const [verdict, words] = [make("p", { className: "conclusion" }), make("p", { className: "measurements hint" })];
  setText(verdict, conclusion || (running ? english("Random orders are being computed.") : ""));
  setExplainedText(words, `${measurements} ${translate(meaning)}`.trim(), tooltip);
  const format = measure === PROBABILITY ? asPercentage : formatNumber;
  const chart = (title, { curve, random, area, random_area: randomArea }, ends) => {
    const legend = [
      translate("this map {area}", { area: formatArea(area) }),
      ...(random.length ? [randomWords(random.length, formatArea(randomArea))] : []),
    ];
    return lineChart({ title, places: found.fractions, curve, randoms: random, ends, legend, format });
  };
  return make(
    "article",
    { className: "finding" },
    make("h3", {}, translate(heading)),
    verdict,
    chart(translate("{name} while squares are masked", { name }), found.deletion, [
      translate("all there"),
      translate("none left"),
    ]),
    chart(translate("{name} while squares are put in", { name }), found.insertion, [
      translate("none there"),
      translate("all there"),
    ]),
    words,
  );
}

/** The mean area of the random orders, and how many are still to come. */
function randomWords(count, area) {
  const all = constants.numOrders;
  return count < all
    ? translate("random, {count} of {all} so far: {area}", { count, all, area })
    : translate("random {area}", { area });
}

function randomizationChart(correlations) {
  const chart = lineChart({
    title: translate("Likeness as the weights are replaced by random ones"),
    places: correlations.map((_, i) => i / (correlations.length - 1)),
    curve: correlations,
    randoms: [],
    ends: [translate("trained weights"), translate("all weights random")],
    legend: [translate("rank correlation with this map")],
    format: formatArea,
  });
  return make(
    "article",
    { className: "finding" },
    make("h3", {}, translate("Does it depend on what was learned?")),
    chart,
  );
}
