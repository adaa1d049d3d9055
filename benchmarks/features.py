"""How long the page's script takes in the section Features, for 1,369 patches: DINOv2's, with random weights.

Chromium on this machine runs the page. A time is that of one frame: the handlers of the event and what they schedule
for the next frame. What the browser does afterwards (layout, painting) is not part of it.

Example:
    $ python -m benchmarks.features
"""

from __future__ import annotations

import statistics

from playwright.sync_api import sync_playwright

from benchmarks.browser import start_browser
from benchmarks.payload import use_random_weights
from vit_demo.web import launch

LINK = "#tab=photos&photo=lion&model=dinov2-s14&patch_size=14&section=features"

WATCH = """() => {
  const plain = window.requestAnimationFrame;
  window.spent = 0;
  const timed = (act) => (...given) => {
    const began = performance.now();
    try { return act(...given); } finally { window.spent += performance.now() - began; }
  };
  window.requestAnimationFrame = (act) => plain(timed(act));
  window.frameOf = async (act) => {
    window.spent = 0;
    timed(act)();
    await new Promise((resolve) => plain(() => plain(resolve)));
    return window.spent;
  };
}"""

HOVER = """async () => {
  const canvas = document.querySelector(".tokens canvas");
  const box = canvas.getBoundingClientRect();
  const times = [];
  for (let i = 0; i < 120; i++) {
    const [x, y] = [(i * 7.3) % 37, (i * 3.1) % 37].map((place) => (place + 0.5) / 37);
    const clientX = box.left + x * box.width, clientY = box.top + y * box.height;
    times.push(await frameOf(() => canvas.dispatchEvent(
      new PointerEvent("pointermove", { clientX, clientY, bubbles: true, pointerType: "mouse" }))));
  }
  return times;
}"""

CLICK = "(selector) => frameOf(() => document.querySelector(selector).click())"


def main() -> None:
    """Prints medians and the longest time, in milliseconds."""
    use_random_weights()
    page = launch("127.0.0.1", wait=False)
    with sync_playwright() as playwright:
        browser = start_browser(playwright)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.goto(f"{page.local_url}{LINK}")
        opened.wait_for_selector(".legend *", timeout=120_000)
        count = opened.evaluate("document.querySelector('.stage').__stage.current().numPatches")
        print(f"{count} patches")
        opened.evaluate(WATCH)
        for mode in ("segments", "norms", "pca", "similarity"):
            field = f'[data-feature=mode] input[data-value="{mode}"]'
            first = opened.evaluate(CLICK, field)
            times = opened.evaluate(HOVER)
            if mode == "pca":
                print(f"pca without background: {opened.evaluate(CLICK, '.tokens .background'):.1f} ms")
            print(f"{mode}: chosen {first:.1f}, hovering {statistics.median(times):.1f}, at most {max(times):.1f} ms")
        browser.close()
    page.close()


if __name__ == "__main__":
    main()
