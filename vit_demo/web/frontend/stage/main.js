// Starts a stage: its parts, the cards of its views, and the results that it is given.

import { setConstants } from "../shared/constants.js";
import { make, setProgress, setText } from "../shared/dom.js";
import { english, languageChange, languageReady } from "../shared/language.js";
import { FIRST_VIEW } from "../shared/link.js";
import {
  clickedPatch,
  isAwaited,
  newResult,
  pageState,
  REPLACE,
  resultStatus,
  shownResult,
} from "../shared/pageState.js";
import { createReplyCache, createRequestIds, pause, SETTLE, sendRequest } from "../shared/requests.js";
import { createCaption, setHeadline } from "./caption.js";
import { changesWith } from "./choices.js";
import { createControls } from "./controls.js";
import { createDropping } from "./dropping.js";
import { createLesson } from "./lesson.js";
import { describeMethods } from "./methods.js";
import { createCurves, mapFields, servedMap } from "./onDemand.js";
import { listenToPatches } from "./pictureCanvas.js";
import { openResult } from "./result.js";
import { createSections, createStatus, createWelcome, FIRST_SECTION } from "./sections.js";
import {
  change,
  choicesOf,
  clickPatch,
  createState,
  keptClass,
  patchActions,
  pickClass,
  pickHead,
  pin,
  redraw,
  render,
  retry,
  showSimilar,
} from "./stage.js";

/** Starts the stage in its element; called by Gradio for each stage of a page (see modules.py). */
export async function mount({ element, props, server, watch, ...given }) {
  const { registered, viewNames, constants, ...data } = given;
  setConstants(constants);
  const viewModules = await Promise.all(viewNames.map((name) => import(`./views/${name}/view.js`)));
  await languageReady; // so that nothing is shown in English first
  if (!pageState.get()) pageState.open({ view: FIRST_VIEW }); // without inputs, as in a notebook
  const stage = createState(element, describeMethods(registered));

  /** The result on the stage is not asked about while the next one is awaited, whose choices these may be. */
  async function request(fields, options) {
    const { result } = stage;
    const isOfIt = result && (fields.source === result.source || fields.kind === "result");
    while (isOfIt && isAwaited()) await pause(SETTLE);
    return result === stage.result ? sendRequest(server, fields, options) : null;
  }

  stage.parts = createParts(stage, request, viewModules, { ...data, upload: server.upload });
  const { find, host, methods, parts } = stage;

  listenToPatches(stage.canvas, () => stage.result, patchActions(stage));
  stage.picture.addEventListener("pointerenter", () => redraw(stage)); // loads the trace before the pointer reaches a patch
  clickedPatch.subscribe(element, (patch) => clickPatch(stage, patch));
  const toggle = (name, part) => change(stage, { [name]: !choicesOf(stage)[name], ...part });
  find(".drop").addEventListener("click", () => toggle("dropping", { pinned: null }));
  find(".smooth").addEventListener("click", () => toggle("smooth"));
  find(".follow").addEventListener("click", () => toggle("follows", { pinned: null }));
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
  new ResizeObserver(() => redraw(stage)).observe(stage.picture);
  const themes = new MutationObserver(() => (element.isConnected ? redraw(stage) : themes.disconnect()));
  themes.observe(document.body, { attributeFilter: ["class"] }); // of which Gradio's dark theme is one

  languageChange.subscribe(element, () => {
    setHeadline(find(".headline"), stage.result);
    for (const each of parts.views) each.show?.(stage.result, parts.dropping.whole());
    render(stage);
  });
  createStatus(element, host);
  createLesson(host);
  // Until a new result is there the old one stays as it is; a visitor may look around in it.
  for (const each of [pageState, resultStatus]) each.subscribe(element, () => isAwaited() || redraw(stage));
  const opened = createRequestIds(); // a payload that is opened while a later one has come is not shown
  function show({ payload, ...message }) {
    return showNext(stage, { payload: payload ?? stage.latestPayload ?? props.value, ...message }, opened.start());
  }
  newResult.subscribe(element, show);
  watch("value", () => show({ payload: props.value }));
  show(newResult.latest() ?? { payload: props.value }); // the inputs may have been first

  // For tests: the state, and any map by name.
  host.__stage = {
    get choices() {
      return choicesOf(stage);
    },
    current: () => stage.result,
    map(part) {
      const view = { ...choicesOf(stage), query: null, ...part };
      return methods[view.method].map(stage.result, view);
    },
    scene: () => stage.scene,
  };
}

function createParts(stage, request, viewModules, data) {
  const { find, host, methods } = stage;
  const onChange = (part) => change(stage, part);
  const dropping = createDropping(request, {
    chosen: () => (isAwaited() ? stage.result.dropped : choicesOf(stage).dropped),
    keptClass: () => keptClass(stage),
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
    showSimilar: () => showSimilar(stage),
    sectionNames,
  });
  const views = createViews(host, viewModules, context);
  const cards = [
    [find(".look"), [FIRST_SECTION]],
    [find(".welcome"), [FIRST_SECTION]],
    ...views.map(({ card, sections }) => [card, sections]),
  ];
  const sections = createSections(find(".sections"), cards, (section) => {
    const isOpen = section === FIRST_SECTION && choicesOf(stage).section === section;
    onChange(isOpen ? { section, method: FIRST_VIEW.method } : { section }); // its own name leads back to its first map
  });
  if (sections.isOffered("steps")) createWelcome(find(".welcome"), () => onChange({ section: "steps" }));
  return {
    replies: createReplyCache(request, () => redraw(stage)),
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

/** Shows a payload, which may be the one that is open. */
async function showNext(stage, { payload, restored, isNewest = () => true, onShown = () => {} }, isLatest) {
  const { parts } = stage;
  const isCurrent = () => isLatest() && isNewest();
  stage.latestPayload = payload;
  if (!payload || payload.empty) {
    showEmpty(stage, payload?.message);
    return onShown();
  }
  try {
    // The old result stays until the new one is complete, so that nothing flickers.
    const isOpen = payload === stage.openedPayload;
    const next = isOpen ? stage.result : await openResult(payload);
    if (!isCurrent()) return;
    if (!restored) pageState.changeView(changesWith(pageState.get().view, stage.latest, next), REPLACE);
    if (!isOpen) await prepare(stage, next);
    if (!isCurrent()) return;
    onShown();
    stage.openedPayload = payload;
    if (stage.latest.pixelated !== next.pixelated) stage.pointing.dropping = false; // the other tab
    if (!isOpen) parts.dropping.start(next);
    showResult(stage, next);
  } catch (error) {
    console.error(error);
    if (!isCurrent()) return;
    showEmpty(stage, english("This result could not be shown."));
    onShown();
  }
}

/** Waits for the first reply about the map of a new result, so that most maps are there with their picture. */
async function prepare(stage, next) {
  const { result, methods, parts } = stage;
  const choices = { ...choicesOf(stage, next), pinned: null };
  if (!result || methods[choices.method].map) return;
  await servedMap(parts.replies, next, mapFields(methods, next, choices), "next map").firstReply;
}

function showResult(stage, next) {
  const { find, host, latest, parts } = stage;
  if (next.rows !== latest.rows || next.columns !== latest.columns) stage.pointing.hovered = null;
  stage.result = stage.latest = next;
  setText(find(".message"), "");
  setHeadline(find(".headline"), next);
  host.classList.remove("waiting");
  for (const each of parts.views) each.show?.(next, parts.dropping.whole());
  render(stage);
  Object.assign(host.dataset, { run: next.run, top1: next.predictions[0]?.name ?? "", ready: "true" });
  shownResult.publish(next);
}

function showEmpty(stage, message) {
  const { find, host, parts } = stage;
  stage.result = stage.scene = stage.openedPayload = null;
  parts.dropping.cancel();
  parts.replies.release("map");
  setText(find(".message"), message || english("Draw a digit or choose a photo."));
  setHeadline(find(".headline"), null);
  setProgress(find(".view .progress"), false);
  find(".restore").disabled = true;
  host.classList.add("waiting");
  parts.caption.clear();
  for (const each of parts.views) each.show?.(null);
  render(stage);
  Object.assign(host.dataset, { run: "", top1: "", ready: "empty" });
}
