// @ts-check
// What heads are worth: a switch that makes each silent, a bar for what the answer loses without it, and the search for the
// fewest that keep the answer.

import { isNew, make, put, setText } from "../../../shared/dom.js";
import { english, formatSignificant, translate } from "../../../shared/language.js";
import { createTasks } from "../../../shared/tasks.js";
import { targetOf } from "../../format.js";
import { decodeFloat32 } from "../../result.js";
import { labelOf } from "../../smallestSets.js";

const LEAST = 0.05; // of the longest bar: below it a head is worth next to nothing

/** The look of a head with its switch, a bar for what it is worth, and hatching while it is silent. */
const STYLES = `
.stage {
  .head { position: relative; min-width: 0; max-width: 72px; }
  .head .mute { z-index: 2; position: absolute; top: 0; left: 0; display: grid; place-items: start; width: 32px; min-height: 32px; padding: 4px; cursor: pointer; }
  .head .mute i { display: flex; width: 18px; height: 10px; padding: 2px; border-radius: 7px; background: var(--accent); box-shadow: 0 0 0 1.5px #fff; }
  .head .mute i::after { content: ""; width: 10px; margin-left: auto; border-radius: 50%; background: #fff; }
  .head .mute:focus-visible { border-radius: 10px; outline: 3px solid var(--accent); }
  .head.silent .mute i { background: #55575f; }
  .head.silent .mute i::after { margin-left: 0; }
  .head.silent .cell::before { content: ""; z-index: 1; position: absolute; inset: 0; border-radius: 10px; background: repeating-linear-gradient(45deg, rgb(0 0 0 / 62%) 0 3px, rgb(255 255 255 / 62%) 3px 7px); }
  .head.silent .cell::after { visibility: hidden; }
  .head .bar { display: block; height: 6px; margin-top: 3px; border-radius: 3px; background: var(--track); }
  .head .bar[hidden] { display: none; }
  .head .bar b { display: block; height: 100%; border-radius: 3px; background: var(--accent); }
  .head .bar.gains b { background: var(--dim); }
  .head.idle:not(.silent) canvas { opacity: 0.45; }
  .worth { display: flex; flex-wrap: wrap; gap: 0 16px; align-items: center; }
  .worth .found { flex-basis: 100%; color: var(--text); }
}
`;
const HTML = `<style>${STYLES}</style>
  <p class="hint worth">
    <button type="button" class="link effects"></button>
    <button type="button" class="link least"></button>
    <button type="button" class="link undo-heads"></button>
    <button type="button" class="link all-heads"></button>
    <span class="found" role="status"></span></p>`;

/** `dropping` makes heads silent; `redraw()` shows what a search found. */
export function createHeads(card, { request, dropping, redraw }) {
  card.firstElementChild.insertAdjacentHTML("afterbegin", HTML); // what is said of them before them all
  const find = (selector) => card.querySelector(selector);
  const [row, effects, least, undo, all, found] = [
    ...[".worth", ".effects", ".least", ".undo-heads", ".all-heads", ".worth .found"].map(find),
  ];
  let drawn = /** @type {any} */ (null); // {result, whole, choices} on the stage
  let shown = /** @type {any} */ (null); // the effects that bars show, {whole, silent, classes, values}
  let kept = /** @type {any} */ (null); // what the search found, {whole, heads}
  const subjects = {
    head_effects: () => drawn && { result: drawn.result, fields: { kind: "head_effects", ...classesOf(drawn) } },
    fewest_heads: () => drawn && { result: drawn.whole, fields: { kind: "fewest_heads" } },
  };
  let wanted = /** @type {"head_effects" | "fewest_heads"} */ ("head_effects");
  const tasks = createTasks(() => subjects[wanted](), redraw);

  /** Begins a search, or ends the one that runs; `onFound(reply, result)` gets what it found. */
  async function press(kind, onFound) {
    const running = subjects[wanted]();
    if (tasks.of(running)?.running) return tasks.cancel(running);
    wanted = kind;
    const subject = subjects[kind]();
    const { whole } = drawn;
    await tasks.start(subject, {}, async ({ isCurrent, onProgress }) => {
      const reply = await request({ source: subject.result.source, ...subject.fields }, { isCurrent, onProgress });
      if (reply?.result && drawn?.whole === whole) onFound(reply.result, subject.result);
      return reply;
    });
  }

  effects.addEventListener("click", () =>
    press("head_effects", ({ effects: sent }, { silent }) => {
      const { whole } = drawn;
      shown = { whole, silent, classes: String(Object.values(classesOf(drawn))), values: decodeFloat32(sent) };
    }),
  );
  least.addEventListener("click", () =>
    press("fewest_heads", ({ heads }, whole) => {
      kept = { whole, heads: heads ?? [] };
      if (!heads) return;
      const stay = new Set(heads.map(String));
      const every = Array.from({ length: whole.numBlocks * whole.numHeads }, (_, i) => [
        Math.floor(i / whole.numHeads),
        i % whole.numHeads,
      ]);
      dropping.leaveOut({ dropped: whole.dropped, silent: every.filter((head) => !stay.has(String(head))) });
    }),
  );
  undo.addEventListener("click", () => dropping.undo());
  all.addEventListener("click", () => dropping.leaveOut({ silent: [] }));

  /** Makes a head silent, or lets it speak again. */
  function toggle(block, head) {
    const before = dropping.silent();
    const others = before.filter(([b, h]) => b !== block || h !== head);
    const silent = others.length < before.length ? others : [...before, [block, head]];
    dropping.leaveOut({ silent: silent.sort((one, other) => one[0] - other[0] || one[1] - other[1]) });
  }

  /** A head's small picture with its switch and its bar. */
  function wrap(cell, block, head) {
    const onclick = () => toggle(block, head);
    const onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      onclick();
    };
    // No button, between which the arrow keys of all cells would stop.
    const button = make("span", { className: "mute", role: "switch", tabIndex: 0, onclick, onkeydown }, make("i"));
    button.dataset.silence = `${block + 1}.${head + 1}`; // as in links
    return make("div", { className: "head" }, cell, button, make("i", { className: "bar" }, make("b")));
  }

  /** Draws the switches and bars of wrapped heads, in their order, and the row below them. */
  function draw(wrapped, { result, whole, choices, frame }, isOpen) {
    drawn = { result, whole, choices };
    put(row, { hidden: !isOpen });
    if (!isOpen) return;
    const silent = new Set(dropping.silent().map(String));
    const isShown = shown?.whole === whole && shown.classes === String(Object.values(classesOf(drawn)));
    const longest = isShown ? Math.max(...shown.values.map(Math.abs), 1e-9) : 1;
    for (const { node, block, head } of wrapped) {
      const isSilent = silent.has(String([block, head]));
      const value = isShown ? shown.values[block * result.numHeads + head] : 0;
      const [, button, bar] = node.children;
      node.classList.toggle("silent", isSilent);
      const place = { block: block + 1, head: head + 1 };
      const title = isSilent
        ? translate("Block {block}, head {head} is silent: let it speak", place)
        : translate("Make block {block}, head {head} silent", place);
      put(button, { ariaChecked: String(!isSilent), ariaLabel: title, title });
      const share = Math.abs(value) / longest;
      if (isNew(bar, share)) bar.firstChild.style.width = `${100 * share}%`;
      bar.classList.toggle("gains", value < 0);
      const lost = translate("{value} of the logit is lost without it", { value: formatSignificant(value, 2) });
      put(bar, { hidden: !isShown, title: lost });
      node.classList.toggle("idle", isShown && share < LEAST);
    }
    const task = tasks.of(subjects[wanted]());
    for (const each of [effects, least]) put(each, { disabled: !result.predictions.length });
    setText(effects, labelOf(wanted === "head_effects" && task, english("Which heads matter?")));
    setText(least, labelOf(wanted === "fewest_heads" && task, english("Silence the least important")));
    setText(undo, english("Undo"));
    setText(all, english("All heads speak"));
    put(undo, { disabled: !dropping.canUndo() });
    put(all, { hidden: !silent.size });
    setText(found, task?.error || sentenceOf(silent, isShown, frame.headline.text));
  }

  /** What the search found, or what it says without them, which may be out of sight, and what the bars are. */
  function sentenceOf(silent, isShown, headline) {
    const { result, whole, choices } = drawn;
    const total = whole.numBlocks * whole.numHeads;
    const isOfSearch = kept?.whole === whole && kept.heads.length && silent.size === total - kept.heads.length;
    if (isOfSearch && kept.heads.every((head) => !silent.has(String(head)))) {
      const values = { count: kept.heads.length, total, label: whole.predictions[0].label };
      return translate(
        "It keeps *{label}* with 1 of its {total} heads.|It keeps *{label}* with {count} of its {total} heads.",
        values,
      );
    }
    const label = targetOf(result, choices.label)?.label; // none without classes, nor any bars
    const ofBars =
      String(shown?.silent) === String(result.silent)
        ? translate("The bars: what *{label}* loses without each head alone.", { label })
        : translate("The bars are of before: ask again.");
    return [silent.size && headline, isShown && ofBars].filter(Boolean).join(" ");
  }

  return { wrap, draw };
}

/** The class that a head is worth something to, and which it is compared with. */
const classesOf = ({ result, choices }) => ({
  label: targetOf(result, choices.label)?.index ?? null,
  against: choices.against,
});
