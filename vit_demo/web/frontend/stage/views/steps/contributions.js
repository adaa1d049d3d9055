// @ts-check
// Step 5, below the heads of one block: what each head, each MLP and the rest add to the answer's logit, as bars and a sum.

import { make, rove } from "../../../shared/dom.js";
import { english, formatDecimals, translate, translateName } from "../../../shared/language.js";
import { arithmetic, bracketed, choiceButton, hint, short } from "./painting.js";

const FEW = 6; // heads, whose names and numbers have room beside each other

const STYLES = `
.stage .steps {
  .figure h4 { margin: 12px 0 0; font-size: 15px; font-weight: 600; }
  .parts { display: grid; grid-template-columns: minmax(0, 64px) repeat(calc(var(--heads) + 1), minmax(0, 72px)); gap: 4px 2px; align-items: center; color: var(--dim); font-size: 13px; }
  .parts > :is(button, div, small) { min-width: 0; padding: 2px; border-radius: 6px; text-align: center; font-size: 13px; }
  .parts button:hover { background: var(--track); }
  .parts [aria-pressed="true"] { outline: 2px solid var(--accent); }
  .part-bar { position: relative; display: block; height: 40px; background: linear-gradient(to bottom, transparent var(--zero), var(--border-color-primary) var(--zero), var(--border-color-primary) calc(var(--zero) + 1px), transparent 0); }
  .part-bar i { position: absolute; right: 15%; left: 15%; border-radius: 2px; background: rgb(var(--plus)); }
  .part-bar .below { background: rgb(var(--minus)); }
  .many { grid-template-columns: 44px repeat(calc(var(--heads) + 1), minmax(0, 48px)); }
  .many > * > small { display: none; }
}
`;

/** The sum in words; `parts` is a reply of kind "contributions". */
export function sumOf({ heads, mlps, tokens, bias, logit }) {
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const terms = [
    [translate("all heads"), total(heads)],
    [translate("all MLPs"), total(mlps)],
    [translate("first tokens"), tokens],
    [translate("biases"), bias],
  ];
  const sum = terms.map(([name, value]) => `${name} ${bracketed(value)}`);
  return `${sum.join(" + ")} ≈ ${short(logit)}`;
}

/** The bars and their sum; a touch on a head's looks at it. `contributions` is what was asked for, {value, error}, or null. */
export function contributionsFigure({ facts, contributions, tour, choose }) {
  if (!contributions) return []; // of a network without classes
  const { value: parts, error } = contributions;
  const title = make(
    "h4",
    {},
    translate("What each head adds to the logit of {label}", { label: translateName(facts.prediction) }),
  );
  if (!parts) return [title, hint(error || "…")];
  const ends = [Math.min(0, ...parts.heads, ...parts.mlps), Math.max(1e-9, ...parts.heads, ...parts.mlps)];
  const every = (count, of) => Array.from({ length: count }, (_, i) => of(i));

  function headBar(block, head) {
    const value = parts.heads[block * facts.heads + head];
    const words = translate("Block {block}, head {head}: {value}", {
      block: block + 1,
      head: head + 1,
      value: written(value),
    });
    const isShown = block === tour.block && head === tour.head;
    const onChoose = () => choose({ block, head });
    return choiceButton(
      `part ${block}.${head}`,
      isShown,
      onChoose,
      { ariaLabel: words, title: words },
      ...bar(value, ...ends),
    );
  }

  const rows = every(facts.blocks, (block) => [
    make("span", { title: translate("block {block}", { block: block + 1 }) }, String(block + 1)),
    ...every(facts.heads, (head) => headBar(block, head)),
    make("div", { title: written(parts.mlps[block]) }, ...bar(parts.mlps[block], ...ends)),
  ]);
  const isMany = facts.heads > FEW;
  const nameOf = (head) => (isMany ? String(head + 1) : translate("head {head}", { head: head + 1 }));
  const names = every(facts.heads, (head) => make("small", {}, nameOf(head)));
  const className = isMany ? "parts many" : "parts";
  const first = make("span", {}, english("Block"));
  const grid = make(
    "div",
    { className, style: `--heads: ${facts.heads}; --zero: ${(100 * ends[1]) / (ends[1] - ends[0])}%` },
    first,
    ...names,
    make("small", {}, "MLP"),
    ...rows.flat(),
  );
  rove(grid, facts.heads);
  return [
    make("style", { textContent: STYLES }),
    title,
    grid,
    arithmetic(sumOf(parts)),
    hint(english("What it adds directly. A head also works through the blocks that follow.")),
  ];
}

/** A bar above or below the line at 0, and its number. */
function bar(value, lowest, highest) {
  const share = (length) => `${(100 * length) / (highest - lowest)}%`;
  const className = value < 0 ? "below" : "";
  const style = `bottom: ${share(Math.min(value, 0) - lowest)}; height: ${share(Math.abs(value))}`;
  const part = make("span", { className: "part-bar" }, make("i", { className, style }));
  return [part, make("small", {}, written(value))];
}

const written = (value) => formatDecimals(Math.abs(value) < 0.005 ? 0 : value, 2);
