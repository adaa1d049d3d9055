"""A lesson's link: its task stays in a band above the stage, in the page's language, while a visitor plays."""

from collections.abc import Callable

import pytest

from vit_demo.web.catalog.method_docs import lesson

from .choosing import STAGE, Locator, Page, draw, open_page, open_section


def band(page: Page) -> Locator:
    return page.locator(".stage > .lesson:first-child")


def wait_for(page: Page, number: int, language: str = "en") -> None:
    band(page).get_by_text(str(lesson(number, language)["task"]), exact=True).wait_for()


@pytest.fixture
def sixth(page: Page, address: str) -> Page:
    open_page(page, f"{address}{lesson(6)['link']}")
    wait_for(page, 6)
    return page


def test_a_link_of_the_list_opens_the_task_in_the_same_tab(page: Page, address: str) -> None:
    page.goto(f"{address}lessons")
    windows = len(page.context.pages)
    page.locator("a[href*='lesson=6&']").click()
    wait_for(page, 6)
    assert len(page.context.pages) == windows
    assert band(page).locator(".place").inner_text() == "Task 6 of 14, 5 min"
    page.wait_for_function(f"{STAGE}.current()?.rows === 4 && {STAGE}.current().predictions[0].name === '8'")


def test_the_answer_covers_nothing_and_folds_for_the_next_task_and_with_the_section(sixth: Page) -> None:
    answer, button = band(sixth).locator(".answer"), band(sixth).get_by_role("button", name="Answer")
    assert answer.is_hidden() and button.get_attribute("aria-expanded") == "false"
    button.click()
    assert answer.inner_text() == lesson(6)["answer"] and button.get_attribute("aria-expanded") == "true"
    headline, shown = sixth.locator(".headline").bounding_box(), answer.bounding_box()
    assert headline and shown and shown["y"] + shown["height"] <= headline["y"]
    open_section(sixth, "Compare")
    answer.wait_for(state="hidden")
    open_section(sixth, "Explore")
    wait_for(sixth, 6)
    button.click()
    assert answer.is_visible()
    button.click()
    assert answer.is_hidden()
    button.click()
    band(sixth).get_by_role("link", name="Next task").click()
    wait_for(sixth, 7)
    assert answer.is_hidden() and sixth.evaluate("location.hash") == lesson(7)["link"]
    sixth.go_back()
    wait_for(sixth, 6)


SUBJECTS = {"steps": ".steps h2", "build": ".build h2", "teach": ".teach h2", "heads": ".head.silent"}
"""What a task is about, by its section, or heads that are silent; everywhere else the picture."""

SENTENCES = {"steps": ".steps h2", "build": ".build h2", "teach": ".teach h2", "heads": ".worth .found"}
"""Where it is said what the network answers; everywhere else in the headline, which is in sight beside heads, too."""


def check_in_sight(page: Page, section: str, height: int) -> None:
    """Subject and sentence come below the band, and on the screen."""
    for part in (SUBJECTS.get(section, ".picture"), SENTENCES.get(section, ".headline")):
        page.wait_for_function(
            """([part, height]) => {
                const boxOf = (each) => document.querySelector(`.stage ${each}`)?.getBoundingClientRect() ?? {};
                const [task, { top }] = [".lesson", part].map(boxOf);
                return task.top >= 0 && task.top < height / 2 && top >= task.bottom && top < height - 40;
            }""",
            arg=[part, height],
        )


def check_choices(page: Page, number: int) -> None:
    """What a task needs is there, and nothing is left of the one before."""
    fields = dict(field.split("=") for field in str(lesson(number)["link"])[1:].split("&"))
    if "patch_size" in fields:
        page.wait_for_function(f"{STAGE}.current()?.source.patch_size === {fields['patch_size']}")
    if "digit" in fields:
        page.wait_for_function(f"{STAGE}.current()?.predictions[0].name === '{fields['digit']}'")
    choices = page.evaluate(f"{STAGE}.choices")
    assert choices["section"] == fields.get("section", "attention"), number
    assert choices["method"] == fields.get("method", "attention"), number
    assert str(choices["against"]) == fields.get("against", "None"), number
    if "network" in fields:
        page.locator(".build .fields [name=seconds]").wait_for()


IN_SIGHT = "node => node.getBoundingClientRect().bottom <= innerHeight"
SIZES = [((1440, 900), "desktop"), ((1366, 768), "desktop"), ((820, 1180), "tablet"), ((390, 844), "phone")]


@pytest.mark.parametrize(("size", "kind"), SIZES)
def test_each_next_task_has_what_it_needs_in_sight(window: Callable[..., Page], address: str, size, kind) -> None:
    page = window(size, kind)
    open_page(page, f"{address}{lesson(1)['link']}")
    for number in range(1, 15):
        wait_for(page, number)
        section = "heads" if "silent=" in str(lesson(number)["link"]) else page.evaluate(f"{STAGE}.choices.section")
        check_choices(page, number)
        for is_answered in (False, True):
            if is_answered:
                band(page).get_by_role("button", name="Answer").click()
                page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            check_in_sight(page, section, size[1])
            if section == "heads" and kind == "desktop" and not is_answered:
                check_in_sight(page, "", size[1])
                assert page.locator(".blocks .more").evaluate(IN_SIGHT), "and all heads"
            verb = {1: "look", 2: "draw"}.get(number, "rub")
            assert page.locator(f"[data-mode={verb}]").get_attribute("aria-pressed") == "true"
            if number == 2:  # at the end of its film there are the steps
                page.evaluate("location.hash += '&section=steps'")
                check_in_sight(page, "steps", size[1])
                page.evaluate(f"location.hash = '{lesson(2)['link']}'")
                page.wait_for_function(f"{STAGE}.choices.section === 'attention'")
                page.evaluate("scrollTo(0, 0)")
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        if number < 14:
            band(page).get_by_role("link", name="Next task").click()


def test_the_task_stays_while_one_plays_and_goes_when_it_is_closed(sixth: Page) -> None:
    draw(sixth, 3)
    sixth.wait_for_function(f"{STAGE}.current().predictions[0].name === '3'")
    open_section(sixth, "Build")
    sixth.wait_for_function("location.hash.includes('section=build')")
    band(sixth).wait_for(state="hidden")  # which is not what one builds
    assert "lesson=6" in sixth.url
    open_section(sixth, "Explore")
    wait_for(sixth, 6)
    sixth.evaluate("scrollTo(0, 400)")
    box = band(sixth).bounding_box()
    assert box and box["y"] >= 0, "it is in sight"
    band(sixth).get_by_role("button", name="Close the task").click()
    band(sixth).wait_for(state="hidden")
    sixth.wait_for_function("!location.hash.includes('lesson=')")
    open_section(sixth, "Compare")
    assert band(sixth).is_hidden()


def test_a_lesson_that_does_not_exist_opens_the_page(page: Page, address: str) -> None:
    open_page(page, f"{address}#lesson=15&digit=3")
    for digit, number in enumerate(("15", "99999", "x", "-1", "6.5"), 3):
        page.evaluate(f"location.hash = 'lesson={number}&digit={digit}'")
        page.wait_for_function(f"{STAGE}.current()?.predictions[0].name === '{digit}'")
        if number.isdigit():
            band(page).get_by_text(f"There is no lesson {number}: choose one from 1 to 14.").wait_for()
            assert band(page).get_by_role("link", name="Lessons").get_attribute("href") == "./lessons?language=en"
            assert band(page).get_by_role("button").all_inner_texts() == [""], "the cross alone"
        else:
            assert band(page).is_hidden(), number


def test_a_page_without_a_lesson_asks_for_none(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_page(page, f"{address}#digit=3")
    assert band(page).is_hidden() and not [url for url in asked if "lessons/" in url]


def test_the_task_is_in_the_language_of_the_page(sixth: Page) -> None:
    band(sixth).get_by_role("button", name="Answer").click()
    sixth.locator("#language").select_option("de")
    wait_for(sixth, 6, "de")
    assert band(sixth).locator(".place").inner_text() == "Aufgabe 6 von 14, 5 Min."
    assert band(sixth).locator(".answer").inner_text() == lesson(6, "de")["answer"], "what is open stays open"
    band(sixth).get_by_role("link", name="Nächste Aufgabe").click()
    wait_for(sixth, 7, "de")


def test_a_task_that_cannot_be_loaded_says_so(page: Page, address: str) -> None:
    page.route("**/lessons/*", lambda route: route.abort())
    open_page(page, f"{address}#lesson=6")
    band(page).get_by_text("The task could not be loaded: reload the page.").wait_for()


def test_the_band_fits_a_phone(phone: Page, address: str) -> None:
    for language in ("de", "fr"):
        phone.goto("about:blank")
        open_page(phone, f"{address}?language={language}{lesson(9)['link']}")
        wait_for(phone, 9, language)
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for control in band(phone).locator("button:visible, a:visible").all():
            box = control.bounding_box()
            assert box and box["height"] >= 44 and box["x"] + box["width"] <= 390, language
