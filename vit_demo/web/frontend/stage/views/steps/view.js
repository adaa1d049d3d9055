// @ts-check
// "Step by step": eight steps from the pixels to the answer, on the visitor's own picture and model.

import { isNew, make, makeButton, put, setText } from "../../../shared/dom.js";
import { currentLanguage, english, translate, translateName } from "../../../shared/language.js";
import { createReplyCache } from "../../../shared/requests.js";
import { showWithout } from "../../caption.js";
import { formatShare, placeOf } from "../../format.js";
import { similarities } from "../../result.js";
import { watchFoot } from "../../sections.js";
import { classesFigure, depthFigure, headFigure, headsFigure, mlpFigure } from "./blockFigures.js";
import { codeNodes } from "./code.js";
import { createPainter, createPicture, short } from "./painting.js";
import { productFigure, rowFigure, sequenceFigure } from "./patchFigures.js";
import { createQuiz, questionOf } from "./quiz.js";
import { NUM_STEPS, titleOf, wordsOf } from "./texts.js";
import { decodeNumbers, factsOf, settleTour } from "./tour.js";

export const html = `
  <section class="chapter steps" aria-label="How does it get there?">
    <h2>How does it get there?</h2>
    <div class="top">
      <p class="count"></p>
      <nav aria-label="Steps"><ol class="network"></ol></nav>
    </div>
    <p class="without"></p>
    <h3 class="title">Cut the picture into patches</h3>
    <div class="sentences"><p></p></div>
    <p class="error" role="alert"></p>
    <div class="body">
      <div class="seen"></div>
      <div class="detail">
        <div class="figure"></div>
        <p class="hint signs"><i></i>above zero<i></i>below zero; the stronger, the further from it</p>
        <div class="quiz" hidden></div>
        <button type="button" class="primary to-build" hidden>Train one yourself</button>
      </div>
    </div>
    <details class="behind">
      <summary>Shapes and code</summary>
      <div class="shapes"></div>
      <div class="code"></div>
    </details>
    <div class="walk">
      <button type="button" class="quiet previous">Back</button>
      <button type="button" class="primary next">Next</button>
    </div>
    <p class="visually-hidden spoken" aria-live="polite"></p>
  </section>`;

/** The network as it is drawn at the head: [name, title, the steps that are about it]. */
const PARTS = [
  ["input", english("Picture"), []],
  ["patches", english("Patches"), [0]],
  ["tokens", english("Tokens"), [1, 2]],
  ["blocks", english("Blocks"), [3, 4, 5, 6]],
  ["answer", english("Answer"), [7]],
];

const NEAR = -80; // pixels of it that are on the screen before its numbers are asked for

const KEYS = { ArrowLeft: (step) => step - 1, ArrowRight: (step) => step + 1, Home: () => 0, End: () => NUM_STEPS - 1 };
const TYPING = "input, select, textarea, canvas, [contenteditable], pre";

/** @type {import("../contract.d.ts").Create} */
export function create(card, { request, change, redraw, restore, stepCode, load }) {
  const find = (selector) => card.querySelector(selector);
  const replies = createReplyCache(request, redraw);
  const paint = createPainter(card);
  const quiz = createQuiz(find(".quiz"), { onAnswer: redraw, onNext: () => go(tour.step + 1) });
  const picture = createPicture(find(".seen"), (patch) => choose({ patch, fromClassToken: false }));
  const stepButton = (step, ...face) => makeButton(() => go(step), ...face);
  const parts = PARTS.map(([name, title, steps]) => {
    const art = make("i", { className: `art-${name}`, ariaHidden: "true" });
    const face = stepButton(steps[0] ?? 0, { className: "part" }, art, make("span", { textContent: title }));
    const dots = make("div", { className: "dots" }, ...steps.map((step) => stepButton(step, {}, String(step + 1))));
    return make("li", {}, face, dots, make("small", { textContent: english("you are here") }));
  });
  find(".network").append(...parts);
  const dots = [...card.querySelectorAll(".dots button")];
  let tour = /** @type {any} */ (null); // the choices of the page, settled
  let written = ""; // the figure that is on the page
  let drawSum = /** @type {any} */ (undefined); // draws what each head adds; null while its code is being fetched

  function choose(part) {
    replies.retry();
    tour = { ...tour, ...part }; // at once, so that keys pressed before the next frame count
    change({ tour });
  }

  function go(step) {
    if (!tour || step < 0 || step >= NUM_STEPS) return;
    choose({ step });
    if (card.getBoundingClientRect().top < 0) card.scrollIntoView({ block: "start" });
  }

  const numbersOf = (result, fields) => replies.get(result, fields, decodeNumbers);

  /** What a step needs besides the reply of kind "steps", if anything. */
  function replyFor(result, { step, patch, block, head, fromClassToken }) {
    if (NEEDS[step] === "patch") return numbersOf(result, { kind: "steps_patch", query: patch });
    const query = fromClassToken ? null : patch;
    return NEEDS[step] === "block" ? numbersOf(result, { kind: "steps_block", query, block, head }) : null;
  }

  let isNear = false; // whether so much of the chapter is on the screen that its numbers are asked for
  const look = (/** @type {IntersectionObserverEntry[]} */ entries) => {
    isNear = Boolean(entries.at(-1)?.isIntersecting);
    if (isNear) redraw();
  };
  new IntersectionObserver(look, { root: document, rootMargin: `${NEAR}px 0px` }).observe(card);
  watchFoot(card);
  const isInSight = () => {
    const { top, bottom } = card.getBoundingClientRect();
    return top < innerHeight && bottom > 0;
  };

  async function fetchSum() {
    drawSum = null;
    drawSum = (await load("sum.js"))["stage/views/steps/contributions.js"].contributionsFigure;
    redraw();
  }

  function draw({ result, choices }) {
    if (!isNear && choices.section !== "steps") {
      tour = null; // drawn once it comes in sight again
      return replies.release("steps");
    }
    const first = numbersOf(result, { kind: "steps" });
    const shared = first.value;
    if (first.isLoading) return; // what stands here keeps its place, or else a click below it may miss
    card.classList.toggle("refused", first.error !== "");
    if (!shared) return setText(find(".error"), first.error);
    tour = settleTour(choices.tour, result, shared);
    const facts = factsOf(result, shared);
    const reply = replyFor(result, tour);
    const contributions =
      tour.step === SUMMED && facts.hasClasses ? numbersOf(result, { kind: "contributions" }) : null;
    if (contributions && drawSum === undefined) fetchSum();
    const isWaiting = reply?.value === null;
    setText(find(".error"), reply?.error ?? "");
    writeWords(facts);
    showWithout(find(".without"), result, restore);
    card.classList.toggle("loading", isWaiting);
    find(".detail").classList.toggle("asks-first", tour.step === 3);
    find(".detail").inert = isWaiting; // a click would answer the question of the step before
    if (isWaiting) return waitFor(reply);
    const state = {
      result,
      facts,
      shared,
      tour,
      paint,
      choose,
      ...{ contributions, drawSum },
      ...(reply && { [String(NEEDS[tour.step])]: reply.value }),
    };
    const ask = () => questionOf(state.tour.step, state);
    const { asked, revealed } = quiz.show(result, tour.step, ask);
    const isAboutThis = asked?.prompt === ask()?.prompt; // not an answered question about another token
    showPicture(state, revealed, isAboutThis ? asked?.marks : null);
    const key = JSON.stringify([
      result.run,
      tour,
      revealed,
      document.body.className, // the theme
      currentLanguage(),
      contributions?.error,
      Boolean(contributions?.value && drawSum),
    ]);
    if (key === written) return;
    written = key;
    replaceNodes(find(".figure"), FIGURES[tour.step]({ ...state, revealed }));
  }

  /** Until its numbers are here, a step shows the figure of before, dimmed; if they failed, none. */
  function waitFor({ error }) {
    if (!error) return;
    find(".figure").replaceChildren();
    find(".quiz").hidden = true;
    written = "";
  }

  function writeWords(facts) {
    const { step } = tour;
    const { sentences, before, after } = wordsOf(step, facts);
    const words = { step: step + 1, all: NUM_STEPS, title: titleOf(step) };
    setText(find(".count"), translate("Step {step} of {all}", words));
    setText(find(".title"), words.title);
    setText(find(".sentences p"), sentences.join(" "));
    dots.forEach((dot, i) => {
      dot.classList.toggle("done", i < step);
      put(dot, {
        ariaLabel: translate("Step {step}: {title}", { step: i + 1, title: titleOf(i) }),
        ariaCurrent: i === step ? "step" : null,
        tabIndex: i === step ? 0 : -1, // the arrow keys walk from there
      });
    });
    parts.forEach((part, i) => {
      part.classList.toggle("current", PARTS[i][2].includes(step));
    });
    setText(find(".art-blocks"), `×\u00a0${facts.blocks}`);
    put(find(".previous"), { disabled: step === 0 });
    put(find(".next"), { hidden: step === NUM_STEPS - 1 });
    put(find(".to-build"), { hidden: step < NUM_STEPS - 1 });
    writeShapes(find(".shapes"), [before, after]);
    const code = find(".code");
    if (isNew(code, [step, facts.own])) code.replaceChildren(...codeNodes(stepCode[step], facts.own));
    setText(find(".spoken"), translate("Step {step} of {all}: {title}.", words));
  }

  /** The picture beside the step: its heatmap, its marks, and the words below it. */
  function showPicture({ result, facts, shared, block }, revealed, marks) {
    const { step, patch, fromClassToken, head } = tour;
    const usesPatch = step < 6;
    const place = (index) => translate("Patch in {place}", { place: placeOf(result, index) });
    const captionOf = (whole, valueAt) => (hovered) =>
      hovered === null ? whole : `${placeOf(result, hovered)}: ${valueAt(hovered)}`;
    const view = {
      result,
      chosen: usesPatch && !(block && fromClassToken) ? patch : null,
      marks: marks ?? [],
      mapOf: /** @type {(hovered: any) => any} */ (() => null),
      caption: (hovered) => (usesPatch ? place(hovered ?? patch) : ""),
    };
    if (step === 2 && revealed && shared.positions) {
      const similarity = (hovered) => similarities(shared.positions, facts.patches, hovered ?? patch);
      view.mapOf = (hovered) => similarity(hovered).map((value) => Math.max(0, value));
      view.caption = (hovered) =>
        translate("Similarity of positions to *{place}*, from 0 (weakest colour) to 1 (strongest).", {
          place: placeOf(result, hovered ?? patch),
        });
    } else if (step === 3 && !revealed) {
      const asks = english("The question asks about the marked patches.");
      view.caption = (hovered) => (hovered === null ? asks : place(hovered));
    } else if (step === 3 || step === 4) {
      const map = Float32Array.from(result.tokenOf, (token) => (token < 0 ? 0 : block.weights[token]));
      view.mapOf = () => map;
      const values = { place: placeOf(result, patch), head: head + 1, block: tour.block + 1 };
      const taken = fromClassToken
        ? translate("What *the class token* attends to in head {head} of block {block}.", values)
        : translate("What *patch {place}* attends to in head {head} of block {block}.", values);
      view.caption = captionOf(taken, (hovered) => `*${formatShare(map[hovered])}*`);
    } else if (step === 7 && facts.isOfTokens) {
      view.mapOf = () => shared.alike.map((value) => Math.max(0, value));
      const whole = english("How similar each patch is to the output.");
      view.caption = captionOf(whole, (hovered) => short(shared.alike[hovered]));
    } else if (step === 5 && fromClassToken) {
      view.caption = () => english("Token: *the class token*");
    } else if (step > 5) {
      const prediction = translate("Prediction: *{label}*", { label: translateName(facts.prediction) });
      view.caption = () => (facts.hasClasses && revealed ? prediction : "");
    }
    picture.show(view);
  }

  function show(result) {
    tour = null;
    written = "";
    card.style.setProperty("--picture", result ? `url("${result.pictureUrl}")` : "none");
    card.classList.toggle("empty", !result);
    card.classList.remove("refused");
    if (!result) setText(find(".title"), english("Draw a digit or choose a photo to start."));
  }

  find(".previous").addEventListener("click", () => go(tour?.step - 1));
  find(".next").addEventListener("click", () => go(tour?.step + 1));
  find(".to-build").addEventListener("click", () => change({ section: "build" }));
  document.addEventListener("keydown", (event) => {
    const { key } = event;
    const target = /** @type {Element} */ (event.target);
    const here = card.contains(target) || (target === document.body && isInSight());
    if (!(key in KEYS) || !here || !card.offsetParent || !tour || target.closest(TYPING)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
    event.preventDefault();
    go(KEYS[key](tour.step));
  });

  return { show, draw, retry: replies.retry };
}

function writeShapes(host, ends) {
  if (!isNew(host, ends)) return;
  const [before, after] = ends.map(([shape, words]) =>
    make("span", {}, make("code", { textContent: shape }), make("small", { textContent: words })),
  );
  host.replaceChildren(before, make("b", { textContent: "→", ariaLabel: english("becomes") }), after);
}

// What each step shows beside the picture. A figure is a function of the tour's state that returns the nodes to show.

/**
 * The figures in the order of the steps. The state is {result, facts, shared, patch or block, contributions, tour, revealed,
 * paint, choose}: `patch` and `block` are the replies about the chosen patch and block, `contributions` is what was asked for
 * about all heads, `paint` a painter of painting.js, `choose(part)` changes the tour.
 */
const FIGURES = [
  rowFigure,
  productFigure,
  sequenceFigure,
  headFigure,
  headsFigure,
  mlpFigure,
  depthFigure,
  classesFigure,
];

/** The reply that a step needs besides that of kind "steps": about the chosen patch, or the block. */
const NEEDS = [null, "patch", "patch", "block", "block", "block", null, null];
const SUMMED = 4; // the step that also shows what each head adds to the answer

/** Puts nodes into a host; the control that had the focus, by its `data-key`, gets it back. */
function replaceNodes(host, nodes) {
  const activeElement = /** @type {HTMLElement} */ (document.activeElement);
  const key = host.contains(activeElement) ? activeElement.dataset.key : null;
  host.replaceChildren(...nodes);
  if (key) [...host.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key)?.focus();
}
