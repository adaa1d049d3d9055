// @ts-check
// Starts a stage: its parts, the cards of its views, and the results that it is given.

import { camera } from "../shared/camera.js";
import { setConstants } from "../shared/constants.js";
import { documentEvents, make, setProgress, setText } from "../shared/dom.js";
import { english, languageChange, languageReady } from "../shared/language.js";
import { FIRST_VIEW } from "../shared/link.js";
import {
  isAwaited,
  newResult,
  pageState,
  REPLACE,
  RESTORE,
  resultStatus,
  shownResult,
  toTeach,
} from "../shared/pageState.js";
import { createReplyCache, createRequestIds, pause, SETTLE, sendRequest } from "../shared/requests.js";
import { followLesson, listenToActs } from "./acts.js";
import { createCaption } from "./caption.js";
import { changesWith } from "./choices.js";
import { createDrawer } from "./drawer.js";
import { createDrawing } from "./drawing.js";
import { createDropping } from "./dropping.js";
import { describeMethods } from "./methods.js";
import { isStill } from "./motion.js";
import { createCurves, mapFields, servedMap } from "./onDemand.js";
import { listenToPatches } from "./picture.js";
import { render } from "./render.js";
import { openResult } from "./result.js";
import { createSections, createStatus, EXPLORE, FIRST_SECTION } from "./sections.js";
import { createSmallestSets } from "./smallestSets.js";
import {
  change,
  choicesOf,
  chooseMode,
  createState,
  glideToTeach,
  isPaper,
  keptClass,
  patchActions,
  pickBlock,
  pickClass,
  redraw,
  retry,
  showWord,
  verbOf,
} from "./stage.js";
import { createStripAndRope } from "./stripAndRope.js";

/** Starts the stage in its element; called by Gradio for each stage of a page (see modules.py). */
export async function mount({ element, props, server, watch, ...given }) {
  const { registered, viewNames, constants, ...data } = given;
  setConstants(constants);
  const viewModules = await Promise.all(
    viewNames.map(async (name) => ({ name, ...(await import(`./views/${name}/view.js`)) })),
  );
  await languageReady; // so that nothing is shown in English first
  if (!pageState.get()) pageState.open({ view: FIRST_VIEW }); // without inputs, as in a notebook
  const stage = createState(element, describeMethods(registered));
  stage.render = () => render(stage);
  if (!data.stepCode) stage.pointing.verb = "look"; // a notebook has no server that runs the network again

  /** The result on the stage is not asked about while the next one is awaited, whose choices these may be. */
  async function request(fields, options) {
    const { result } = stage;
    const isOfIt = result && (fields.source === result.source || fields.kind === "result");
    while (isOfIt && isAwaited()) await pause(SETTLE);
    return result === stage.result ? sendRequest(server, fields, options) : null;
  }

  stage.parts = createParts(stage, request, viewModules, { ...data, upload: server.upload, load: server.load });
  const { find, host, methods, parts } = stage;

  const isDrawnOn = () => isPaper(stage) && verbOf(stage) === "draw";
  listenToPatches(stage.canvas, () => (isDrawnOn() || camera.isOn() ? null : stage.result), patchActions(stage));
  parts.drawing = createDrawing(stage, server);
  listenToActs(stage, server, request);
  stage.picture.addEventListener("pointerenter", () => redraw(stage)); // loads the trace before the pointer reaches a patch
  for (const name of [".tour", ".verbs"]) find(name).hidden = !data.stepCode;
  host.addEventListener("click", ({ target }) => {
    const { dataset } = target.closest("button") ?? target; // what is pressed may be a word in it
    if (dataset.show) showWord(stage, dataset.show);
    if (dataset.mode) chooseMode(stage, dataset.mode);
    if (dataset.named) return toTeach.publish(dataset.named);
    if (!dataset.section) return;
    change(stage, { section: dataset.section });
    scrollTo(0, 0);
  });
  toTeach.subscribe(host, () => glideToTeach(stage));
  find(".trust").hidden = !host.querySelector(".faithfulness");
  find(".trust").addEventListener("click", () => parts.views.find((each) => each.trust)?.trust());
  find(".send").addEventListener("click", async ({ target }) => {
    setText(target, await parts.views.find((each) => each.send)?.send());
  });
  find(".take").hidden = !host.querySelector(".chapter.download");
  find(".take").addEventListener("click", ({ target }) => parts.views.find((each) => each.take)?.take(target));
  new ResizeObserver(() => redraw(stage)).observe(stage.picture);
  const themes = new MutationObserver(() => (element.isConnected ? redraw(stage) : themes.disconnect()));
  themes.observe(document.body, { attributeFilter: ["class"] }); // of which Gradio's dark theme is one

  languageChange.subscribe(element, () => {
    for (const each of parts.views) each.show?.(stage.result, parts.dropping.whole());
    render(stage);
  });
  createStatus(element, host);
  followSection(stage);
  followLesson(stage, server);
  // Until a new result is there the old one stays as it is; a visitor may look around in it.
  for (const each of [pageState, resultStatus]) each.subscribe(element, () => isAwaited() || redraw(stage));
  const seesDropped = (state) => (state?.view.dropped || state?.view.beat) && stage.pointing.verb === "draw";
  pageState.subscribe(element, (state, how) => {
    if (how === RESTORE && seesDropped(state)) stage.pointing.verb = "rub";
  });
  if (seesDropped(pageState.get())) stage.pointing.verb = "rub"; // of the link that the page was opened by
  const startOpening = createRequestIds(); // a payload that is opened while a later one has come is not shown
  function show({ payload, ...message }) {
    return showNext(stage, { payload: payload ?? stage.latestPayload ?? props.value, ...message }, startOpening());
  }
  newResult.subscribe(element, show);
  watch("value", () => show({ payload: props.value }));
  show(newResult.latest() ?? { payload: props.value, digit: data.openingDigit }); // the inputs may have been first

  // For tests: the state, and any map by name.
  host.__stage = {
    get choices() {
      return choicesOf(stage);
    },
    change: (part) => change(stage, part),
    current: () => stage.result,
    map(part) {
      const view = { ...choicesOf(stage), query: null, ...part };
      return methods[view.method].map(stage.result, view);
    },
    scene: () => stage.scene,
    film: () => stage.film,
  };
}

function createParts(stage, request, viewModules, data) {
  const { find, host, methods } = stage;
  const onChange = (part) => change(stage, part);
  const dropping = createDropping(request, {
    chosen: () => (isAwaited() ? stage.result : choicesOf(stage)),
    keptClass: () => keptClass(stage),
    prepare: (result) => prepare(stage, result),
    show: (result) => showResult(stage, result),
    onChange,
  });
  const line = createStripAndRope(find(".line"), {
    onScrub(index) {
      stage.moments.scrub(index);
      redraw(stage);
    },
  });
  const context = {
    ...data,
    request,
    methods,
    change: onChange,
    pickClass: (index) => pickClass(stage, index),
    pickBlock: (block, head) => pickBlock(stage, block, head),
    redraw: () => redraw(stage),
    restore: () => dropping.restoreAll(),
    dropping,
    curves: createCurves(request), // what one card has measured is not measured again
  };
  const views = createViews(host, viewModules, context);
  const sections = createSections(
    [[find(".explore"), EXPLORE], ...views.filter(({ card }) => card).map(({ card, sections }) => [card, sections])],
    (section) => {
      // Within Explore its name leads back to its first map; from elsewhere to the map that was chosen.
      const isBack = section === FIRST_SECTION && EXPLORE.includes(choicesOf(stage).section);
      onChange(isBack ? { section, method: FIRST_VIEW.method, plain: false } : { section });
      scrollTo(0, 0);
    },
  );
  return {
    replies: createReplyCache(request, () => redraw(stage)),
    dropping,
    drawer: createDrawer(host, methods, {
      onChange,
      retry: () => retry(stage),
      modes: views.flatMap(({ modes = [] }) => modes),
      request,
    }),
    caption: createCaption(host),
    line,
    drawing: /** @type {any} */ (null), // made once the others are there
    film: /** @type {any} */ (null), // a promise of it, once it is wanted
    smallestSets: createSmallestSets(host, {
      request,
      onDrop(dropped, before) {
        const isOther = before && String([...dropping.dropped()]) !== String(before); // the visitor has gone on
        if (!isOther) dropping.leaveOut({ dropped }, Boolean(before));
      },
      redraw: () => redraw(stage),
    }),
    views,
    sections,
  };
}

/**
 * Adds the views in their order.
 *
 * @param {any} host
 * @param {import("./views/contract.d.ts").ViewModule[]} viewModules
 * @param {import("./views/contract.d.ts").Context} context
 */
function createViews(host, viewModules, context) {
  return viewModules.map(({ name, html, create, sections = EXPLORE }) => {
    if (!html) return { card: null, sections, ...create(host, context) };
    const card = make("template", { innerHTML: html.trim() }).content.firstElementChild;
    const place = host.querySelector(`[data-place=${name}]`);
    if (place) place.replaceWith(card);
    else host.append(card);
    return { card, sections, ...create(card, context) };
  });
}

/** Scrolls to what a link, a button or a next task opened; a chapter is left when the visitor scrolls to the top. */
function followSection(stage) {
  const { host } = stage;
  let section = "";
  let lesson = /** @type {number | null} */ (null);

  function follow() {
    const next = choicesOf(stage).section;
    const { lesson: task } = pageState.get().view;
    const isNewTask = Boolean(task) && task !== lesson;
    host.classList.toggle("tasked", Boolean(task));
    if ((next === section && !isNewTask) || !stage.result) return;
    [section, lesson] = [next, task];
    if (section === "features" && !task) stage.parts.drawer.open(true);
    if (section !== "steps" && (isNewTask || !EXPLORE.includes(section))) scrollTo(0, 0);
    const behavior = stage.film && !isStill() ? "smooth" : "auto";
    if (section === "steps") host.querySelector(".steps")?.scrollIntoView({ block: "start", behavior });
  }

  pageState.subscribe(host, follow);
  shownResult.subscribe(host, follow);
  documentEvents(host)("scrollend", () => {
    if (scrollY === 0 && choicesOf(stage).section === "steps") change(stage, { section: FIRST_SECTION });
  });
}

/** Shows a payload, which may be the one that is open. */
async function showNext(
  stage,
  { payload, digit = undefined, restored = false, isNewest = () => true, onShown = () => {} },
  isLatest,
) {
  const { parts } = stage;
  const isCurrent = () => isLatest() && isNewest();
  stage.latestPayload = payload;
  if (!payload || payload.empty) {
    showEmpty(stage, payload ?? {});
    return onShown();
  }
  try {
    // The old result stays until the new one is complete, so that nothing flickers.
    const isOpen = payload === stage.openedPayload;
    const next = isOpen ? stage.result : await openResult(payload);
    next.exampleDigit ??= digit; // of which the payload has the pixels alone
    if (!isCurrent()) return;
    if (!restored) pageState.changeView(changesWith(pageState.get().view, stage.latest, next), REPLACE);
    if (!isOpen) await prepare(stage, next);
    if (!isCurrent()) return;
    onShown();
    stage.openedPayload = payload;
    if (!isOpen) parts.dropping.start(next);
    const isFirst = stage.host.dataset.ready === "false";
    showResult(stage, next);
    if (isFirst && isPaper(stage) && verbOf(stage) === "draw") parts.drawing.open();
  } catch (error) {
    console.error(error);
    if (!isCurrent()) return;
    showEmpty(stage, { message: english("This result could not be shown.") });
    onShown();
  }
}

/** Waits for the first reply about the map of a new result, so that most maps are there with their picture. */
async function prepare(stage, next) {
  const { methods, parts } = stage;
  const choices = { ...choicesOf(stage, next), pinned: null };
  if (stage.host.dataset.ready === "false" || methods[choices.method].map) return;
  await servedMap(parts.replies, next, mapFields(methods, next, choices), "next map").firstReply;
}

function showResult(stage, next) {
  const { find, host, latest, parts } = stage;
  if (next.rows !== latest.rows || next.columns !== latest.columns) stage.pointing.hovered = null;
  stage.result = stage.latest = next;
  parts.drawing?.end(next);
  setText(find(".message"), "");
  stage.picture.style.backgroundImage = "";
  host.classList.remove("waiting");
  for (const each of parts.views) each.show?.(next, parts.dropping.whole());
  render(stage);
  Object.assign(host.dataset, { run: next.run, top1: next.predictions[0]?.name ?? "", ready: "true" });
  shownResult.publish(next);
}

/** Shows a message, by default what to do; for an empty one the page is loading, and `picture` is the address of a copy. */
function showEmpty(stage, { message = english("Draw a digit or choose a photo."), picture = "" }) {
  const { find, host, parts } = stage;
  stage.result = stage.scene = stage.openedPayload = null;
  parts.drawing?.end(null);
  stage.film?.close();
  parts.dropping.cancel();
  parts.replies.release("map");
  setText(find(".message"), message);
  stage.picture.style.backgroundImage = picture && `url("${picture}")`;
  setProgress(find(".view .progress"), !message);
  host.classList.add("waiting");
  parts.caption.clear();
  for (const each of parts.views) each.show?.(null);
  Object.assign(host.dataset, { run: "", top1: "", ready: message ? "empty" : "loading" });
  render(stage);
}
