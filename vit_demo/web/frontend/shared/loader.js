// @ts-check
// Gradio's loader goes on timing itself when it has gone, at each frame: a twelfth of a core for an idle page.

/** Ends that, once Gradio has made the page: for two frames the loader is refused its next one (see html_head.py). */
export function stopLoader() {
  const page = /** @type {any} */ (window);
  page.refusesFrame = () => new Error().stack?.includes("statustracker");
  requestAnimationFrame(() => requestAnimationFrame(() => delete page.refusesFrame));
}
