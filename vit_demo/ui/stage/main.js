// The stage: what the visitor chose, what the model answered, and the picture that follows from both.

const canvas = find(".picture");
const choices = {
  method: "attention",
  block: 0,
  head: -1, // the mean of all
  direction: "from",
  opacity: 0.65,
  pinned: null, // a patch
  hovered: null,
};
let result = null;
let last = { blocks: 1, heads: 4 }; // the shape that the choices were made for
let turn = 0; // results that arrive while a later one is being opened are dropped
let frame = 0;

const controls = createControls((part) => change(part));
const showAnswers = createAnswers();
const strip = createStrip((block, head) =>
  change({ method: "attention", direction: "from", pinned: null, block, head }));
const fetcher = createFetcher((owner) => owner === result && render());

/** Changes some choices and draws them with the next frame, however many changes come before it. */
function change(part) {
  const chosen = part.block !== undefined && part.block !== choices.block;
  Object.assign(choices, part);
  if ("pinned" in part) tellSeen(result);
  if (chosen && result) fetcher.want(result, choices.block);
  frame ||= requestAnimationFrame(render);
}

/** What can be shown of the choices now: until a block's trace is here, its class token. */
function viewOf({ block, head, direction, pinned, hovered }) {
  const wanted = { block, head, direction, query: pinned ?? hovered };
  const complete = isSummarised(result, wanted) || result.traces.has(block);
  return complete ? { ...wanted, complete } : { ...wanted, query: null, direction: "from", complete };
}

function render() {
  frame = 0;
  controls.sync(choices, last, Boolean(result));
  if (!result) return;
  const method = METHODS[choices.method];
  const view = viewOf(choices);
  const map = method.map(result, view);
  const patch = method.asks ? choices.pinned ?? choices.hovered : null;
  const size = fitCanvas(canvas, find(".view"), result.size);
  paintResult(canvas, size, result, { map, opacity: choices.opacity, marked: patch, pointed: choices.hovered });
  strip.mark(choices, method.asks);
  describe(method, view, map);
}

function describe(method, view, map) {
  const subject = method.subject(result, view);
  setText(find(".what"), subject);
  setText(find(".value"), valueLine(method, view, map));
  setText(find(".peak"), share(peakOf(map)));
  setText(find(".sentence"), method.sentence(result, view));
  setText(find(".pill"), method.pill);
  find(".back").classList.toggle("away", choices.pinned === null || !method.asks);
  const spoken = `The picture under its heatmap: ${subject.replaceAll("*", "")}.`;
  canvas.setAttribute("aria-label", `${spoken} Arrow keys choose a patch, Escape leaves it.`);
}

function valueLine(method, view, map) {
  if (method.asks && !view.complete) {
    const fate = fetcher.failed(result, choices.block) ? "did not arrive" : "is on its way";
    return `The rest of this block ${fate}; this is its ${restingName(result)}.`;
  }
  if (choices.hovered === null) return `brightest patch ${share(peakOf(map))}`;
  const [before, after] = method.share(result, view, choices.hovered);
  return `${before}*${share(map[choices.hovered])}*${after}`;
}

function pin(patch) {
  change({ pinned: patch });
  const news = patch === null ? `Back to the ${restingName(result)}.` : `Pinned patch ${patchPlace(result, patch)}.`;
  setText(find(".pinned"), news);
}

/** A click on a patch, here or in the small photo. */
function pick(patch) {
  if (result && METHODS[choices.method].asks) pin(patch === choices.pinned ? null : patch);
}
document.addEventListener("vit-demo:pick", (event) => pick(event.detail));

followPatches(canvas, () => result, {
  hover: (patch) => patch !== choices.hovered && change({ hovered: patch }),
  pick,
  move(step) {
    const from = choices.pinned ?? choices.hovered;
    const middle = Math.floor(result.rows / 2) * result.columns + Math.floor(result.columns / 2);
    if (METHODS[choices.method].asks) pin(from === null ? middle : neighbour(result, from, step));
  },
  leave() {
    choices.hovered = null;
    pin(null);
  },
});
find(".back").addEventListener("click", () => {
  pin(null);
  canvas.focus({ preventScroll: true });
});

/** Choices outlive a result as long as they mean the same in the next one. */
function keepChoices(before, after) {
  const sameNetwork = before.blocks === after.blocks && before.heads === after.heads;
  const sameGrid = before.rows === after.rows && before.columns === after.columns;
  if (!sameNetwork) Object.assign(choices, { block: after.blocks - 1, head: -1 });
  if (!sameGrid) Object.assign(choices, { pinned: null, hovered: null });
}

function showHints({ class_token: hasClassToken }) {
  const way = hasClassToken ? "returns to the class token" : "lets it go";
  setText(find(".hint.mouse"), `Hover a patch to see where it looks. Click pins it, arrow keys move it, Esc ${way}.`);
  setText(find(".hint.touch"), `Tap a patch to see where it looks. Tapping it again ${way}.`);
  setText(find(".back"), hasClassToken ? "← class token" : "← all tokens");
  find(".back").setAttribute("aria-label", hasClassToken ? "Back to class token" : "Back to all tokens");
}

function showEmpty(message) {
  result = null;
  setText(find(".message"), message || "Draw a digit or choose a photo.");
  for (const words of [".what", ".value", ".peak", ".pill"]) setText(find(words), "");
  setText(find(".sentence"), "Nothing yet. The colours will show where the model looks.");
  find(".back").classList.add("away");
  showAnswers(null);
  find(".stage").classList.add("waiting");
  tellSeen(null);
  announce({ run: "", top1: "", ready: "empty" });
  render();
}

function showResult(next) {
  keepChoices(last, next);
  result = last = next;
  fetcher.want(result, choices.block);
  setText(find(".message"), "");
  find(".stage").classList.remove("waiting");
  showHints(result);
  showAnswers(result);
  strip.draw(result);
  render();
  tellSeen(result);
  announce({ run: result.run, top1: result.top[0]?.label ?? "", ready: "true" });
}

/** Tells the pad which digit the model read, if it was one, or which part of which photo. */
function tellSeen(shown) {
  window.vitDemoSeen = shown?.pixelated ? shown.image : null;
  const { photo, rows, columns } = shown ?? {};
  window.vitDemoPhoto = photo ? { ...photo, rows, columns, pinned: choices.pinned } : null;
  document.dispatchEvent(new CustomEvent("vit-demo:seen"));
}

function announce(data) {
  Object.assign(find(".stage").dataset, data);
}

async function adopt(payload) {
  const mine = ++turn;
  if (!payload || payload.empty) return showEmpty(payload?.message);
  try {
    // The old result stays until the new one is whole, so that nothing blinks.
    const next = await openResult(payload);
    if (mine === turn) showResult(next);
  } catch (error) {
    console.error(error);
    if (mine === turn) showEmpty("This result could not be shown.");
  }
}

find(".scale i").style.background = heatGradient();
new ResizeObserver(() => change({})).observe(find(".view"));
watch("value", () => adopt(props.value));
adopt(props.value);

// For tests: the state, and any map by name.
find(".stage").__stage = {
  choices,
  current: () => result,
  map: (view) => METHODS[view.method ?? choices.method].map(result, { ...choices, query: null, ...view }),
};
