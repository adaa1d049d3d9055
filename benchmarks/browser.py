"""The page in a real browser, whose server is a process of its own.

Each cold visit is a new browser profile with nothing in its cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.chromium import find_chromium
from benchmarks.server import Server

READY = '.stage[data-ready="true"][data-state="done"]'
OURS = "/gradio_api/vit_demo/"
SCREENS = {
    "desktop": (1440, 900),
    "laptop": (1280, 720),
    "large tablet": (820, 1180),
    "small tablet": (768, 1024),
    "phone": (390, 844),
    "desktop at 200 %": (720, 450),
}

SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
"""A slow mobile connection: milliseconds, bytes a second."""

WATCH_VISIT = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
const look = () => {
  const stage = document.querySelector('.stage[data-ready="true"]');
  if (stage && stage.querySelector("canvas.picture").width > 0) window.explainedAt ??= performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""

NEW_SIZE = """size => new Promise((resolve) => {
  const stage = document.querySelector(".stage");
  const began = performance.now();
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => resolve([performance.now() - began, stage.__stage.current().milliseconds]));
  }).observe(stage, { attributes: true, attributeFilter: ["data-run"] });
  document.querySelector(`#patch-size input[value="${size}"]`).click();
})"""

WATCH_PEN = """() => {
  const stage = document.querySelector('.stage');
  const clock = window.clock = { up: 0, predictions: [] };
  addEventListener('pointerup', () => { clock.up = performance.now(); clock.predictions = []; }, true);
  new MutationObserver(() => clock.predictions.push([performance.now() - clock.up, stage.dataset.top1]))
    .observe(stage, { attributes: true, attributeFilter: ['data-run'] });
}"""

Stroke = list[tuple[float, float]]


@contextmanager
def served_browser() -> Iterator[tuple[str, Browser]]:
    """The address of a server of its own, and a headless Chromium."""
    server = Server()
    try:
        with sync_playwright() as playwright:
            flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            yield server.url, playwright.chromium.launch(executable_path=find_chromium(playwright), args=flags)
    finally:
        server.stop()


def cold_visit(
    browser: Browser, address: str, size: tuple[int, int] = (1440, 900), *, slow: bool = False
) -> tuple[Page, list[dict[str, Any]]]:
    """A visit by a new browser profile; returns the page and its finished requests with their transferred bytes.

    With `slow` it is over the connection of `SLOW`. Addresses that hold their data are no requests.
    """
    page = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    page.add_init_script(WATCH_VISIT)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    if slow:
        network.send("Network.emulateNetworkConditions", SLOW)
    requests: dict[str, dict[str, Any]] = defaultdict(dict)
    network.on("Network.requestWillBeSent", lambda e: requests[e["requestId"]].update(url=e["request"]["url"]))
    network.on("Network.loadingFinished", lambda e: requests[e["requestId"]].update(bytes=e["encodedDataLength"]))
    page.goto(address)
    page.wait_for_selector(READY, timeout=120_000)
    page.wait_for_timeout(1500)
    return page, [each for each in requests.values() if "bytes" in each and not each["url"].startswith("data:")]


def change_patch_sizes(page: Page) -> list[float]:
    """Milliseconds from the choice of a patch size of a photo to its picture, without the forward pass."""
    page.get_by_role("tab", name="Photo").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.pixelated === false")
    page.wait_for_selector(READY)
    page.wait_for_timeout(1000)
    sizes = page.locator("#patch-size input").evaluate_all("all => all.map(each => each.value)")
    pictures = page.locator("#photos button")
    beyond = []
    for place in range(pictures.count()):
        page.wait_for_timeout(300)
        if place:  # another picture: no result of it is kept
            run = page.locator(".stage").get_attribute("data-run")
            pictures.nth(place).click()
            page.wait_for_selector(f".stage:not([data-run='{run}'])")
            page.wait_for_selector(READY)
        now = page.locator("#patch-size :checked").get_attribute("value")
        for size in [each for each in sizes if each != now]:
            took, forward = page.evaluate(NEW_SIZE, size)
            page.wait_for_selector(READY)
            beyond.append(took - forward)
    return beyond


def page() -> None:
    """Prints one line for each figure of a first visit, and of another patch size."""
    parser = argparse.ArgumentParser(description="The page in a real browser.")
    parser.add_argument("--rounds", type=int, default=5, help="visits (%(default)s)")
    rounds = parser.parse_args().rounds
    with served_browser() as (address, browser):
        requests = []
        for slow in (False, True):
            times = []
            for _ in range(rounds + 1):  # the first is for the browser itself
                opened, requests = cold_visit(browser, address, slow=slow)
                times.append(opened.evaluate("window.explainedAt") / 1000)
                opened.context.close()
            times = sorted(times[1:])
            name = "cold, at 1.6 Mbit/s" if slow else "cold"
            print(f"first explained example, {name}: median {statistics.median(times):.2f} s, worst {times[-1]:.2f} s")
        counts, nbytes = Counter[str](), Counter[str]()
        for each in requests:
            path = urlsplit(each["url"]).path
            origin = "document" if path == "/" else "ours" if path.startswith(OURS) else "Gradio"
            counts[origin] += 1
            nbytes[origin] += each["bytes"]
        print("transferred, kB: " + ", ".join(f"{name} {total / 1000:.0f}" for name, total in sorted(nbytes.items())))
        print("requests: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
        print(f"hosts: {', '.join(sorted({str(urlsplit(each['url']).hostname) for each in requests}))}")
        for name, size in SCREENS.items():
            opened, _ = cold_visit(browser, address, size)
            print(f"layout shift, {name}: {opened.evaluate('window.shifts'):.3f}")
            opened.context.close()
        beyond = sorted(change_patch_sizes(cold_visit(browser, address)[0]))
        print(
            f"another patch size of a photo, beyond the forward pass: median {statistics.median(beyond):.0f} ms, "
            f"90th percentile {beyond[int(0.9 * len(beyond))]:.0f} ms ({len(beyond)} changes)"
        )


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


def draw(page: Page, strokes: list[Stroke]) -> tuple[float, str]:
    """Draws on an empty pad, stroke by stroke; returns the latency in ms and the prediction."""
    page.get_by_role("button", name="Clear").first.click()
    page.wait_for_selector('.stage[data-ready="empty"]')
    box: Any = page.locator(".paper").bounding_box()
    for stroke in strokes:
        points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point)
        page.mouse.up()
        page.wait_for_function("window.clock.predictions.length > 0")
    wait, top = page.evaluate("window.clock.predictions.at(-1)")
    return wait, top


def drawing() -> None:
    """Prints the time from the end of drawings to their predictions, measured in the page.

    From the last ``pointerup`` until the prediction for it is in the document. The strokes are a JSON list of
    ``{"label", "segments": [[x0, y0, x1, y1], ...]}``, in drawing order, y downwards.
    """
    parser = argparse.ArgumentParser(description="From the end of a stroke to the prediction, in a real browser.")
    parser.add_argument("--strokes", type=Path, required=True, metavar="PATH", help="JSON list of drawings")
    parser.add_argument("--count", type=int, default=50, help="drawings (%(default)s)")
    options = parser.parse_args()
    drawings = json.loads(options.strokes.read_text())
    chosen = drawings[:: max(1, len(drawings) // options.count)][: options.count]
    with served_browser() as (address, browser):
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.goto(address)
        opened.wait_for_selector('.stage[data-ready="true"]')
        opened.wait_for_timeout(1000)
        opened.evaluate(WATCH_PEN)
        found = [(*draw(opened, strokes_of(each["segments"])), str(each["label"])) for each in chosen]
    waits = sorted(wait for wait, *_ in found)
    right = sum(top == label for _, top, label in found)
    print(
        f"{len(found)} drawings: {right} read right; from pen up to the prediction: "
        f"median {statistics.median(waits):.0f} ms, 90th percentile {waits[int(0.9 * len(waits))]:.0f} ms"
    )
