// @ts-check
// The field's terms, each explained where it is met: on hover, on focus with the Tab key, and on tap.

import { definitions, make, newId, setText } from "../dom.js";
import { translate } from "../language.js";
import { TERMS } from "./texts.js";

/** All terms with their explanations, as a list of definitions. */
export function createTermList(host) {
  const lines = TERMS.map(partsOf).map(({ words, explanation }) => [words.split("|")[0], explanation]);
  host.replaceChildren(...definitions(lines));
}

/** A term in the page's language. */
function partsOf(term) {
  const [, words, explanation] = /** @type {any} */ (/^(.+?): (.*)$/s.exec(translate(term)));
  return { words, explanation };
}

/** "class token" is looked for before "token". */
const LONGEST_FIRST = [...TERMS].sort((one, other) => other.search(/[|:]/) - one.search(/[|:]/));

/** Sets text as `setText` does, and makes the first of each term a button with its explanation. */
export function setExplainedText(node, text, tooltip) {
  if (!setText(node, text)) return;
  for (const { words, explanation } of LONGEST_FIRST.map(partsOf)) {
    explainFirst(node, patternOf(words), explanation, tooltip);
  }
}

/** Whole words, where a script has spaces between them. */
const patternOf = (words) => new RegExp(`(?<!\\p{Script=Latin})(?:${words})(?!\\p{Script=Latin})`, "iu");

function explainFirst(node, pattern, explanation, tooltip) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let part = /** @type {any} */ (walker.nextNode()); part; part = walker.nextNode()) {
    const found = pattern.exec(part.data);
    if (!found || part.parentElement.matches(".term")) continue;
    const rest = part.splitText(found.index);
    rest.splitText(found[0].length);
    // Not a button, before and after which a line may break: the comma stays with its word.
    const term = make("span", { role: "button", tabIndex: 0, className: "term", textContent: found[0] });
    rest.replaceWith(term);
    tooltip.attach(term, explanation);
    return;
  }
}

/** The tooltip of a stage: one element, above everything, beside the term that it explains. */
export function createTooltip(host) {
  const tip = make("div", { className: "tooltip", popover: "manual", id: newId("tooltip") });
  tip.setAttribute("role", "tooltip");
  host.append(tip);

  function show(term, explanation) {
    setText(tip, explanation);
    term.setAttribute("aria-describedby", tip.id);
    tip.showPopover?.();
    const at = term.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - tip.offsetWidth - 8);
    const below = at.bottom + 6 + tip.offsetHeight <= innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${below ? at.bottom + 6 : at.top - 6 - tip.offsetHeight}px`;
  }

  const hide = () => tip.isConnected && tip.matches(":popover-open") && tip.hidePopover();

  function attach(term, explanation) {
    for (const event of ["pointerenter", "focus", "click"]) {
      term.addEventListener(event, () => show(term, explanation));
    }
    for (const event of ["pointerleave", "blur"]) term.addEventListener(event, hide);
    term.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  }

  return { attach };
}
