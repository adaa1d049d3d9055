// How little is enough: the picture with only the patches that a class needs to be recognized, on request.

import { constants } from "../../../shared/constants.js";
import { make, setProgress, setText } from "../../../shared/dom.js";
import { fitInside, patchBox } from "../../../shared/geometry.js";
import { createTooltip, setExplainedText } from "../../../shared/glossary/glossary.js";
import { english, translate } from "../../../shared/language.js";
import { createTasks } from "../../../shared/tasks.js";
import { formatProbability, percent } from "../../format.js";
import { testedClass } from "../../onDemand.js";
import { captionOf, findSets, spokenPatches } from "./sets.js";

export const order = 32;

export const html = `
  <section class="card smallest-sets">
    <div class="start">
      <div>
        <h2>How little is enough?</h2>
        <p class="status"></p>
      </div>
      <button type="button" class="quiet find">Find the patches</button>
      <div class="progress" aria-hidden="true"><i></i></div>
    </div>
    <div class="sets" aria-live="polite"></div>
  </section>`;

const SIDE = 480; // pixels of a picture

const OF_PROBABILITY = english(
  "Which few patches are enough for *{name}* to keep {share} of its probability, and without which is it lost? The fewest that a search finds are shown. The model gets no other patches: what is left out is taken from its input, not painted over.",
);
const OF_SCORE = english(
  "Which few patches are enough for *{name}* to keep {share} of its score, and without which is it lost? The model gets no other patches: what is left out is taken from its input, not painted over.",
);

const whatItDoes = (name, scores) =>
  translate(scores === "none" ? OF_SCORE : OF_PROBABILITY, { name, share: percent(100 * constants.enoughShare) });

/** Why nothing is searched for a class: of a tiny probability single patches keep any share. "" if it can be searched. */
function refusalOf({ result, target }) {
  if (target === result.predictions[0] || target.scores === "none" || target.probability >= constants.improbable)
    return "";
  const [probability, least] = [formatProbability(target.probability), percent(100 * constants.improbable)];
  const values = { name: target.label, probability, least };
  return translate(
    "*{name}* has {probability} here, too little to keep or to lose: choose a class of {least} or more.",
    values,
  );
}

export function create(card, { request }) {
  const find = (selector) => card.querySelector(selector);
  const [button, host] = [find(".find"), find(".sets")];
  const tooltip = createTooltip(card);
  const tasks = createTasks(() => current, update);
  let current = null; // {result, fields, target}: what can be searched now, and the class
  let drawn = null; // the sets that are shown
  let name = "…"; // of the last class, so that nothing moves without a result

  function run() {
    const task = tasks.of(current);
    if (task?.running) return tasks.cancel(current, task.sets.length > 0);
    const { result, fields } = current;
    tasks.start(current, { sets: [], isDone: false }, ({ put, isCurrent, onProgress }) => {
      const send = (wanted) => {
        const sent = { kind: "smallest_set", source: result.source, ...fields, ...wanted };
        return request(sent, { isCurrent, onProgress });
      };
      return findSets(send, put);
    });
  }

  function update() {
    const task = tasks.of(current);
    const refusal = current ? refusalOf(current) : "";
    button.disabled = !current || Boolean(task?.isDone || refusal);
    const idle = task?.isDone ? english("Found") : english("Find the patches");
    setText(button, task?.running ? english("Cancel") : idle);
    setProgress(find(".progress"), Boolean(task?.running), task?.progress);
    find(".status").role = task?.error ? "status" : null;
    name = current?.target.label ?? name;
    setExplainedText(find(".status"), task?.error || refusal || whatItDoes(name, current?.target.scores), tooltip);
    drawSets(task?.sets ?? []);
  }

  /** Adds what was found since, so that a screen reader reads each set once. */
  function drawSets(sets) {
    if (drawn?.some((set, i) => set !== sets[i])) drawn = null;
    if (!drawn) host.replaceChildren();
    const added = sets.slice(drawn?.length ?? 0);
    host.append(...added.map((set) => figure(current, set)));
    drawn = [...sets];
  }

  function show(result) {
    current = drawn = null; // in the language of now
    card.hidden = Boolean(result && !result.predictions.length);
    update();
  }

  function draw({ result, choices, chosenMethod }) {
    if (!result.predictions.length) return;
    const target = testedClass(result, chosenMethod, choices.label); // as the test of the heatmap
    if (current?.result === result && current.target === target) return;
    current = { result, target, fields: { label: target.index } };
    update();
  }

  button.addEventListener("click", run);
  return { show, draw };
}

/** A set as a picture with its patches alone, or without them, and what the model says to that. */
function figure({ result, target }, set) {
  const words = make("figcaption");
  setText(words, captionOf(set, result, target));
  if (!set.patches) return make("figure", {}, words);
  const [width, height] = fitInside(result.size, [SIDE, SIDE]);
  const canvas = make("canvas", { width, height, role: "img" });
  canvas.setAttribute("aria-label", spokenPatches(set, result));
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = !result.pixelated;
  context.drawImage(result.picture, 0, 0, width, height);
  const box = { left: 0, top: 0, width, height };
  const isKept = (patch) => set.patches.includes(patch) === (set.wanted === "enough");
  result.tokenOf.forEach((token, patch) => {
    const { left, top, width, height } = patchBox(patch, box, result);
    if (token < 0 || !isKept(patch)) context.clearRect(left, top, width, height);
  });
  return make("figure", {}, canvas, words);
}
