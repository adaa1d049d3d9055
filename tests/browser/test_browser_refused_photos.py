"""A photo that cannot be used: what the page says in each section, what it still shows, and what a reload shows."""

import io
from pathlib import Path

import pytest
from PIL import Image

import vit_demo
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .choosing import STAGE, Page, open_section


def choose_file(page: Page, name: str, kind: str, content: bytes) -> None:
    page.locator("#photo .file").set_input_files([{"name": name, "mimeType": kind, "buffer": content}])


@pytest.fixture
def refused(opened: Page) -> Page:
    """The page with an example photo, then with one of a single pixel."""
    opened.get_by_role("tab", name="Photo").click()
    opened.locator(".seen-part", has_text="square").wait_for()
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1), "red").save(buffer, "PNG")
    choose_file(opened, "dot.png", "image/png", buffer.getvalue())
    opened.locator(".message", has_text="too small").wait_for()
    return opened


def visible_texts(page: Page, words: str) -> int:
    boxes = [each.bounding_box() for each in page.get_by_text(words).all()]
    return sum(box["width"] > 2 for box in boxes if box)


def test_one_message_is_where_the_picture_would_be_and_nothing_is_left_of_the_one_before(refused: Page) -> None:
    assert visible_texts(refused, "too small") == 1
    assert refused.locator(".view .retry").is_hidden(), "the same photo stays too small"
    for part in (".picture", ".crop"):
        assert refused.locator(part).is_hidden()
    for part in (".predictions .note", ".sentence", ".subject", ".value"):
        assert refused.locator(part).inner_text() == "", part
    assert refused.locator(".headline").inner_text().startswith("Choose a photo")
    assert refused.locator(".answers > *, .cell").count() == 0
    open_section(refused, "Compare")
    bar = refused.locator(".result-status", has_text="too small")
    bar.wait_for()
    assert visible_texts(refused, "too small") == 1
    below = refused.locator(".compare").bounding_box()
    box = bar.bounding_box()
    assert box and below and box["y"] + box["height"] <= below["y"], "it covers nothing"
    open_section(refused, "Explore")
    choose_file(refused, "notes.txt", "text/plain", b"words")
    refused.locator(".message", has_text="not a picture").wait_for()
    assert visible_texts(refused, "not a picture") == 1 and visible_texts(refused, "too small") == 0
    refused.go_back()
    refused.locator(".message", has_text="too small").wait_for()


def test_after_a_reload_there_is_no_result_of_another_tab(refused: Page) -> None:
    open_section(refused, "Compare")
    refused.reload()
    refused.locator(".result-status", has_text="too small").wait_for()
    assert refused.get_by_role("tab", name="Photo").get_attribute("aria-selected") == "true"
    assert refused.locator("#header [aria-current=true]").inner_text() == "Compare"
    assert refused.locator(".compare .column").count() == 0
    open_section(refused, "Explore")
    assert "too small" in refused.locator(".message").inner_text()
    assert refused.locator(".crop").is_hidden() and refused.locator(".seen-part").inner_text() == ""


def test_the_next_photo_works_and_one_that_is_lost_says_so(refused: Page) -> None:
    Image.new("RGB", (300, 200), "orange").save(buffer := io.BytesIO(), "PNG")
    choose_file(refused, "wide.png", "image/png", buffer.getvalue())
    refused.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    assert refused.locator(".result-status").is_hidden()
    refused.locator(".crop").wait_for()

    choose_file(refused, "lion.jpg", "image/jpeg", EXAMPLE_PHOTOS["lion"].path.read_bytes())
    is_the_lion = "label => document.querySelector('.stage[data-state=done]')?.dataset.top1 === label"
    refused.wait_for_function(
        is_the_lion, arg=vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny").top(1)[0][0]
    )
    Path(refused.evaluate(f"{STAGE}.current().source.upload")).unlink()
    get_engine()._results._entries.clear()
    refused.locator("#patch-size").get_by_text("20", exact=True).click()
    refused.locator(".result-status", has_text="not on the server: choose it again").wait_for()
    refused.get_by_role("button", name="Goldfish").click()
    refused.wait_for_function(f"{STAGE}.current()?.source.example === 'goldfish'")


def test_a_lost_connection_shows_nothing_of_the_picture_before(opened: Page) -> None:
    opened.route("**/vit_demo/request", lambda route: route.abort())
    opened.get_by_role("button", name="Example 3").click()
    opened.locator(".message", has_text="connection").wait_for()
    assert opened.evaluate(f"{STAGE}.current()") is None and visible_texts(opened, "Trying again") == 1
    assert opened.locator(".bars .number").all_inner_texts() == [""] * 10 and opened.locator(".cell").count() == 0
    opened.unroute("**/vit_demo/request")
    opened.locator(".view .retry").click()
    opened.wait_for_selector('.stage[data-top1="3"][data-state="done"]')
    assert opened.locator(".view .retry").is_hidden() and opened.locator(".message").inner_text() == ""
