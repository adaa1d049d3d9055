"""A browser for the tests that need one: a headless Chromium of the system, else Playwright's, else another one."""

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from ..servers import page_routes
from .choosing import STAGE, Browser, BrowserContext, Page, launched, open_page
from .stage_page import stage, stage_address

__all__ = ["stage", "stage_address"]

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # windows of one context share what is compiled, which halves the time to open the page
    "--use-fake-device-for-media-stream",  # a webcam
    "--use-fake-ui-for-media-stream",
]
HEADLESS_SHELL = "chromium-headless-shell"
"""Chromium without the parts for a screen: the same engine, which opens the page in half the time."""

SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = (shutil.which(HEADLESS_SHELL), own if Path(own).exists() else None, *map(shutil.which, SYSTEM_BROWSERS))
        path = next(filter(None, found), None)
        if path is None:
            pytest.skip("no browser: neither Playwright's own nor a Chromium of the system")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def desktop(browser: Browser) -> Iterator[BrowserContext]:
    yield from _context(browser, viewport={"width": 1440, "height": 900})


@pytest.fixture(scope="session")
def touch_screen(browser: Browser) -> Iterator[BrowserContext]:
    yield from _context(browser, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)


@pytest.fixture
def page(desktop: BrowserContext) -> Iterator[Page]:
    """A desktop window that remembers nothing; a script error on the page fails the test."""
    yield from _window(desktop)


@pytest.fixture
def phone(touch_screen: BrowserContext) -> Iterator[Page]:
    """A phone with a touch screen."""
    yield from _window(touch_screen)


def _context(browser: Browser, **options: object) -> Iterator[BrowserContext]:
    """Windows of one size, and an empty one, which keeps the process alive that they share."""
    context = browser.new_context(reduced_motion="reduce", **options)  # type: ignore[arg-type]
    empty = context.new_page()
    empty.route("**", lambda route: route.fulfill(body=""))
    empty.goto("http://127.0.0.1/")
    yield context
    context.close()


def _window(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    everything = {"origin": "*", "storageTypes": "all"}
    context.new_cdp_session(page).send("Storage.clearDataForOrigin", everything)
    page.set_default_timeout(30_000)  # a busy machine can be slow to load the page
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.clear_permissions()
    for each in context.pages[1:]:
        each.close()
    assert not errors


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the page is served, for all tests that change nothing about the server."""
    with launched() as url:
        yield url


@pytest.fixture
def opened(page: Page, address: str) -> Page:
    """The page with a 7 in 49 patches."""
    return open_page(page, f"{address}#digit=7&patch_size=4")


@pytest.fixture
def quick(page: Page, address: str) -> Page:
    """The page with a network of 16 patches, for what takes many passes."""
    open_page(page, f"{address}#tab=digits&model=digits-tiny&patch_size=7&digit=7")
    page.wait_for_function(f"{STAGE}.current()?.source.preset === 'digits-tiny'")
    return page


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[..., str]]:
    """Starts a page, with what handles its requests, and returns its address; it stops with the module."""
    running: list[gr.Blocks] = []

    def start(blocks: gr.Blocks, handle: Callable[[Any], Awaitable[bytes]]) -> str:
        running.append(blocks)
        routes = {"routes": page_routes(handle)}
        options = {"quiet": True, "prevent_thread_lock": True, "ssr_mode": False, "app_kwargs": routes}
        return blocks.launch(server_name="127.0.0.1", **options)[1]

    yield start
    for blocks in running:
        blocks.close()
