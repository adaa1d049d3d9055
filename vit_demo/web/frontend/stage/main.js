// Starts a stage: its parts, the cards of its views, and the results that it is given.

import { setConstants } from "../shared/constants.js";
import { make, setProgress, setText } from "../shared/dom.js";
import { english, languageChange, languageReady } from "../shared/language.js";
import { clickedPatch, newResult, pageState, REPLACE, shownResult } from "../shared/pageState.js";
import { createReplyCache, createRequestIds, sendRequest } from "../shared/requests.js";
import { createCaption, setHeadline } from "./caption.js";
import { keepChoices, validChoices } from "./choices.js";
import { createControls } from "./controls.js";
import { createDropping } from "./dropping.js";
import { describeMethods } from "./methods.js";
import { createCurves, mapFields, servedMap } from "./onDemand.js";
import { listenToPatches } from "./pictureCanvas.js";
import { openResult } from "./result.js";
import { createSections, createStatus, createWelcome, FIRST_SECTION } from "./sections.js";
import {
  change,
  clickPatch,
  createState,
  patchActions,
  pickClass,
  pickHead,
  pin,
  publishInput,
  publishView,
  render,
  retry,
} from "./stage.js";

/** Starts the stage in its element; called by Gradio for each stage of a page (see modules.py). */
export async function mount({ element, props, server, watch, ...given }) {
  const { registered, viewNames, constants, ...data } = given;
  setConstants(constants);
  const viewModules = await Promise.all(viewNames.map((name) => import(`./views/${name}/view.js`)));
  await languageReady; // so that nothing is shown in English first
  const stage = createState(element, describeMethods(registered));
  const request = (fields, options) => sendRequest(server, fields, options);
  stage.parts = createParts(stage, request, viewModules, { ...data, upload: server.upload });
  const { find, host, choices, methods, parts } = stage;

  listenToPatches(stage.canvas, () => stage.result, patchActions(stage));
  stage.picture.addEventListener("pointerenter", () => change(stage, {})); // loads the trace before the pointer reaches a patch
  clickedPatch.subscribe(element, (patch) => clickPatch(stage, patch));
  find(".drop").addEventListener("click", () => change(stage, { dropping: !choices.dropping, pinned: null }));
  find(".smooth").addEventListener("click", () => change(stage, { smooth: !choices.smooth }));
  find(".follow").addEventListener("click", () => change(stage, { follows: !choices.follows, pinned: null }));
  find(".restore").addEventListener("click", () => {
    change(stage, { dropping: false });
    parts.dropping.restoreAll();
  });
  find(".enlarge").hidden = !document.fullscreenEnabled;
  find(".enlarge").addEventListener("click", () =>
    document.fullscreenElement ? document.exitFullscreen() : find(".look").requestFullscreen(),
  );
  find(".back").addEventListener("click", () => {
    pin(stage, null);
    stage.canvas.focus({ preventScroll: true });
  });
  new ResizeObserver(() => change(stage, {})).observe(stage.picture);
  const themes = new MutationObserver(() => (element.isConnected ? change(stage, {}) : themes.disconnect()));
  themes.observe(document.body, { attributeFilter: ["class"] }); // of which Gradio's dark theme is one

  languageChange.subscribe(element, () => {
    setHeadline(find(".headline"), stage.result);
    for (const each of parts.views) each.show?.(stage.result, parts.dropping.whole());
    render(stage);
  });
  createStatus(element, host);
  const opened = createRequestIds(); // a payload that is opened while a later one has come is not shown
  function show({ payload, view = null, restored = false, ...calls }) {
    const latest = payload ?? stage.latestPayload ?? props.value;
    return showNext(stage, { payload: latest, view, restored, ...calls }, opened.start());
  }
  newResult.subscribe(element, show);
  watch("value", () => show({ payload: props.value }));
  show(newResult.latest() ?? { payload: props.value }); // the inputs may have been first

  // For tests: the state, and any map by name.
  host.__stage = {
    choices,
    current: () => stage.result,
    map: (view) => methods[view.method ?? choices.method].map(stage.result, { ...choices, query: null, ...view }),
    scene: () => stage.scene,
  };
}

function createParts(stage, request, viewModules, data) {
  const { find, host, methods } = stage;
  const onChange = (part) => change(stage, part);
  const dropping = createDropping(request, {
    prepare: (result) => prepare(stage, result),
    show: (result) => showResult(stage, result),
    onChange,
  });
  const context = {
    ...data,
    request,
    methods,
    change: onChange,
    pickClass: (index) => pickClass(stage, index),
    pickHead: (block, head) => pickHead(stage, block, head),
    curves: createCurves(request), // what one card has measured is not measured again
  };
  const sectionNames = viewModules.flatMap(({ sections = [FIRST_SECTION] }) => sections);
  const controls = createControls(find(".look"), methods, {
    onChange,
    retry: () => retry(stage),
    sectionNames,
  });
  const views = createViews(host, viewModules, context);
  const cards = [
    [find(".look"), [FIRST_SECTION]],
    [find(".welcome"), [FIRST_SECTION]],
    ...views.map(({ card, sections }) => [card, sections]),
  ];
  const sections = createSections(find(".sections"), cards, (section) => onChange({ section }));
  if (sections.isOffered("steps")) createWelcome(find(".welcome"), () => onChange({ section: "steps" }));
  return {
    replies: createReplyCache(request, () => onChange({})),
    dropping,
    controls,
    caption: createCaption(find(".look"), onChange),
    views,
    sections,
  };
}

/** Adds the cards of all views, in their order. */
function createViews(host, viewModules, context) {
  viewModules.sort((a, b) => a.order - b.order);
  return viewModules.map(({ html, create, sections = [FIRST_SECTION] }) => {
    const card = make("template", { innerHTML: html.trim() }).content.firstElementChild;
    host.append(card);
    return { card, sections, ...create(card, context) };
  });
}

/** Shows a payload, which may be the one that is open, with the view of the page's state, if it has any for it. */
async function showNext(stage, { payload, view, restored, isNewest = () => true, onShown = () => {} }, isLatest) {
  const { choices, parts } = stage;
  const isCurrent = () => isLatest() && isNewest();
  stage.latestPayload = payload;
  // That of now: the visitor may have chosen something while the result was opened.
  const takeView = () => view && Object.assign(choices, pageState.get().view);
  if (!payload || payload.empty) {
    takeView();
    showEmpty(stage, payload?.message);
    return onShown();
  }
  try {
    // The old result stays until the new one is complete, so that nothing flickers.
    const isOpen = payload === stage.openedPayload;
    const next = isOpen ? stage.result : await openResult(payload);
    if (!isOpen) await prepare(stage, next);
    if (!isCurrent()) return;
    takeView();
    stage.openedPayload = payload;
    if (!isOpen) parts.dropping.start(next);
    showResult(stage, next, restored ? null : stage.shape);
    if (view) publishView(choices, REPLACE);
    if (view) parts.dropping.restore(choices.dropped);
  } catch (error) {
    console.error(error);
    if (isCurrent()) showEmpty(stage, english("This result could not be shown."));
  }
  if (isCurrent()) onShown();
}

/** Waits for the first reply about the map of a new result, so that most maps are there with their picture. */
async function prepare({ result, shape, choices, methods, parts }, next) {
  const isServed = !methods[choices.method].map;
  const sameNetwork = result && next.numBlocks === shape.numBlocks && next.numHeads === shape.numHeads;
  if (!isServed || !sameNetwork || !next.predictions.length) return;
  const fields = mapFields(methods, next, { ...choices, pinned: null });
  await servedMap(parts.replies, next, fields, "next map").firstReply;
}

/** `before` is the shape that the choices were made for; null where they came with the result. */
function showResult(stage, next, before = stage.shape) {
  const { find, host, choices, methods, parts } = stage;
  if (before) keepChoices(choices, before, next);
  validChoices(choices, methods, parts.sections, next);
  stage.result = stage.shape = next;
  setText(find(".message"), "");
  setHeadline(find(".headline"), next);
  host.classList.remove("waiting");
  for (const each of parts.views) each.show?.(next, parts.dropping.whole());
  render(stage);
  publishInput(stage);
  Object.assign(host.dataset, { run: next.run, top1: next.predictions[0]?.name ?? "", ready: "true" });
  shownResult.publish(next);
}

function showEmpty(stage, message) {
  const { find, host, choices, parts } = stage;
  stage.result = stage.scene = stage.openedPayload = null;
  parts.dropping.cancel();
  parts.replies.release("map");
  if (!parts.sections.isOffered(choices.section)) choices.section = FIRST_SECTION;
  setText(find(".message"), message || english("Draw a digit or choose a photo."));
  setHeadline(find(".headline"), null);
  setProgress(find(".view .progress"), false);
  find(".restore").disabled = true;
  host.classList.add("waiting");
  parts.caption.clear();
  for (const each of parts.views) each.show?.(null);
  publishInput(stage);
  Object.assign(host.dataset, { run: "", top1: "", ready: "empty" });
  render(stage);
}
