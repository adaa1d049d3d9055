"""Latency of a drawing in a real browser: from the end of the stroke to the new prediction on the page.

    python -m benchmarks.drawing --strokes PATH [--count 50]

``PATH`` is a JSON list of ``{"label", "segments": [[x0, y0, x1, y1], ...]}``, in drawing order, y downwards. A
simulated mouse draws each, stroke by stroke. The time is measured in the page, from the last ``pointerup`` until the
prediction for it is in the document.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.browser import start_browser
from vit_demo.web import launch

Stroke = list[tuple[float, float]]

WATCH = """() => {
  const stage = document.querySelector('.stage');
  const clock = window.clock = { up: 0, predictions: [] };
  addEventListener('pointerup', () => { clock.up = performance.now(); clock.predictions = []; }, true);
  new MutationObserver(() => clock.predictions.push([performance.now() - clock.up, stage.dataset.top1]))
    .observe(stage, { attributes: true, attributeFilter: ['data-run'] });
}"""


def strokes_of(segments: list[list[float]], margin: float = 0.2) -> list[Stroke]:
    """Joins segments that meet into strokes and fits the drawing into the unit square."""
    strokes: list[Stroke] = []
    for x0, y0, x1, y1 in segments:
        if not strokes or strokes[-1][-1] != (x0, y0):
            strokes.append([(x0, y0)])
        strokes[-1].append((x1, y1))
    xs, ys = zip(*(point for stroke in strokes for point in stroke), strict=True)
    size = max(max(xs) - min(xs), max(ys) - min(ys)) / (1 - 2 * margin)
    left = (min(xs) + max(xs)) / 2 - size / 2
    top = (min(ys) + max(ys)) / 2 - size / 2
    return [[((x - left) / size, (y - top) / size) for x, y in stroke] for stroke in strokes]


def draw(page: Page, strokes: list[Stroke]) -> tuple[float, str, bool]:
    """Draws on an empty pad; returns latency in ms, the prediction, and whether the first stroke had one."""
    page.get_by_role("button", name="Clear").first.click()
    page.wait_for_selector('.stage[data-ready="empty"]')
    box: Any = page.locator(".paper").bounding_box()
    counted = False
    for i, stroke in enumerate(strokes):
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point)
        page.mouse.up()
        page.wait_for_function("window.clock.predictions.length > 0")
        if i == 0:
            counted = page.locator(".stage").get_attribute("data-ready") == "true"
    wait, top = page.evaluate("window.clock.predictions.at(-1)")
    return wait, top, counted


def main() -> None:
    """Prints one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strokes", type=Path, required=True)
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    drawings = json.loads(options.strokes.read_text())
    step = max(1, len(drawings) // options.count)
    chosen = drawings[::step][: options.count]
    served = launch("127.0.0.1", wait=False)
    with sync_playwright() as playwright:
        browser = start_browser(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(served.local_url)
        page.wait_for_selector('.stage[data-ready="true"]')
        page.wait_for_timeout(1000)
        page.evaluate(WATCH)
        found = [(*draw(page, strokes_of(d["segments"])), str(d["label"])) for d in chosen]
        browser.close()
    served.close()
    waits = sorted(wait for wait, *_ in found)
    right = sum(top == label for _, top, _, label in found)
    first = sum(counted for _, _, counted, _ in found)
    print(
        f"{len(found)} drawings: {right} read right, first stroke counted in {first}; from pen up to the prediction: "
        f"median {statistics.median(waits):.0f} ms, 90th percentile {waits[int(0.9 * len(waits))]:.0f} ms"
    )


if __name__ == "__main__":
    main()
