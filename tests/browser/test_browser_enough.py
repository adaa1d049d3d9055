"""How little is enough: shown in the pictures, it changes neither answer, test nor file."""

import json
from collections.abc import Iterator

import pytest

from vit_demo.web.catalog.method_docs import lesson

from .choosing import STAGE, Browser, Page, open_page
from .test_browser_download import saved


@pytest.fixture
def wide(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1920, "height": 1080}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield open_page(page, address)
    context.close()


def test_trust_shows_verdict_and_curves_at_once_on_a_wide_screen(wide: Page) -> None:
    wide.locator(".trust").click()
    wide.get_by_role("button", name="Tested").wait_for()
    for part in (".finding .conclusion:not(:empty)", ".finding figure >> nth=0", ".finding figure >> nth=1"):
        wide.locator(part).first.wait_for()
        box = wide.locator(part).first.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= 1080, part
    one, other = (wide.locator(".finding figure").nth(i).bounding_box() for i in range(2))
    assert one and other and one["y"] == other["y"] and one["width"] > 240


def test_what_is_enough_is_a_preview(wide: Page) -> None:
    wide.locator(".trust").click()
    wide.get_by_role("button", name="Tested").wait_for()
    headline = wide.locator(".headline").inner_text()
    before = saved(wide, "HTML report")
    wide.locator("button.enough").click()
    wide.locator(".little", has_text="Without").wait_for()
    little = wide.locator(".little").inner_text()
    assert "taken out of the input, not painted over, 8 keeps at least 90\u00a0% of its probability" in little
    assert "Without these 2 squares it says 3." in little, "and what it cannot do without"
    assert wide.evaluate(f"{STAGE}.current().dropped") == []
    assert wide.locator(".headline").inner_text() == headline
    assert wide.get_by_role("button", name="Tested").is_visible() and saved(wide, "HTML report") == before
    picture = wide.locator(".picture").screenshot()
    wide.keyboard.press("Escape")
    wide.get_by_role("button", name="Show the fewest that are enough").wait_for()
    assert wide.locator(".picture").screenshot() != picture


def test_a_file_says_that_squares_are_rubbed_out(wide: Page) -> None:
    wide.locator(".fewest").click()
    wide.wait_for_function(f"{STAGE}.current().dropped.length === 2")
    assert "with 2 of 16 squares rubbed out" in saved(wide, "HTML report").decode()
    assert json.loads(saved(wide, "JSON"))["dropped"] == wide.evaluate(f"{STAGE}.current().dropped")


def test_a_lesson_sets_what_a_click_does(wide: Page, address: str) -> None:
    for number, mode in ((1, "look"), (6, "rub")):
        wide.goto(f"{address}{lesson(number)['link']}")
        wide.locator(f".switch [data-mode={mode}][aria-pressed=true]").wait_for()
    wide.locator(".lesson .quiet").click()
    answer, bars = wide.locator(".lesson .answer").bounding_box(), wide.locator(".bars").bounding_box()
    assert answer and bars and answer["x"] + answer["width"] <= bars["x"], "the answer is beside the bars"
