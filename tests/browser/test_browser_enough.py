"""How little is enough: shown in pictures of its own, it changes neither answer, test nor file."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.method_docs import lesson

from ..percentages import percentage
from .choosing import (
    STAGE,
    Locator,
    Page,
    look_from,
    middle_of,
    open_anew,
    open_page,
    rub,
    settle_address,
    shown_result,
)
from .test_browser_download import saved

HATCHED = """(canvas) => {
  const context = canvas.getContext("2d");
  const middle = (i) => Math.floor(canvas.width * (i % 4 + 0.5) / 4);
  const isGrey = ([red, , blue]) => red === blue;
  return [...Array(16).keys()].filter(
    (i) => !isGrey(context.getImageData(middle(i), middle(Math.floor(i / 4)), 1, 1).data));
}"""
"""The squares of a digit's picture that are hatched: bluish, as no digit is."""


def words(part: Locator) -> str:
    return part.inner_text().replace("\u00a0", " ")


@pytest.fixture
def wide(window: Callable[..., Page], address: str) -> Page:
    page = window((1920, 1080))
    return open_page(page, address)


def check_verdict_and_curves(wide: Page) -> None:
    """All are on a wide screen."""
    wide.locator(".trust").click()
    wide.get_by_role("button", name="Tested").wait_for()
    for part in (".finding .conclusion:not(:empty)", ".finding figure >> nth=0", ".finding figure >> nth=1"):
        wide.locator(part).first.wait_for()
        box = wide.locator(part).first.bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= 1080, part
    one, other = (wide.locator(".finding figure").nth(i).bounding_box() for i in range(2))
    assert one and other and one["y"] == other["y"] and one["width"] > 240


def test_what_is_enough_and_what_is_needed_are_pictures_of_their_own(wide: Page) -> None:
    check_verdict_and_curves(wide)
    headline = wide.locator(".headline").inner_text()
    before, picture = saved(wide, "SVG"), wide.locator(".picture").screenshot()
    wide.locator("button.enough").click()
    wide.locator(".little", has_text="Without").wait_for()
    little = wide.locator(".little figure")
    ex = shown_result(wide)
    enough, needed = ex.enough(), ex.needed()
    assert enough and needed
    everywhere = {(row, col) for row in range(4) for col in range(4)}
    for figure, dropped in enumerate((everywhere - {*enough.patches}, {*needed.patches})):
        shown = little.nth(figure)
        assert shown.locator("canvas").evaluate(HATCHED) == sorted(4 * row + col for row, col in dropped)
        label, share = ex.drop_patches(dropped).top(1)[0]
        number = percentage(share).replace("\u00a0", " ")
        says = f"{label} keeps {number}, at least 90 % of what it had."
        count = len(needed.patches)
        leads = f"Without {count} square{'s' * (count > 1)} {label} leads: {number}."
        assert (leads if figure else says) in words(shown)
    assert wide.evaluate(f"{STAGE}.current().dropped") == []
    assert wide.locator(".headline").inner_text() == headline
    assert wide.get_by_role("button", name="Tested").is_visible() and saved(wide, "SVG") == before
    assert wide.locator(".picture").screenshot() == picture, "beside its bars the whole picture stays"


def test_what_was_found_ends_with_what_it_was_asked_about(wide: Page) -> None:
    rub(wide)
    for other in ("[data-show=class]", ".bars button >> nth=1", ".fewest"):  # method, class, squares
        wide.locator("button.enough").click()
        wide.locator(".little", has_text="Without").wait_for()
        wide.locator(other).click()
        wide.locator(".little figure").first.wait_for(state="hidden")
        assert wide.locator(".little figure:visible").count() == 0, other
        wide.get_by_role("button", name="Show what is enough").wait_for()


def test_the_words_hold_for_what_is_shown_and_a_file_says_what_is_rubbed_out(wide: Page) -> None:
    look_from(wide)
    invitation, sentence = wide.locator(".headline"), wide.locator(".sentence")
    invitation.filter(has_text="Choose a square: what does it look at?").wait_for()
    assert "just before it answers" in sentence.inner_text()
    wide.locator(".picture").hover()
    wide.wait_for_function(f"{STAGE}.scene().view.query !== null")
    wide.wait_for_function("!document.querySelector('.sentence').textContent.includes('just before it answers')")
    wide.locator("[data-show=class]").click()
    invitation.filter(has_text="Choose a square to read its value.").wait_for()
    rub(wide)
    wide.locator(".fewest").click()
    wide.wait_for_function(f"{STAGE}.current().dropped.length === 2")
    lines = re.findall(r"<text[^>]*>([^<]*)</text>", saved(wide, "SVG").decode())
    assert "with 2 of 16 squares rubbed out" in " ".join(lines)
    assert json.loads(saved(wide, "JSON"))["dropped"] == wide.evaluate(f"{STAGE}.current().dropped")


def test_a_lesson_sets_what_a_click_does(wide: Page, address: str) -> None:
    for number, mode in ((1, "look"), (6, "rub")):
        wide.goto(f"{address}{lesson(number)['link']}")
        wide.locator(f".verbs [data-mode={mode}][aria-pressed=true]").wait_for()
    wide.locator(".lesson .quiet").click()
    answer, bars = wide.locator(".lesson .answer").bounding_box(), wide.locator(".bars").bounding_box()
    assert answer and bars and answer["y"] + answer["height"] <= bars["y"], "the answer is above the bars"


def test_who_changes_the_answer_is_told_with_how_many_squares_and_the_best_is_kept(
    window: Callable[..., Page], address: str
) -> None:
    page = open_page(window(), f"{address}#digit=8&patch_size=7")
    headline = page.locator(".headline")

    def flip(*squares: tuple[int, int]) -> None:
        rub(page)
        for square in squares:
            page.mouse.click(*middle_of(page.locator(".picture"), *square, 4, 4))

    flip((0, 0), (1, 1), (2, 1))
    headline.get_by_text("You made it say 3 by rubbing out 3 squares.").wait_for()
    headline.get_by_text("Can you do it with fewer?").wait_for()
    flip((0, 0))
    headline.get_by_text("You made it say 3 by rubbing out 2 squares.").wait_for()
    settle_address(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with page.expect_download() as download:
        headline.get_by_role("button", name="Send it").click()
    assert Image.open(download.value.path()).size == (1080, 1080)
    headline.get_by_text("Picture saved, link copied.").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "/see/digit-8#" in link, "of which a preview shows the picture"
    other = open_page(window(kind="other visitor"), link)
    assert other.url.startswith(f"{address}#"), "it opens the page"
    other.locator(".headline").get_by_text("Someone needed 2 squares to change its answer. You?").wait_for()
    assert other.evaluate(f"{STAGE}.choices.dropped") is None, "the squares are not given away"
    page.reload()
    headline.get_by_text("Without 2 squares it says 3:").wait_for()
    flip((0, 0))
    headline.get_by_text("Your best: 2.").wait_for()
    page.get_by_role("button", name="Find the fewest").click()
    headline.get_by_text("No fewer are known.").wait_for()
    flip((0, 3))
    headline.get_by_text("The fewest known: 2.").wait_for()


def guess_first(page: Page, url: str) -> None:
    """Marks the square in the second row and third column."""
    open_anew(page, url)
    page.locator("[data-mode=rub]").click()
    page.get_by_role("button", name="Guess first").click()
    page.locator(".headline", has_text="Guess: which").wait_for()
    page.locator(".stage.guessing").wait_for(state="attached")
    assert page.locator(".blocks").is_hidden() and page.locator(".meaning").is_hidden(), "nothing tells it"
    page.mouse.click(*middle_of(page.locator(".picture"), 1, 2, 4, 4))


def test_a_guess_is_right_or_wrong_and_what_the_square_did_is_told(page: Page, address: str) -> None:
    guess_first(page, f"{address}#digit=7&patch_size=7")
    page.locator(".headline", has_text="Rub out the few that decide.").wait_for()
    assert page.locator(".meaning").is_visible() and page.get_by_role("button", name="Find the fewest").is_visible()
    told = words(page.locator(".headline .now"))
    page.mouse.click(*middle_of(page.locator(".picture"), 1, 2, 4, 4))
    page.locator(".headline", has_text="Without 1 square it still says 7:").wait_for()
    assert page.locator(".bars .first .number").inner_text().replace("\u00a0", " ") in told, "as it does without it"
    guess_first(page, f"{address}#digit=8&patch_size=7")
    ex = vit_demo.explore(example_picture(8), "digits-small", patch_size=7)
    losses = ex.heatmap("occlusion")
    row, column = np.unravel_index(losses.argmax(), losses.shape)
    page.locator(".headline", has_text=f"row {row + 1}, column {column + 1}").wait_for()
    left = 100 * ex.top(1)[0][1] * np.exp(-losses.max())
    said = words(page.locator(".headline"))
    assert said.startswith("Right: " if (row, column) == (1, 2) else "Wrong: ") and f"only {left:.1f} %" in said
    assert said.endswith("Can you make it say something else?")
    assert page.evaluate(f"{STAGE}.choices.dropped") is None, "a mark rubs nothing out"
    assert page.evaluate(f"{STAGE}.choices.method") == "occlusion"
    assert page.locator(".words .other").inner_text() == "Occlusion", "the view that none of the words is about"
    page.locator("[data-mode=draw]").click()
    page.locator("[data-mode=rub]").click()
    page.get_by_role("button", name="Guess first").click()
    page.locator(".stage.guessing").wait_for(state="attached")
    page.get_by_role("button", name="Find the fewest").click()
    page.locator(".stage:not(.guessing)").wait_for(state="attached")
    assert "Guess:" not in page.locator(".headline").inner_text(), "the search tells it"
