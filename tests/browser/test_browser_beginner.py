"""What somebody reads who sees the page for the first time: it is true of what is shown, and in sight."""

from collections.abc import Callable

import pytest

from vit_demo.methods import METHODS
from vit_demo.web.catalog.method_docs import board_ranks

from .choosing import STAGE, Page, open_page, open_section, settings

DESKTOPS = [(1280, 800), (1440, 900)]
PHONE = (390, 844)


@pytest.fixture
def visit(window: Callable[..., Page]) -> Callable[..., Page]:
    """Opens an address in a window of a size; a phone has a touch screen."""

    def visit(address: str, size: tuple[int, int] = PHONE) -> Page:
        return open_page(window(size, "phone" if size == PHONE else "desktop"), address)

    return visit


@pytest.mark.parametrize("size", [DESKTOPS[0], PHONE])
def test_the_scale_of_evidence_has_colours_between_its_ends(visit, address, size) -> None:
    page = visit(f"{address}#digit=4&method=libra_fullgrad&against=9", size)
    bar = page.locator(".scale i")
    box = bar.bounding_box()
    assert box and box["width"] >= 80 and "rgb" in bar.evaluate("element => getComputedStyle(element).backgroundImage")
    low, high = (page.locator(f".scale .{end}").bounding_box() for end in ("low", "peak"))
    assert low and high and low["x"] + low["width"] <= box["x"] and box["x"] + box["width"] <= high["x"]
    assert page.locator(".scale .low").inner_text().startswith("against −")
    assert "logits" not in page.locator(".scale").inner_text(), "the word is that of a value pointed at"


def test_step_four_defines_a_head_and_its_picture_belongs_to_its_question(visit, address) -> None:
    page = visit(f"{address}#digit=7&patch_size=4&section=steps&step=4", DESKTOPS[0])
    page.locator(".steps .prompt", has_text="Which of the marked patches").wait_for()
    assert "Each block does this 4 times side by side" in page.locator(".steps .sentences").inner_text()
    caption = page.locator(".steps .picture-caption")
    assert caption.inner_text() == "The question asks about the marked patches."
    assert "Token: patch row" in page.locator(".steps .figure").inner_text(), "what the numbers are about"
    page.locator(".steps select[data-key=head]").select_option("2")
    page.locator(".steps .prompt", has_text="attend to most in head 3 of block").wait_for()
    page.locator(".steps .reveal").click()
    page.locator(".steps .picture-caption", has_text="attends to in head 3 of block").wait_for()
    page.locator(".steps select[data-key=head]").select_option("1")
    page.locator(".steps .picture-caption", has_text="attends to in head 2 of block").wait_for()
    assert "in head 3 of block" in page.locator(".steps .prompt").inner_text(), "what was answered stays"


def test_what_is_veiled_says_so_and_the_end_of_the_tour_leads_to_build(visit, address) -> None:
    page = visit(f"{address}#tab=photos&section=steps&step=7", DESKTOPS[0])
    cover = page.locator(".steps .cover")
    for _ in range(2):
        cover.get_by_text("First answer the question below").wait_for()
        page.locator(".steps .reveal").click()
        cover.wait_for(state="hidden")
        page.locator(".steps .next:enabled, .steps .to-build:visible").first.click()
    page.locator("#header [data-section=build][aria-current=true]").wait_for()
    assert page.locator(".build").is_visible() and page.locator(".steps").is_hidden()


@pytest.mark.parametrize("size", [DESKTOPS[0], PHONE])
def test_every_way_leads_to_its_chapter_and_back(visit, address, size) -> None:
    page = visit(address, size)
    link = page.locator("#header").get_by_role("link", name="Lessons").bounding_box()
    assert link and link["y"] + link["height"] < 100
    for buttons, chapter, title in (
        ((".tour", ".more-of-step"), ".steps", "How does it get there?"),
        ((".trust",), ".faithfulness", "Can the colours be trusted?"),
    ):
        for button in buttons:
            page.locator(button).click()
        heading = page.locator(chapter).get_by_role("heading", name=title)
        page.wait_for_function(
            """chapter => {
                const { top } = document.querySelector(chapter).getBoundingClientRect();
                return top > -10 && top < 100;
            }""",
            arg=chapter,
        )
        assert heading.is_visible()
        open_section(page, "Explore")
        page.wait_for_function("scrollY === 0")
        if chapter == ".steps":
            page.locator(".tour").click()  # the film has waited
    assert page.evaluate(f"{STAGE}.choices.section") == "attention"


def test_the_place_of_a_method_is_that_of_the_board_and_leads_there(visit, address) -> None:
    page = visit(address, DESKTOPS[0])
    ranks = board_ranks()["digits-small"]
    drawer = settings(page)
    rows = drawer.locator(".all .method")
    places = dict(zip(rows.locator("b").all_inner_texts(), rows.locator("b + small").all_inner_texts(), strict=True))
    for name, method in METHODS.items():
        rank = ranks.get(name)
        assert places[method.title].startswith(f"{rank} of " if rank else ""), name
    assert drawer.get_by_role("link", name="ranked by a test on 20 pictures").get_attribute("href") == "./faithfulness"


def test_the_lessons_are_readable_on_a_phone(visit, address) -> None:
    page = visit(address)
    page.goto(f"{address}lessons")
    widths = page.locator("td:nth-child(3)").evaluate_all("all => all.map((cell) => cell.clientWidth)")
    assert len(widths) == 14 and min(widths) > 200
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_name_of_explore_leads_back_to_its_first_map(page: Page, address: str) -> None:
    open_page(page, f"{address}#method=libra_fullgrad")
    page.locator(".subject", has_text="Libra FullGrad+").wait_for()
    open_section(page, "Compare")
    page.locator(".compare").wait_for()
    open_section(page, "Explore")
    page.locator(".subject", has_text="Libra FullGrad+").wait_for()
    open_section(page, "Explore")
    page.wait_for_function(f"{STAGE}.choices.method === 'attention'")
