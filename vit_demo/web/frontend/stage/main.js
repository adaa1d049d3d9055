// The stage: the visitor's choices, the model's result, and the picture that follows from both.

import { make, setProgress, setText } from "../shared/dom.js";
import { middlePatch, neighbour } from "../shared/geometry.js";
import { english, languageChange, languageReady, translate } from "../shared/language.js";
import { clickedPatch, modelInput, newResult, PUSH, pageState, REPLACE, shownResult } from "../shared/pageState.js";
import { createRequestIds, sendRequest } from "../shared/requests.js";
import { createCaption, setHeadline } from "./caption.js";
import { firstChoices, isStep, keepChoices, validChoices, viewIn, viewOf } from "./choices.js";
import { createControls } from "./controls.js";
import { createDropping } from "./dropping.js";
import { placeOf, targetOf } from "./format.js";
import { classMethod, describeMethods, mapFields } from "./methods.js";
import { createBlockTraces, createCurves, createMapRequests } from "./onDemand.js";
import { fitCanvas, listenToPatches, paintResult } from "./pictureCanvas.js";
import { openResult } from "./result.js";
import { createSections, createStatus, FIRST_SECTION } from "./sections.js";

/** Starts the stage in its element; called by Gradio for each stage of a page (see modules.py). */
export async function mount({ element, props, server, watch, upload, ...constants }) {
  const { registered, viewNames, stepCode, startingPoints, examples } = constants;
  const find = (selector) => element.querySelector(selector);
  const [stage, canvas, picture] = [".stage", ".picture", ".view"].map(find);
  const viewModules = await Promise.all(viewNames.map((name) => import(`./views/${name}/view.js`)));
  await languageReady; // so that nothing is shown in English first
  const methods = describeMethods(registered);
  const choices = firstChoices();
  const opened = createRequestIds(); // a payload that is opened while a later one has come is not shown
  let result = null;
  let openedPayload = null; // that of the result with all its patches
  let latestPayload = null; // the same, once it is opened
  let shape = { numBlocks: 1, numHeads: 4 }; // of the last result, or a first guess
  let scene = null; // what the picture shows: {result, method, view, map}
  let frame = 0;
  let isErasing = true; // whether the brush drops patches or restores them

  const request = (fields, options) => sendRequest(server, fields, options);
  const mapRequests = createMapRequests(request, () => change({}));
  const blockTraces = createBlockTraces(request, (owner) => owner === result && render());
  const dropping = createDropping(request, { prepare, show: showResult, onChange: change });
  const sectionNames = viewModules.flatMap(({ sections = [FIRST_SECTION] }) => sections);
  const controls = createControls(element, methods, element.id, { onChange: change, retry, sectionNames });
  const caption = createCaption(element, blockTraces);
  const views = addViews();
  const cards = [[find(".look"), [FIRST_SECTION]], ...views.map(({ card, sections }) => [card, sections])];
  const sections = createSections(find(".sections"), cards, (section) => change({ section }));

  /** Adds the cards of all views, in their order. */
  function addViews() {
    const curves = createCurves(request); // what one card has measured is not measured again
    const data = { methods, examples, stepCode, startingPoints, curves };
    const context = { request, pickClass, pickHead, change, upload, ...data };
    viewModules.sort((a, b) => a.order - b.order);
    return viewModules.map(({ html, create, sections = [FIRST_SECTION] }) => {
      const card = make("template", { innerHTML: html.trim() }).content.firstElementChild;
      stage.append(card);
      return { card, sections, ...create(card, context) };
    });
  }

  /** Changes some choices and draws them with the next frame, however many changes come before it. */
  function change(part) {
    const isNewBlock = part.block !== undefined && part.block !== choices.block;
    const how = isStep(part, choices) ? PUSH : REPLACE;
    Object.assign(choices, part);
    publishView(part, how);
    if ("pinned" in part) publishInput();
    if (isNewBlock && result) blockTraces.load(result, choices.block);
    if (!frame) frame = requestAnimationFrame(render);
  }

  /** Tells the page's state what the visitor chose. */
  function publishView(part, how) {
    if (pageState.get()) pageState.changeView(viewIn(part), how);
  }

  /** Shows what is chosen; a map that the server still computes leaves the scene of before. */
  function render() {
    frame = 0;
    sections.open(choices.section);
    controls.update(choices, shape, result);
    if (!result) {
      for (const each of views) each.drawEmpty?.({ choices });
      return;
    }
    const chosenMethod = methods[choices.method];
    const chosenView = viewOf(result, choices);
    const isPointed = picture.matches(":hover");
    if (usesPatch() && (isPointed || !chosenView.isComplete)) blockTraces.need(result, choices.block);
    const entry = chosenMethod.map ? null : mapRequests.get(result, mapFields(methods, result, choices));
    if (!entry) mapRequests.release();
    const newMap = entry ? entry.map : chosenMethod.map(result, chosenView);
    if (newMap || scene?.result !== result) scene = { result, method: chosenMethod, view: chosenView, map: newMap };
    const { method, view, map } = scene;
    const { opacity, hovered } = choices;
    const queried = method.uses.includes("patch") ? view.query : null;
    const size = fitCanvas(canvas, picture, result.size);
    paintResult(canvas, size, result, {
      map,
      style: method.style(result),
      opacity,
      queried,
      hovered,
      dropped: dropping.dropped(),
    });
    updatePicture(entry);
    const pinnedView = viewOf(result, { ...choices, hovered: null });
    const drawing = { result, method, view, map, choices, chosenMethod, pinnedView };
    caption.update(drawing, entry, dropping.error());
    for (const each of views) if (each.sections.includes(choices.section)) each.draw?.(drawing);
  }

  function updatePicture(entry) {
    setProgress(find(".view .progress"), Boolean(entry?.slow && !entry.map && !entry.error), entry?.progress);
    find(".drop").setAttribute("aria-pressed", String(choices.dropping));
    find(".follow").setAttribute("aria-pressed", String(choices.follows));
    find(".follow").disabled = !usesPatch() || choices.dropping;
    find(".restore").disabled = !dropping.dropped().size;
    stage.classList.toggle("dropping", choices.dropping);
  }

  function pickHead(block, head) {
    change({ method: "attention", direction: "from", pinned: null, block, head });
  }

  /** Shows the evidence for a class; choosing the shown class again goes back to the predicted one. */
  function pickClass(index) {
    retry();
    const isShown = choices.section === FIRST_SECTION && methods[choices.method].classSpecific;
    const section = FIRST_SECTION;
    if (!isShown)
      change({
        section,
        method: methods[choices.method].classSpecific ? choices.method : classMethod(methods),
        label: index,
      });
    else change({ label: targetOf(result, choices.label).index === index ? null : index });
  }

  /** A visitor's choice sends failed requests again, even a choice that changes no control. */
  function retry() {
    mapRequests.retry();
    for (const each of views) each.retry?.();
    if (result) blockTraces.load(result, choices.block);
    change({});
  }

  const usesPatch = () => methods[choices.method].uses.includes("patch");

  function clickPatch(patch) {
    if (!result) return;
    if (choices.dropping) toggleDropped(patch);
    else if (usesPatch()) pin(patch === choices.pinned ? null : patch);
    else change({ hovered: patch });
  }

  function pin(patch) {
    change({ pinned: patch });
    if (patch !== null) return;
    setText(find(".news"), result.hasClassToken ? english("Back to class token") : english("Back to all tokens"));
  }

  function toggleDropped(patch) {
    dropping.toggle(patch);
    const place = placeOf(result, patch);
    const news = dropping.dropped().has(patch)
      ? translate("Patch removed: {place}.", { place })
      : translate("Patch restored: {place}.", { place });
    setText(find(".news"), news);
  }

  function showEmpty(message) {
    result = scene = openedPayload = null;
    dropping.cancel();
    mapRequests.release();
    if (!sections.isOffered(choices.section)) choices.section = FIRST_SECTION;
    setText(find(".message"), message || english("Draw a digit or choose a photo."));
    setHeadline(find(".headline"), null);
    setProgress(find(".view .progress"), false);
    find(".restore").disabled = true;
    stage.classList.add("waiting");
    caption.clear();
    for (const each of views) each.show?.(null);
    publishInput();
    Object.assign(stage.dataset, { run: "", top1: "", ready: "empty" });
    render();
  }

  /** `before` is the shape that the choices were made for; null where they came with the result. */
  function showResult(next, before = shape) {
    if (before) keepChoices(choices, before, next);
    validChoices(choices, methods, sections, next);
    result = shape = next;
    setText(find(".message"), "");
    setHeadline(find(".headline"), result);
    stage.classList.remove("waiting");
    for (const each of views) each.show?.(result, dropping.whole());
    render();
    publishInput();
    Object.assign(stage.dataset, { run: result.run, top1: result.predictions[0]?.label ?? "", ready: "true" });
    shownResult.publish(result);
  }

  /** Shows the pad which digit the model saw, and the small photo which part of which photo. */
  function publishInput() {
    const { pixelated, image, photo, rows, columns } = result ?? {};
    const { pinned } = choices;
    modelInput.publish({ digit: pixelated ? image : null, photo: photo ? { ...photo, rows, columns, pinned } : null });
  }

  /** Waits for the first reply about the map of a new result, so that most maps are there with their picture. */
  async function prepare(next) {
    const isServed = !methods[choices.method].map;
    const sameNetwork = result && next.numBlocks === shape.numBlocks && next.numHeads === shape.numHeads;
    if (!isServed || !sameNetwork || !next.predictions.length) return;
    await mapRequests.prefetch(next, mapFields(methods, next, { ...choices, pinned: null }));
  }

  /** Shows a payload, or the latest one again, with the view of the page's state, if it has any for it. */
  async function showNext({ payload, view, restored, isNewest = () => true, onShown = () => {} }) {
    const isLatest = opened.start();
    const isCurrent = () => isLatest() && isNewest();
    latestPayload = payload ?? latestPayload ?? props.value;
    // That of now: the visitor may have chosen something while the result was opened.
    const takeView = () => view && Object.assign(choices, pageState.get().view);
    if (!latestPayload || latestPayload.empty) {
      takeView();
      showEmpty(latestPayload?.message);
      return onShown();
    }
    try {
      // The old result stays until the new one is complete, so that nothing flickers.
      const isOpen = latestPayload === openedPayload;
      const next = isOpen ? result : await openResult(latestPayload);
      if (!isOpen) await prepare(next);
      if (!isCurrent()) return;
      takeView();
      openedPayload = latestPayload;
      if (!isOpen) dropping.start(next);
      showResult(next, restored ? null : shape);
      if (view) publishView(choices, REPLACE);
      if (view) dropping.restore(choices.dropped);
    } catch (error) {
      console.error(error);
      if (isCurrent()) showEmpty(english("This result could not be shown."));
    }
    if (isCurrent()) onShown();
  }

  listenToPatches(canvas, () => result, {
    hover: (patch) => patch !== choices.hovered && change({ hovered: patch }),
    click: clickPatch,
    move(step) {
      const from = choices.pinned ?? choices.hovered;
      const patch = from === null ? middlePatch(result) : neighbour(from, step, result);
      caption.announceNext();
      if (usesPatch() && !choices.dropping) pin(patch);
      else change({ hovered: patch });
    },
    brush: {
      isOn: () => choices.dropping,
      start(patch) {
        isErasing = !dropping.dropped().has(patch);
        dropping.brush(patch, isErasing);
      },
      over: (patch) => dropping.brush(patch, isErasing),
      end: () => dropping.commit(),
    },
    press: () => choices.dropping && choices.hovered !== null && toggleDropped(choices.hovered),
    leave() {
      choices.hovered = null;
      pin(null);
    },
  });
  picture.addEventListener("pointerenter", () => change({})); // loads the trace before the pointer reaches a patch
  clickedPatch.subscribe(element, clickPatch);
  find(".drop").addEventListener("click", () => change({ dropping: !choices.dropping, pinned: null }));
  find(".follow").addEventListener("click", () => change({ follows: !choices.follows, pinned: null }));
  find(".restore").addEventListener("click", () => dropping.restoreAll());
  find(".back").addEventListener("click", () => {
    pin(null);
    canvas.focus({ preventScroll: true });
  });
  new ResizeObserver(() => change({})).observe(picture);
  const themes = new MutationObserver(() => (element.isConnected ? change({}) : themes.disconnect()));
  themes.observe(document.body, { attributeFilter: ["class"] }); // of which Gradio's dark theme is one

  languageChange.subscribe(element, () => {
    setHeadline(find(".headline"), result);
    for (const each of views) each.show?.(result, dropping.whole());
    render();
  });
  createStatus(element, stage);
  newResult.subscribe(element, showNext);
  watch("value", () => showNext({ payload: props.value, view: null, restored: false }));
  showNext(newResult.latest() ?? { payload: props.value, view: null, restored: false }); // the inputs may have been first

  // For tests: the state, and any map by name.
  stage.__stage = {
    choices,
    current: () => result,
    map: (view) => methods[view.method ?? choices.method].map(result, { ...choices, query: null, ...view }),
    scene: () => scene,
  };
}
