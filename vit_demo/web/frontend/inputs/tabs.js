// The two tabs, with the keys of the ARIA pattern: arrows, Home and End.

import { TASKS } from "../shared/pageState.js";

export function createTabs(element, onChoose) {
  const tabs = TASKS.map((task) => element.querySelector(`#tab-${task}`));
  const panels = TASKS.map((task) => element.querySelector(`#panel-${task}`));
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => onChoose(TASKS[i]));
    tab.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const next = (steps[event.key] + tabs.length) % tabs.length;
      onChoose(TASKS[next]);
      tabs[next].focus();
    });
  });

  function show(task) {
    TASKS.forEach((each, i) => {
      tabs[i].setAttribute("aria-selected", String(each === task));
      tabs[i].tabIndex = each === task ? 0 : -1;
      panels[i].hidden = each !== task;
    });
  }

  return { show };
}
