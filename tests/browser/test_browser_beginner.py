"""What somebody reads who sees the page for the first time: it is true of what is shown, and in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from .choosing import middle_of, open_page
from .conftest import NOT_FIRST

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EVIDENCE = "#digit=4&method=libra_fullgrad&against=9"
DESKTOPS = [(1280, 800), (1440, 900)]
PHONE = (390, 844)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a window of a size, on a first visit or not; a phone has a touch screen."""
    with _windows(browser) as opened:
        yield opened


@contextmanager
def _windows(browser: Browser) -> Iterator[Callable[..., Page]]:
    contexts = []

    def visit(address: str, size: tuple[int, int] = PHONE, *, first: bool = False) -> Page:
        phone = size == PHONE
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, has_touch=phone, is_mobile=phone, reduced_motion="reduce"
        )
        contexts.append(context)
        if not first:
            context.add_init_script(NOT_FIRST)
        return open_page(context.new_page(), address)

    yield visit
    for context in contexts:
        context.close()


def top(page: Page, selector: str) -> float:
    return page.locator(selector).first.evaluate("element => element.getBoundingClientRect().top")


@pytest.mark.parametrize("size", [*DESKTOPS, PHONE])
def test_the_scale_of_evidence_has_colours_and_no_row_repeats_the_method(visit, address, size) -> None:
    page = visit(address + EVIDENCE, size)
    bar = page.locator(".controls .scale i")
    box = bar.bounding_box()
    assert box and box["width"] > 100 and "rgb" in bar.evaluate("element => getComputedStyle(element).backgroundImage")
    low, high = (page.locator(f".controls .scale .{end}").bounding_box() for end in ("low", "peak"))
    assert low and high and low["y"] >= box["y"] + box["height"] and low["x"] + low["width"] <= high["x"]
    rows = page.locator(".controls .inapplicable").evaluate_all("all => all.map((one) => one.dataset.why)")
    assert sorted(rows) == ["all blocks", "all heads", "no direction"]


def test_a_new_explanation_is_in_sight_though_the_glossary_is_open(visit, address) -> None:
    page = visit(address, DESKTOPS[0])
    page.get_by_text("What the words mean").click()
    card = page.locator(".about")
    card.evaluate("element => { element.scrollTop = 1e4 }")
    assert card.evaluate("element => element.scrollTop") > 100
    page.mouse.move(*middle_of(page.locator(".look .picture"), 2, 4))
    page.locator(".look .subject", has_text="patch row 3").wait_for()
    assert card.evaluate("element => element.scrollTop") > 100, "one reads on while the pointer passes over the picture"
    page.locator(".choose").get_by_text("Evidence for a class").first.click()
    page.locator(".about .sentence", has_text="speak for").wait_for()
    assert card.evaluate("element => element.scrollTop") == 0


def test_the_words_of_a_first_visit_are_true_of_the_map(visit, address) -> None:
    page = visit(address, DESKTOPS[0], first=True)
    intro = page.locator(".welcome .what")
    assert "the more the network attends to it" in intro.inner_text()
    page.mouse.move(*middle_of(page.locator(".look .picture"), 2, 4))
    page.locator(".welcome .what", has_text="the more the patch under the pointer attends to it").wait_for()
    page.mouse.move(5, 5)
    page.locator(".welcome .what", has_text="the more the network attends to it").wait_for()
    linked = visit(address + EVIDENCE, DESKTOPS[0], first=True)
    words = linked.locator(".welcome .what")
    words.get_by_text("4 rather than 9").wait_for()
    assert words.inner_text() == "The colours show which patches are evidence for 4 rather than 9."
