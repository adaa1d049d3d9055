"""A photo that cannot be used: what the page says in each section, what it still shows, and what a reload shows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECTIONS = {"Features": ".tokens", "Step by step": ".card.steps", "Compare": ".compare", "Attention": ".picture"}


@pytest.fixture
def refused(opened: Page) -> Page:
    """The page with an example photo, then with one of a single pixel."""
    opened.get_by_role("tab", name="Photo").click()
    opened.locator("#model-view .part").wait_for()
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1), "red").save(buffer, "PNG")
    file = {"name": "dot.png", "mimeType": "image/png", "buffer": buffer.getvalue()}
    opened.locator("#photo .file").set_input_files([file])
    opened.locator(".result-status", has_text="too small").wait_for()
    return opened


def test_every_section_says_so_and_marks_the_photo_before_as_old(refused: Page) -> None:
    opacity = "element => Number(getComputedStyle(element).opacity)"
    for section, part in SECTIONS.items():
        refused.locator(".sections").get_by_role("button", name=section, exact=True).click()
        assert refused.locator(".result-status", has_text="too small").is_visible()
        assert refused.locator(part).evaluate(opacity) == 0.45
    assert refused.locator("#model-view .part").evaluate(opacity) == 0.45
    assert refused.get_by_role("button", name="Retry").is_hidden(), "the same photo stays too small"


def test_after_a_reload_there_is_no_result_of_another_tab(refused: Page) -> None:
    refused.locator(".sections").get_by_role("button", name="Compare", exact=True).click()
    refused.reload()
    refused.locator(".result-status", has_text="too small").wait_for()
    assert refused.get_by_role("tab", name="Photo").get_attribute("aria-selected") == "true"
    assert refused.locator(".sections [aria-current=true]").inner_text() == "Compare"
    assert refused.locator(".compare .column").count() == 0
    refused.locator(".sections").get_by_role("button", name="Attention", exact=True).click()
    assert refused.locator(".message").inner_text() == "There is no result for this picture."
    assert refused.locator("#model-view figure").is_hidden()


def test_the_next_photo_works(refused: Page) -> None:
    refused.locator("#photos button").first.click()
    refused.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    assert refused.locator(".result-status").is_hidden()
    assert refused.locator("#model-view .part").is_visible()


def test_a_lost_connection_leaves_the_result_of_the_photo(opened: Page) -> None:
    opened.get_by_role("tab", name="Photo").click()
    opened.locator("#model-view .part").wait_for()
    top = opened.locator(".stage").get_attribute("data-top1")
    opened.route("**/component_server/", lambda route: route.abort())
    opened.get_by_role("radio", name="15").check()
    opened.locator(".result-status", has_text="connection").wait_for()
    assert opened.locator(".stage").get_attribute("data-top1") == top
