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
    assert "the more the network looks there for its answer" in intro.inner_text()
    page.mouse.move(*middle_of(page.locator(".look .picture"), 2, 4))
    page.locator(".welcome .what", has_text="the more the patch under the pointer attends to it").wait_for()
    page.mouse.move(5, 5)
    page.locator(".welcome .what", has_text="the more the network looks there for its answer").wait_for()
    linked = visit(address + EVIDENCE, DESKTOPS[0], first=True)
    words = linked.locator(".welcome .what")
    words.get_by_text("4 rather than 9").wait_for()
    assert words.inner_text() == "The colours show which patches are evidence for 4 rather than 9."


def test_the_removal_of_patches_ends_with_the_other_tab(visit, address) -> None:
    page = visit(address, DESKTOPS[0])
    remove = page.get_by_role("button", name="Remove patches")
    remove.click()
    page.locator(".look .drop[aria-pressed=true]").wait_for()
    page.get_by_role("tab", name="Photo").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.pixelated === false")
    page.locator(".look .drop[aria-pressed=false]").wait_for()


def test_step_four_defines_a_head_and_its_picture_belongs_to_its_question(visit, address) -> None:
    page = visit(f"{address}#section=steps&step=4", DESKTOPS[0])
    page.locator(".steps .prompt", has_text="Which of the marked patches").wait_for()
    assert "Each block does this 4 times side by side" in page.locator(".steps .sentences").inner_text()
    caption = page.locator(".steps .picture-caption")
    assert caption.inner_text() == "The question asks about the marked patches."
    assert "Token: patch row" in page.locator(".steps .figure").inner_text(), "what the numbers are about"
    page.locator(".steps select[data-key=head]").select_option("2")
    page.locator(".steps .prompt", has_text="attend to most in head 3 of block").wait_for()
    page.get_by_role("button", name="Show me").click()
    page.locator(".steps .picture-caption", has_text="attends to in head 3 of block").wait_for()
    page.locator(".steps select[data-key=head]").select_option("1")
    page.locator(".steps .picture-caption", has_text="attends to in head 2 of block").wait_for()
    assert "in head 3 of block" in page.locator(".steps .prompt").inner_text(), "what was answered stays"


def test_what_is_veiled_says_so_and_the_end_of_the_tour_leads_on(visit, address) -> None:
    page = visit(f"{address}#tab=photos&section=steps&step=7", DESKTOPS[0])
    cover = page.locator(".steps .cover")
    for _ in range(2):
        cover.get_by_text("Hidden until you answer").wait_for()
        page.get_by_role("button", name="Show me").click()
        cover.wait_for(state="hidden")
        page.locator(".steps .next").click()
    page.locator(".steps .onwards").wait_for(state="hidden")  # the first step again
    page.locator(".steps .part", has_text="Answer").click()
    link = page.locator(".steps .onwards").get_by_role("link", name="Lessons")
    assert link.get_attribute("href") == "./lessons?language=en"
    page.get_by_role("button", name="Draw your own").click()
    page.locator(".paper").wait_for()
    page.locator(".look .picture").wait_for()


def test_the_way_to_the_lessons_is_at_the_top_of_every_page(visit, address) -> None:
    for size in (DESKTOPS[0], PHONE):
        link = visit(address, size).locator("#header").get_by_role("link", name="Lessons")
        box = link.bounding_box()
        assert box and box["y"] + box["height"] < 100


def test_the_whole_screen_has_the_controls_beside_the_picture(visit, address) -> None:
    page = visit(address, DESKTOPS[0])
    page.get_by_role("button", name="Full screen").click()
    page.wait_for_function("document.fullscreenElement && document.querySelector('.look .picture').clientHeight > 500")
    picture = page.locator(".look .picture").bounding_box()
    for control in ("method", "head", "block"):
        box = page.locator(f".look [data-control={control}]").bounding_box()
        assert box and picture and box["x"] >= picture["x"] + picture["width"] and box["x"] + box["width"] <= 1280
    page.locator(".look [data-control=head]").get_by_text("3", exact=True).click()
    page.locator(".look .subject", has_text="head 3").wait_for()


def test_the_rank_says_what_it_was_measured_on_and_leads_there(visit, address) -> None:
    page = visit(address, DESKTOPS[0])
    rank = page.locator(".about .rank")
    assert rank.inner_text().startswith("faithfulness rank: 8")
    assert "20 pictures for this network" in (rank.get_attribute("title") or "")
    assert rank.get_attribute("href") == "./faithfulness#attention"


def test_all_methods_are_in_sight_or_a_shadow_says_that_there_are_more(visit, address) -> None:
    for size in DESKTOPS:
        page = visit(address, size)
        page.locator(".more-methods").click()
        hidden = page.locator(".all").evaluate("element => element.scrollHeight - element.clientHeight")
        assert hidden <= 0 and top(page, ".all") >= 0


def test_the_lessons_are_readable_on_a_phone(visit, address) -> None:
    page = visit(address)
    page.goto(f"{address}lessons")
    widths = page.locator("td:nth-child(4)").evaluate_all("all => all.map((cell) => cell.clientWidth)")
    assert len(widths) == 11 and min(widths) > 280
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_finger_is_not_called_a_pointer(visit, address) -> None:
    assert visit(address).locator(".follow").inner_text() == "Follow finger"
    assert visit(address, DESKTOPS[0]).locator(".follow").inner_text() == "Follow pointer"


def test_the_name_of_the_open_section_leads_back_to_its_first_map(page: Page, address: str) -> None:
    open_page(page, f"{address}#method=libra_fullgrad")
    page.locator(".look .subject", has_text="Libra FullGrad+").wait_for()
    page.locator(".sections").get_by_role("button", name="Features").click()
    page.locator(".sections").get_by_role("button", name="Heatmaps").click()
    page.locator(".look .subject", has_text="Libra FullGrad+").wait_for()
    page.locator(".sections").get_by_role("button", name="Heatmaps").click()
    page.locator(".look .subject", has_text="class token").wait_for()
