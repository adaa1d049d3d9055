// @ts-check
// What one is looking at, how to look around, and how the map is computed: the section of the project's docs.

import { setText } from "../../../shared/dom.js";
import { createTermList, createTooltip, setExplainedText } from "../../../shared/glossary/glossary.js";
import { english, translate } from "../../../shared/language.js";
import { createReplyCache } from "../../../shared/requests.js";
import { className } from "../../format.js";
import { isFaint } from "../../heatmapColours.js";
import { placeAmong } from "../../methods.js";

export const order = 20;
export const offline = true;

export const html = `
  <section class="card about">
    <h2>What you are looking at</h2>
    <p class="sentence"></p>
    <p class="pills"><span class="pill dependence"></span><span class="pill cost"></span><a class="pill rank" target="_blank" rel="noopener"></a></p>
    <p class="hint mouse"></p>
    <p class="hint touch"></p>
    <div class="further">
    <details class="terms">
      <summary>What the words mean</summary>
      <dl></dl>
    </details>
    <details class="method-docs">
      <summary>How is this computed?</summary>
      <div class="text" tabindex="0" role="region" aria-label="How this map is computed"></div>
    </details>
    </div>
  </section>`;

const isServed = import.meta.url.startsWith("http"); // not in a notebook, which has no other page

export function create(card, { request }) {
  const find = (selector) => card.querySelector(selector);
  const tooltip = createTooltip(card);
  const docs = createMethodDocs(find(".method-docs"), request);
  const intro = card.parentElement.querySelector(".welcome .what"); // in the card that a first visitor sees instead
  let explained = ""; // the sentence without that of the patch under the pointer

  function show(result) {
    createTermList(find(".terms dl")); // in the language of now
    if (result) return;
    setText(find(".sentence"), english("Nothing yet. The colours will show what the model attends to."));
    for (const name of [".dependence", ".cost", ".rank"]) setText(find(name), "");
  }

  function draw({ result, method, view, map, choices, chosenMethod, pinnedView }) {
    const isFaintMap = map && isFaint(map, method.style(result));
    const faint = isFaintMap ? ` *${translate("Nothing stands out.")}* ${translate(method.faintReason)}` : "";
    setExplainedText(find(".sentence"), method.sentence(result, view) + faint, tooltip);
    const dependence = method.classSpecific ? english("depends on the class") : english("the same for every class");
    setText(find(".dependence"), dependence);
    setText(find(".cost"), method.cost);
    const place = isMeasured(result, method, view) ? placeAmong(method, result.source.preset) : null;
    setText(find(".rank"), place ? `${translate("faithfulness rank: {place}", { place })} ↗` : "");
    find(".rank").title =
      result.source.preset in (method.places ?? {})
        ? english("Its place among all methods, by deletion and insertion on 20 pictures for this network.")
        : english("Its place among all methods, by deletion and insertion on 20 pictures for each of three networks.");
    if (isServed) find(".rank").href = `./faithfulness#${choices.method}`;
    for (const [way, words] of Object.entries(hints(choices, chosenMethod))) setText(find(`.hint.${way}`), words);
    docs.setMethod(choices.method);
    setText(intro, introOf(result, method, view, choices));
    const next = chosenMethod.sentence(result, pinnedView);
    if (next !== explained) card.scrollTop = 0; // what was opened below it would hide it
    explained = next;
  }

  return { show, draw, retry: docs.retry };
}

/** Whether the map is the one of its method that the benchmark measures. */
const isMeasured = ({ numBlocks }, { uses }, { block, head, query, direction }) =>
  !uses.includes("patch") || (block === numBlocks - 1 && head < 0 && query === null && direction === "from");

/** What the colours of the map are, for a first visitor. */
function introOf(result, method, view, { hovered }) {
  const isAttention = method.uses.includes("patch") && view.direction === "from";
  if (isAttention && view.query === null)
    return english("The more a patch is coloured, the more the network looks there for its answer.");
  if (isAttention && view.query === hovered)
    return english("The more a patch is coloured, the more the patch under the pointer attends to it.");
  if (!method.classSpecific) return method.sentence(result, view);
  return translate("The colours show which patches are evidence for *{name}*.", { name: className(result, view) });
}

/** What pointing at a patch does now, for a mouse and for a finger. */
function hints({ dropping }, { uses }) {
  if (dropping) {
    return {
      mouse: english(
        "Click a patch, or brush over several, to remove them; do it again to restore them. Arrow keys and Enter do the same.",
      ),
      touch: english("Tap a patch, or brush over several, to remove them; do it again to restore them."),
    };
  }
  if (!uses.includes("patch")) {
    return {
      mouse: english("Point at a patch to read its value, or move there with the arrow keys."),
      touch: english("Tap a patch to read its value."),
    };
  }
  return {
    mouse: english("Point at a patch for its own map; click it, or use the arrow keys, to keep that. Esc goes back."),
    touch: english("Tap a patch for its own map. Tap it again to go back."),
  };
}

/** Loads the section about a method when it is opened, and again when a request failed. */
export function createMethodDocs(panel, request) {
  const text = panel.querySelector(".text");
  const replies = createReplyCache(request, write);
  let current = "";
  let written = ""; // the method whose section is on the page

  function write() {
    if (!panel.open || written === current) return;
    const { value, error } = replies.get(panel, { kind: "method_docs", method: current }, ({ html }) => html);
    if (error) text.replaceChildren(error);
    else if (value !== null) text.innerHTML = value;
    written = value === null ? "" : current;
  }

  function setMethod(method) {
    if (method === current) return;
    current = method;
    write();
  }

  function retry() {
    replies.retry();
    write();
  }

  panel.addEventListener("toggle", retry);
  return { setMethod, retry };
}
