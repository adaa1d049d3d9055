"""The page in a real browser: first explained example, weight of the first screen, a new patch size, requests.

    python -m benchmarks.page [--rounds 5]

The server is a process of its own. Each cold visit is a new browser profile with nothing in its cache.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.browser import start_browser

ROOT = Path(__file__).parents[1]
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

WATCH = """
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


@contextlib.contextmanager
def server() -> Iterator[str]:
    """The page in a process of its own; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    process = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), urlopen(f"{address}/healthz") as reply:
                if reply.status == 200:
                    break
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def cold_visit(
    browser: Browser, address: str, size: tuple[int, int] = (1440, 900), *, slow: bool = False
) -> tuple[Page, list[dict[str, Any]]]:
    """A visit by a new browser profile; returns the page and its finished requests with their transferred bytes.

    With `slow` it is over the connection of `SLOW`. Addresses that hold their data are no requests.
    """
    page = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    page.add_init_script(WATCH)
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


def split_document(address: str, sent: float) -> dict[str, float]:
    """The transferred bytes of the HTML: how much it grows by the first result, and by our part, compressed."""
    html = urlopen(address).read().decode()
    start = html.index("{", html.index("window.gradio_config"))
    config, length = json.JSONDecoder().raw_decode(html[start:])
    rest = html[:start] + html[start + length :]

    def size(components: Any) -> int:
        return len(gzip.compress((json.dumps({**config, "components": components}) + rest).encode()))

    components = config["components"]
    without_result = [
        {**each, "props": {**each["props"], "value": None}} if each["props"].get("elem_id") == "stage" else each
        for each in components
    ]
    of_gradio = [each for each in components if each["props"].get("elem_id") not in ("stage", "choices", "header")]
    whole, shell, gradio = size(components), size(without_result), size(of_gradio)
    return {
        "the first result": sent * (whole - shell) / whole,
        "ours": sent * (shell - gradio) / whole,
        "Gradio": sent * gradio / whole,
    }


def weigh(address: str, requests: list[dict[str, Any]]) -> tuple[dict[str, float], dict[str, int]]:
    """Transferred kB and numbers of requests of a first screen, by origin."""
    totals: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for each in requests:
        path = urlsplit(each["url"]).path
        if path == "/":
            for name, share in split_document(address, each["bytes"]).items():
                totals[name] += share
            counts["document"] += 1
            continue
        name = "ours" if path.startswith(OURS) else "Gradio"
        totals[name] += each["bytes"]
        counts[name] += 1
    return {name: total / 1000 for name, total in totals.items()}, counts


def patch_sizes(page: Page) -> list[float]:
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


def hovering(page: Page) -> dict[str, list[str]]:
    """What is requested while the pointer moves over the picture of each section."""
    found = {}
    places = {
        "Attention": ".look canvas.picture",
        "Features": ".features canvas",
        "Step by step": ".steps .seen canvas",
        "Compare": ".compare canvas",
    }
    for section, canvas in places.items():
        page.locator(".sections").get_by_role("button", name=section, exact=True).click()
        page.locator(canvas).first.scroll_into_view_if_needed()
        page.wait_for_timeout(4000)
        sent: list[str] = []
        listen = lambda request, sent=sent: sent.append(request.url)  # noqa: E731
        page.on("request", listen)
        box: Any = page.locator(canvas).first.bounding_box()
        for i in range(40):
            share = (i % 10 + 0.5) / 10, (i // 10 + 0.5) / 4
            page.mouse.move(box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"])
        page.wait_for_timeout(500)
        page.remove_listener("request", listen)
        found[section] = [url for url in sent if not re.search(r"heartbeat|icon\.svg", url)]
    return found


def main() -> None:
    """Prints one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with server() as address, sync_playwright() as playwright:
        browser = start_browser(playwright)
        requests = []
        for slow in (False, True):
            times = []
            for _ in range(rounds + 1):  # the first is for the browser itself
                page, requests = cold_visit(browser, address, slow=slow)
                times.append(page.evaluate("window.explainedAt") / 1000)
                page.context.close()
            times = sorted(times[1:])
            name = "cold, at 1.6 Mbit/s" if slow else "cold"
            print(f"first explained example, {name}: median {statistics.median(times):.2f} s, worst {times[-1]:.2f} s")
        totals, counts = weigh(address, requests)
        print("transferred, kB: " + ", ".join(f"{name} {total:.0f}" for name, total in sorted(totals.items())))
        print("requests: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
        for name, size in SCREENS.items():
            page, _ = cold_visit(browser, address, size)
            print(f"layout shift, {name}: {page.evaluate('window.shifts'):.3f}")
            page.context.close()
        page, requests = cold_visit(browser, address)
        hosts: set[str | None] = {urlsplit(each["url"]).hostname for each in requests}
        page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
        for section, urls in hovering(page).items():
            print(f"requests while hovering, {section}: {len(urls)}{' ' + urls[0] if urls else ''}")
        page.locator(".sections").get_by_role("button", name="Attention", exact=True).click()
        beyond = sorted(patch_sizes(page))
        print(
            f"another patch size of a photo, beyond the forward pass: median {statistics.median(beyond):.0f} ms, "
            f"90th percentile {beyond[int(0.9 * len(beyond))]:.0f} ms ({len(beyond)} changes)"
        )
        print(f"hosts: {', '.join(sorted(host for host in hosts if host))}")
        browser.close()


if __name__ == "__main__":
    main()
