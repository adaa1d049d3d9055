// The choice of a method: the recommended ones under plain words first, then all of them, with what each costs.

import { make, setText } from "../shared/dom.js";
import { english, translate } from "../shared/language.js";
import { recommendedMethods } from "./methods.js";
import { segmentChoice } from "./widgets.js";

/** A plain choice that opens another section, where that section exists: [its name, words]. */
const ELSEWHERE = ["features", english("What looks alike")];

const NO_CLASSES = english("This model has no classifier head, so no map can be about a class.");

/**
 * Fills `host` with the recommended methods and a button that opens `list`, where all methods are.
 * `group(name)` names a group of radio buttons. `update(choices, result)` shows what is chosen.
 */
export function createMethodChoice(host, list, methods, { group, sectionNames, onChange, retry }) {
  const choose = (method) => onChange({ method });
  const recommended = recommendedMethods(methods).map((name) => [name, methods[name].recommended]);
  const plainHost = make("div", { className: "plain" });
  const more = make("button", { type: "button", className: "quiet more-methods" });
  const plain = segmentChoice(plainHost, english("Show"), group("recommended"), recommended, choose);
  host.replaceChildren(plainHost);
  if (sectionNames.includes(ELSEWHERE[0])) host.append(sectionButton(...ELSEWHERE, onChange));
  host.append(more);

  const rows = Object.entries(methods).map(([name, method]) => {
    const input = make("input", { type: "radio", name: group("method") });
    input.dataset.value = name;
    input.addEventListener("change", () => choose(name));
    const scope = method.classSpecific ? english("for a class") : english("same for every class");
    const about = make("small", {}, scope, " · ", method.cost);
    const words = make("span", {}, make("b", { textContent: method.label }), about);
    const face = make("label", { className: "method" }, input, words);
    return { name, method, input, face };
  });
  list.setAttribute("role", "radiogroup");
  list.setAttribute("aria-label", english("All methods"));
  list.id = group("all");
  list.replaceChildren(...rows.map(({ face }) => face));
  more.setAttribute("aria-controls", list.id);
  more.addEventListener("click", () => {
    list.hidden = !list.hidden;
    more.setAttribute("aria-expanded", String(!list.hidden));
  });
  more.setAttribute("aria-expanded", "false");

  // A choice sends failed requests again, even the choice of what is chosen.
  for (const each of [plainHost, list]) {
    each.addEventListener("click", (event) => event.target.matches("input") && retry());
    each.addEventListener("keydown", (event) => [" ", "Enter"].includes(event.key) && retry());
  }

  function update(choices, result) {
    const isPlain = recommended.some(([name]) => name === choices.method);
    plain.set(choices.method);
    const { label } = methods[choices.method];
    setText(more, isPlain ? english("More") : translate("More: {method}", { method: translate(label) }));
    more.classList.toggle("chosen", !isPlain);
    const hasClasses = Boolean(result?.predictions.length);
    for (const { name, method, input, face } of rows) {
      input.checked = name === choices.method;
      input.disabled = !result || (method.classSpecific && !hasClasses);
      face.title = result && input.disabled ? NO_CLASSES : "";
    }
    for (const input of plainHost.querySelectorAll("input")) {
      input.disabled = !result || (methods[input.dataset.value].classSpecific && !hasClasses);
      input.parentElement.title = result && input.disabled ? NO_CLASSES : "";
    }
  }

  return { update };
}

function sectionButton(section, words, onChange) {
  const button = make("button", { type: "button", className: "quiet elsewhere-button", textContent: words });
  button.addEventListener("click", () => onChange({ section }));
  return button;
}
