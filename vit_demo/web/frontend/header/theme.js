// Light or dark: the choice of the address (?__theme=), else the visitor's, kept in this browser, else the system's.

const KEY = "vit_demo-theme";
const THEMES = ["light", "dark"];

/** The theme that was chosen, or null. Storage may be closed to a page in a frame. */
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is left.
  }
}

let chosen = [new URLSearchParams(location.search).get("__theme"), stored()].find((theme) => THEMES.includes(theme));

/** Gradio sets the system's theme when it starts and when that changes. */
function apply() {
  const { classList } = document.body;
  if (chosen && classList.contains("dark") !== (chosen === "dark")) classList.toggle("dark", chosen === "dark");
}

apply();
new MutationObserver(apply).observe(document.body, { attributeFilter: ["class"] });
document.addEventListener("click", ({ target }) => {
  if (!target.closest?.("#theme")) return;
  chosen = document.body.classList.contains("dark") ? "light" : "dark";
  keep(chosen);
  apply();
});
