// The stage: what the visitor chose, what the model answered, and the picture that follows from both.

const canvas = find(".picture");
const choices = {
  method: "attention",
  block: 0,
  head: -1, // the mean of all
  direction: "from",
  opacity: 0.65,
  label: null, // the index of a class; the first answer for null
  pinned: null, // a patch
  hovered: null,
  knocking: false, // whether a click takes a patch out of the picture
};
let result = null;
let last = { blocks: 1, heads: 4 }; // the shape that the choices were made for
let scene = null; // what the picture shows: {result, method, view, map}
let turn = 0; // results that arrive while a later one is being opened are dropped
let frame = 0;

const controls = createControls((part) => change(part));
const answers = createAnswers(pickClass);
const strip = createStrip((block, head) =>
  change({ method: "attention", direction: "from", pinned: null, block, head }));
const fetcher = createFetcher((owner) => owner === result && render());
const maps = createMaps(() => change({}));
const making = createMaking();
const knockout = createKnockout(firstWord, showResult, () => change({ pinned: null }));
const syncBelieve = createBelieve();
const syncDepths = createDepths();

/** Changes some choices and draws them with the next frame, however many changes come before it. */
function change(part) {
  const chosen = part.block !== undefined && part.block !== choices.block;
  Object.assign(choices, part);
  if ("pinned" in part) tellSeen(result);
  if (chosen && result) fetcher.want(result, choices.block);
  frame ||= requestAnimationFrame(render);
}

/** What can be shown of the choices now: until a block's trace is here, its class token. */
function viewOf({ block, head, direction, pinned, hovered, label, knocking }) {
  const asking = knocking ? null : pinned ?? hovered;
  const query = asking === null || result.tokenOf[asking] < 0 ? null : asking; // a patch that is gone looks nowhere
  const wanted = { block, head, direction, label, query };
  const complete = isSummarised(result, wanted) || result.traces.has(block);
  return complete ? { ...wanted, complete } : { ...wanted, query: null, direction: "from", complete };
}

/** Makes the scene what is chosen, or leaves it as it is while the server works on that; gives the map's fate. */
function setScene() {
  const method = METHODS[choices.method];
  const view = viewOf(choices);
  if (!method.served) {
    maps.rest();
    scene = { result, method, view, map: method.map(result, view) };
    return null;
  }
  const fate = maps.want(result, questionOf(result, choices));
  if (fate.map || scene?.result !== result) scene = { result, method, view, map: fate.map };
  return fate;
}

function render() {
  frame = 0;
  controls.sync(choices, last, result);
  if (!result) return;
  const fate = setScene();
  const { method, view, map } = scene;
  const marked = method.uses.includes("patch") && !choices.knocking ? choices.pinned ?? choices.hovered : null;
  const size = fitCanvas(canvas, find(".view"), result.size);
  const gone = knockout.gone();
  paintResult(canvas, size, result, { map, opacity: choices.opacity, marked, pointed: choices.hovered, gone });
  strip.mark(choices, method.uses.includes("block"));
  answers.mark(method.aboutClass ? targetOf(result, view.label).index : null);
  showWorking(find(".view .working"), Boolean(fate?.slow && !fate.map && !fate.error), fate?.share);
  describe(fate);
}

function describe(fate) {
  const { method, view, map } = scene;
  const subject = method.subject(result, view);
  setText(find(".what"), subject);
  setText(find(".value"), knockout.error() || valueLine(fate));
  setText(find(".peak"), map ? method.write(peakOf(map)) : "");
  setText(find(".sentence"), method.sentence(result, view));
  setText(find(".pill"), pillOf(method));
  find(".back").classList.toggle("away", choices.pinned === null || !method.uses.includes("patch"));
  find(".knock").setAttribute("aria-pressed", String(choices.knocking));
  find(".restore").disabled = !knockout.gone().size;
  find(".stage").classList.toggle("knocking", choices.knocking);
  showHints();
  making.sync(choices.method);
  const target = result.top.length ? targetOf(result, choices.label) : null;
  const question = questionOf(result, choices);
  syncBelieve({ result, question, subject: METHODS[choices.method].subject(result, viewOf({ ...choices, hovered: null })),
    target: target?.index, name: target?.label });
  const spoken = `The picture under its heatmap: ${subject.replaceAll("*", "")}.`;
  canvas.setAttribute("aria-label", `${spoken} Arrow keys choose a patch, Escape leaves it.`);
}

function valueLine(fate) {
  const { method, view, map } = scene;
  if (fate?.error) return fate.error;
  if (fate?.slow && !fate.map) {
    const far = fate.share === null ? "" : ` ${Math.round(100 * fate.share)}${SPACE}%`;
    return `Working out *${METHODS[choices.method].label}* …${far}`;
  }
  if (!map) return "";
  if (method.uses.includes("patch") && !view.complete) {
    const state = fetcher.failed(result, choices.block) ? "did not arrive" : "is on its way";
    return `The rest of this block ${state}; this is its ${restingName(result)}.`;
  }
  if (choices.hovered === null) return `brightest patch ${method.write(peakOf(map))}`;
  if (result.tokenOf[choices.hovered] < 0) return "this patch is knocked out";
  return method.reading(result, view, choices.hovered, map[choices.hovered]);
}

function pin(patch) {
  change({ pinned: patch });
  const news = patch === null ? `Back to the ${restingName(result)}.` : `Pinned patch ${patchPlace(result, patch)}.`;
  setText(find(".pinned"), news);
}

/** Whatever failed is asked for again when a visitor chooses, even what is chosen already, which changes no control. */
function retry() {
  maps.retry();
  making.retry();
  if (result) fetcher.want(result, choices.block);
  change({});
}
for (const bar of element.querySelectorAll("[data-control=method], [data-control=class-method]")) {
  bar.addEventListener("click", (event) => event.target.matches("input") && retry());
  bar.addEventListener("keydown", (event) => [" ", "Enter"].includes(event.key) && retry());
}

/** Shows what speaks for a class; choosing the shown one again goes back to the first answer. */
function pickClass(index) {
  const { aboutClass } = METHODS[choices.method];
  retry();
  if (!aboutClass) change({ method: CLASS_METHOD, label: index });
  else change({ label: targetOf(result, choices.label).index === index ? null : index });
}

const pins = () => METHODS[choices.method].uses.includes("patch");

/** Takes a patch out of the picture, or puts it back. */
function knock(patch) {
  knockout.toggle(patch);
  const fate = knockout.gone().has(patch) ? "Knocked out" : "Put back";
  setText(find(".pinned"), `${fate} patch ${patchPlace(result, patch)}.`);
}

/** A click on a patch, here or in the small photo. */
function pick(patch) {
  if (!result) return;
  if (choices.knocking) knock(patch);
  else if (pins()) pin(patch === choices.pinned ? null : patch);
  else change({ hovered: patch });
}
document.addEventListener("vit-demo:pick", (event) => pick(event.detail));

followPatches(canvas, () => result, {
  hover: (patch) => patch !== choices.hovered && change({ hovered: patch }),
  pick,
  move(step) {
    const from = choices.pinned ?? choices.hovered;
    const middle = Math.floor(result.rows / 2) * result.columns + Math.floor(result.columns / 2);
    const patch = from === null ? middle : neighbour(result, from, step);
    if (pins() && !choices.knocking) pin(patch);
    else change({ hovered: patch });
  },
  press: () => choices.knocking && choices.hovered !== null && knock(choices.hovered),
  leave() {
    choices.hovered = null;
    pin(null);
  },
});
find(".knock").addEventListener("click", () => {
  change({ knocking: !choices.knocking, pinned: null });
});
find(".restore").addEventListener("click", () => knockout.putBack());
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
  if (!after.top.some((answer) => answer.index === choices.label)) choices.label = null;
  if (!after.top.length && METHODS[choices.method].aboutClass) choices.method = "attention";
}

/** What pointing at a patch does now, for a mouse and for a finger. */
function showHints() {
  const hasClassToken = last.class_token;
  const way = hasClassToken ? "returns to the class token" : "lets it go";
  let mouse = "Hover a patch to read its value, or walk there with the arrow keys.";
  let touch = "Tap a patch to read its value.";
  if (choices.knocking) {
    mouse = "Click a patch to take it out of the picture, again to put it back. Arrow keys and Enter do the same.";
    touch = "Tap a patch to take it out of the picture, again to put it back.";
  } else if (pins()) {
    mouse = `Hover a patch to see where it looks. Click pins it, arrow keys move it, Esc ${way}.`;
    touch = `Tap a patch to see where it looks. Tapping it again ${way}.`;
  }
  setText(find(".hint.mouse"), mouse);
  setText(find(".hint.touch"), touch);
  setText(find(".back"), hasClassToken ? "← class token" : "← all tokens");
  find(".back").setAttribute("aria-label", hasClassToken ? "Back to class token" : "Back to all tokens");
}

function showEmpty(message) {
  result = null;
  setText(find(".message"), message || "Draw a digit or choose a photo.");
  for (const words of [".what", ".value", ".peak", ".pill"]) setText(find(words), "");
  setText(find(".sentence"), "Nothing yet. The colours will show where the model looks.");
  find(".back").classList.add("away");
  find(".restore").disabled = true;
  showWorking(find(".view .working"), false);
  scene = null;
  maps.rest();
  answers.show(null);
  answers.mark(null);
  syncBelieve(null);
  syncDepths(null);
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
  answers.show(result, knockout.whole());
  strip.draw(result);
  syncDepths(result);
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

/** Waits a moment for the server's map of a new result, so that most are there with their picture. */
async function firstWord(next) {
  const comparable = result && next.blocks === last.blocks && next.heads === last.heads && next.top.length;
  if (comparable && METHODS[choices.method].served) await maps.prepare(next, questionOf(next, { ...choices, pinned: null }));
}

async function adopt(payload) {
  const mine = ++turn;
  if (!payload || payload.empty) return showEmpty(payload?.message);
  try {
    // The old result stays until the new one is whole, so that nothing blinks.
    const next = await openResult(payload);
    await firstWord(next);
    if (mine !== turn) return;
    knockout.start(next);
    showResult(next);
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
  scene: () => scene,
};
