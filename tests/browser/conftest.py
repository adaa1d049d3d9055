"""A browser for the tests that need one."""

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import gradio as gr
import pytest

from benchmarks.chromium import find_chromium

from ..asynchronous import PATIENCE
from ..servers import page_routes
from .choosing import STAGE, Browser, BrowserContext, Page, clear_storage, launched, open_anew
from .stage_page import opened_stage, stage, stage_address

__all__ = ["opened_stage", "stage", "stage_address"]

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        path = find_chromium(playwright)
        if path is None:
            pytest.skip("no browser: neither Playwright's own nor a Chromium of the system")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """What the windows of each kind share for all tests: what is loaded and compiled, for most of opening the page.

    Each holds an empty window, which keeps the process alive that they share.
    """
    phone = {"is_mobile": True, "has_touch": True}
    options: dict[str, dict[str, Any]] = {
        "desktop": {},
        "tablet": {"has_touch": True},
        "phone": phone,
        "other visitor": {},
    }
    found = {name: browser.new_context(reduced_motion="reduce", **each) for name, each in options.items()}
    for context in found.values():
        empty = context.new_page()
        empty.route("**", lambda route: route.fulfill(body=""))
        empty.goto("http://127.0.0.1/")
    yield found
    for context in found.values():
        context.close()


@pytest.fixture
def window(contexts: dict[str, BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Opens a window that remembers nothing; a script error on the page fails the test."""
    yield from windows(contexts)


@pytest.fixture(scope="module")
def lasting_window(contexts: dict[str, BrowserContext]) -> Iterator[Callable[..., Page]]:
    """The same, for pages that the tests of a file share."""
    yield from windows(contexts)


def windows(contexts: dict[str, BrowserContext]) -> Iterator[Callable[..., Page]]:
    errors: list[str] = []
    before = {page for context in contexts.values() for page in context.pages}

    def opened(size: tuple[int, int] = (1440, 900), kind: str = "desktop") -> Page:
        page = contexts[kind].new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        clear_storage(page)
        page.set_default_timeout(500 * PATIENCE)  # a broken page breaks many tests
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield opened
    for context in contexts.values():
        mine = [page for page in context.pages if page not in before]
        if mine:
            context.clear_permissions()
        for page in mine:
            page.close()
    assert not errors


@pytest.fixture
def page(window: Callable[..., Page]) -> Page:
    return window()


@pytest.fixture
def phone(window: Callable[..., Page]) -> Page:
    """A phone with a touch screen."""
    return window((390, 844), "phone")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the page is served, for all tests that change nothing about the server."""
    with launched() as url:
        yield url


@pytest.fixture
def opened(page: Page, address: str) -> Page:
    """The page with a 7 in 49 patches."""
    return open_anew(page, f"{address}#digit=7&patch_size=4")


@pytest.fixture
def quick(page: Page, address: str) -> Page:
    """The page with a network of 16 patches, for what takes many passes."""
    open_anew(page, f"{address}#tab=digits&model=digits-tiny&patch_size=7&digit=7")
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
