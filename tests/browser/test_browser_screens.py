"""The first screen on small phones and zoomed in, what is in sight on low and large screens, and the drawer."""

from collections.abc import Callable

import pytest

from vit_demo.weights import PRESETS
from vit_demo.weights.costs import num_operations, num_tokens

from .choosing import Page, middle_of, open_section, open_steps, settings, shown_result, wait_a_moment, wait_until

SIZES = {
    "large desktop": (1920, 1080),
    "desktop": (1440, 900),
    "phone": (390, 844),
    "small phone": (360, 640),
    "laptop at 200 %": (640, 360),
    "desktop at 200 %": (720, 450),
}
FIRST_TASK = {
    "desktop": [".headline", ".view", ".blocks", "#inputs"],
    "phone": [".headline", ".view", ".bars .first"],
    "small phone": [".headline", ".view"],
    "laptop at 200 %": [".headline"],
    "desktop at 200 %": [".headline"],
}
OBSERVE = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""


def open_page(window: Callable[..., Page], address: str, name: str) -> Page:
    page = window(SIZES[name], "phone" if "phone" in name else "desktop")
    page.add_init_script(OBSERVE)
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    return page


@pytest.mark.parametrize("name", FIRST_TASK)
def test_the_first_task_is_in_sight_and_nothing_moves(window: Callable[..., Page], address: str, name: str) -> None:
    page = open_page(window, address, name)
    wait_a_moment(page)  # for what could still move
    assert sum(page.evaluate("window.shifts")) < 0.1
    for tab, is_digit in (("digits", "true"), ("photos", "false")):
        page.locator(f"button[data-sheet={tab}]" if "phone" in name else f"#tab-{tab}").click()
        page.wait_for_function(f"document.querySelector('.stage').__stage.current()?.pixelated === {is_digit}")
        page.wait_for_selector('.stage[data-state="done"]')
        page.evaluate("scrollTo(0, 0)")
        bottoms = {
            part: page.locator(part).evaluate("element => element.getBoundingClientRect().bottom")
            for part in FIRST_TASK[name]
        }
        beyond = {part: bottom for part, bottom in bottoms.items() if bottom > SIZES[name][1]}
        assert not beyond, tab
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, tab


@pytest.mark.parametrize("name", ["desktop", "phone"])
def test_all_settings_open_over_the_page_and_close_by_themselves(
    window: Callable[..., Page], address: str, name: str
) -> None:
    page = open_page(window, address, name)
    more, drawer = page.locator(".ways .settings"), page.locator(".drawer")
    tops = "[...document.querySelectorAll('.explore > :not(.drawer)')].map((e) => e.offsetTop)"
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.mouse.click(5, 5),
        lambda: drawer.locator(".close").click(),
        lambda: more.evaluate("button => button.click()"),
    ):
        more.scroll_into_view_if_needed()
        before = page.evaluate(tops)
        settings(page)
        assert drawer.is_visible() and page.evaluate(tops) == before, "it moves nothing"
        assert more.get_attribute("aria-expanded") == "true" and drawer.evaluate(
            "e => e.contains(document.activeElement)"
        )
        box = drawer.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= SIZES[name][0]
        assert drawer.evaluate("e => e.scrollWidth <= e.clientWidth"), "nothing in it is cut off"
        picture = page.locator(".picture").bounding_box()
        assert picture and (name == "phone" or picture["x"] + picture["width"] <= box["x"]), "the picture is in sight"
        leave()
        drawer.wait_for(state="hidden")
        assert more.get_attribute("aria-expanded") == "false"
    settings(page).get_by_text("Rollout", exact=True).click()
    assert drawer.is_visible(), "one more choice can follow"
    assert page.evaluate("document.querySelector('.stage').__stage.choices.method") == "rollout"


def test_the_pens_stand_at_the_picture_and_on_a_tablet_the_model_opens_over_it(
    window: Callable[..., Page], address: str
) -> None:
    page = window((820, 1180), "tablet")
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    pens, view = (page.locator(each).bounding_box() for each in ("[data-pen=eraser]", ".view"))
    assert pens and view and 0 <= view["y"] - (pens["y"] + pens["height"]) < 16
    assert view["y"] < 320, "the picture comes first"
    model = page.locator("#model")
    assert model.is_hidden()
    page.locator(".to-model").tap()
    assert page.locator("#preset").evaluate(IN_SIGHT) and page.locator("#patch-sizes label").last.evaluate(IN_SIGHT)
    assert page.locator(".view").bounding_box() == view, "it moves nothing"
    page.locator(".headline").tap()
    model.wait_for(state="hidden")
    page.locator("[data-pen=eraser]").tap()
    assert page.locator("[data-pen=eraser]").get_attribute("aria-pressed") == "true"
    page.locator("[data-mode=rub]").tap()
    page.locator("[data-pen=eraser]").wait_for(state="hidden")
    assert page.locator(".view").bounding_box() == view, "their place stays free"
    open_section(page, "Compare")
    page.locator(".pad .pens").wait_for()
    page.set_viewport_size({"width": 1440, "height": 900})
    open_section(page, "Explore")
    page.locator("[data-mode=draw]").tap()
    pens, view = (page.locator(each).bounding_box() for each in ("[data-pen=eraser]", ".view"))
    assert pens and view and 0 <= view["x"] - (pens["x"] + pens["width"]) < 16 and pens["y"] > view["y"]


@pytest.mark.parametrize("size", [(390, 844), (390, 664)])
def test_with_a_photo_nothing_lies_on_the_picture_of_a_phone_or_is_cut_by_its_bar(
    window: Callable[..., Page], address: str, size: tuple[int, int]
) -> None:
    page = window(size, "phone")
    page.goto(f"{address}#tab=photos")
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')

    def edges(part: str) -> tuple[float, float]:
        box = page.locator(part).first.bounding_box()
        assert box
        return box["y"], box["y"] + box["height"]

    page.locator(".answers > span").first.wait_for(state="attached")
    bar, picture = edges(".handle")[0], edges(".picture")
    for way in ("choose", "live"):
        assert edges(f".photo-ways [data-way={way}]")[1] <= picture[0], way
        assert page.locator(f".photo-ways [data-way={way}]").evaluate(IN_SIGHT), way
    for part in (".verbs", ".cells canvas"):
        assert edges(part)[1] <= bar, part
    page.locator(".all-classes summary").tap()
    assert page.locator(".all-classes input").evaluate(IN_SIGHT), "the list opens where there is room"
    page.keyboard.press("Escape")
    page.locator("[data-mode=rub]").tap()
    page.wait_for_selector(".stage[data-verb=rub]")
    assert edges(".verbs")[1] <= bar
    boxes = [
        page.locator(each).bounding_box() for each in (".photo-ways [data-way=choose]", ".photo-ways [data-way=live]")
    ]
    classes = page.locator(".all-classes summary").bounding_box()
    assert classes and all(box and box["x"] >= classes["x"] + classes["width"] for box in boxes), "beside each other"
    assert edges(".fewest")[1] <= picture[0] and page.locator(".fewest").is_visible(), "it stands above the picture"


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_on_a_low_phone_a_guess_that_is_told_moves_nothing(
    window: Callable[..., Page], address: str, language: str
) -> None:
    page = window((390, 664), "phone")
    page.goto(f"{address}?language={language}#digit=7&patch_size=4")
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    page.locator("[data-mode=rub]").tap()
    page.locator(".headline .guess").tap()
    page.locator(".stage.guessing").wait_for(state="attached")
    parts = [page.locator(part) for part in (".picture", ".verbs")]
    before = [part.bounding_box() for part in parts]
    page.touchscreen.tap(*middle_of(page.locator(".picture"), 1, 1))
    page.locator(".stage.told").wait_for(state="attached")
    assert page.locator(".headline .now b").count(), "it names the square that the answer needs most"
    assert [part.bounding_box() for part in parts] == before and page.evaluate("scrollY") == 0
    bar = page.locator(".handle").bounding_box()
    assert bar and before[1] and before[1]["y"] + before[1]["height"] <= bar["y"]
    headline, bars = (page.locator(part).bounding_box() for part in (".headline", ".bars .first"))
    assert headline and bars and before[0] and headline["y"] + headline["height"] <= bars["y"] + 4
    assert bars["y"] + bars["height"] <= before[0]["y"]


def test_on_a_phone_an_unsure_digit_has_its_question_mark_below_the_blocks(
    window: Callable[..., Page], address: str
) -> None:
    page = window((390, 844), "phone")
    page.goto(f"{address}#digit=9&model=digits-small&patch_size=7&removed=10-15")
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"] .headline .now:has-text("unsure")')
    name = page.locator(".stage").get_attribute("data-top1")
    assert page.locator(".answers strong").last.inner_text() == f"{name}?"


IN_SIGHT = """(element) => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const isOnTop = element.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && isOnTop;
}"""
"""Whether all of an element is on the screen, with nothing over its middle."""


def test_on_a_large_desktop_all_settings_stand_beside_the_answer(window: Callable[..., Page], address: str) -> None:
    page = open_page(window, address, "large desktop")
    drawer = page.locator(".drawer")
    assert drawer.is_visible(), "from the start"
    tops = "['.headline', '.view', '.blocks'].map((each) => document.querySelector(each).getBoundingClientRect().x)"
    before = page.evaluate(tops)
    controls = [
        *drawer.locator(".method").all(),
        *drawer.locator(".grid").first.locator(":visible:is(input, label)").all(),
    ]
    assert len(controls) > 18 and all(control.evaluate(IN_SIGHT) for control in controls), "without scrolling"
    for part in (".headline", ".bars .first .number", ".sentence", ".ways .trust", ".tour"):
        assert page.locator(part).evaluate(IN_SIGHT), part
    drawer.get_by_text("Rollout", exact=True).click()
    page.mouse.click(5, 500)
    assert drawer.is_visible(), "a click elsewhere leaves it open"
    assert drawer.locator(".method").first.get_attribute("title") == "Where faithfulness matters more than speed."
    assert page.locator(
        "a.rank[href='./faithfulness']", has_text="How good is this kind of map? No.\u00a0"
    ).is_visible()
    assert drawer.locator(".all p a").evaluate("e => getComputedStyle(e).color") == page.locator(
        ".ways .take"
    ).evaluate("e => getComputedStyle(e).color"), "a link looks like one"
    drawer.get_by_text("Libra FullGrad+", exact=True).click()
    drawer.get_by_text("How is this computed?").click()
    drawer.locator(".method-docs pre").wait_for()
    assert drawer.evaluate("e => e.scrollWidth <= e.clientWidth"), "a formula widens nothing"
    drawer.locator(".close").click()
    assert drawer.is_hidden() and page.evaluate(tops) == before, "it moves nothing of the picture"
    page.reload()
    page.wait_for_selector('.stage[data-ready="true"]')
    assert drawer.is_hidden(), "it stays as it was left"
    settings(page)
    open_section(page, "Compare")
    page.locator(".compare canvas").first.wait_for()
    edges = "['.compare', '#header header'].map((e) => document.querySelector(e).getBoundingClientRect().right)"
    comparing, header = page.evaluate(edges)
    assert abs(comparing - header) < 1, "the other sections have all of the width"
    page.set_viewport_size({"width": 1440, "height": 900})
    open_section(page, "Explore")
    drawer.wait_for(state="hidden")


def test_a_large_desktop_shows_more_of_each_patch_size_and_the_heads(window: Callable[..., Page], address: str) -> None:
    page = open_page(window, address, "large desktop")
    shown = "all => all.filter((one) => one.checkVisibility()).map((one) => one.textContent)"
    for name, is_wide in (("desktop", False), ("large desktop", True)):
        page.set_viewport_size({"width": SIZES[name][0], "height": SIZES[name][1]})
        names = page.locator(".size-names > *").evaluate_all(shown)
        assert names == ["pixels", "squares", "% right", *["tokens", "M operations"][: 2 * is_wide]]
        config, size = PRESETS["digits-small"].config, 4
        tokens = num_tokens(config, size)
        chosen = page.locator("#patch-sizes label", has=page.locator(f"input[value='{size}']")).locator("small")
        numbers = [str(tokens), str(round(num_operations(config, size, tokens) / 1e6))]
        assert chosen.evaluate_all(shown)[2:] == numbers[: 2 * is_wide]
    page.locator(".blocks .more").click()
    cells = page.locator(".cell[data-peak]")
    cells.nth(23).wait_for()
    page.wait_for_function("scrollY > 0")
    assert cells.nth(23).evaluate(IN_SIGHT)
    peak = float(shown_result(page).attention_maps()[5, 3].max())
    assert cells.nth(23).get_attribute("data-peak") == f"{100 * peak:.1f}\u00a0%"


@pytest.mark.parametrize("name", ["large desktop", "phone"])
def test_all_that_can_be_taken_away_opens_beside_the_picture(
    window: Callable[..., Page], address: str, name: str
) -> None:
    page = open_page(window, address, name)
    link, card = page.locator(".ways .take"), page.locator(".chapter.download")
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    link.click()
    ways = card.locator("button").all()
    assert len(ways) == 10
    for way in ways:
        way.scroll_into_view_if_needed()  # within the card, on a low screen
        assert way.evaluate(IN_SIGHT), way.inner_text()
    assert card.evaluate("e => e.scrollWidth <= e.clientWidth"), "nothing in it is cut off"
    with page.expect_download() as saved:
        card.get_by_role("button", name="JSON").click()
    assert saved.value.suggested_filename.endswith(".json")
    assert card.get_by_role("status").inner_text().startswith("Saved drawing-8-"), "what was saved is said in it"
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('.download.near')")
    assert page.evaluate("document.activeElement.className") == "link take"
    link.click()
    page.locator(".headline").click(position={"x": 2, "y": 2}) if name != "phone" else page.mouse.click(2, 5)
    page.wait_for_function("!document.querySelector('.download.near')")
    assert page.evaluate("scrollY") == before


@pytest.mark.parametrize(("size", "link"), [((1366, 768), "#lesson=3"), ((1280, 720), "#tab=photos")])
def test_on_a_low_screen_the_blocks_and_their_answers_are_in_sight(
    window: Callable[..., Page], address: str, size: tuple[int, int], link: str
) -> None:
    page = window(size)
    page.goto(address + link)
    page.wait_for_function("document.querySelectorAll('.answers > span').length === 6")
    for part in [*page.locator(".answers > span").all(), page.locator(".tour")]:
        assert part.evaluate(IN_SIGHT), part.inner_text()
    for part in (".ways .take", ".ways .settings", ".ways .trust", ".blocks .more"):
        assert page.locator(part).evaluate(IN_SIGHT), part


def test_on_a_phone_the_tour_has_one_bar_at_the_foot(window: Callable[..., Page], address: str) -> None:
    page = open_page(window, address, "phone")
    at = "(y) => document.elementFromPoint(innerWidth / 2, innerHeight - y).closest('.walk, .handle')?.className"
    assert page.evaluate(at, 10) == "handle"
    open_steps(page)
    page.wait_for_function(f"({at})(10) === 'walk'")
    assert page.evaluate(at, 80) is None
    page.locator(".walk .primary").tap()
    page.wait_for_function("document.querySelector('.steps .count').textContent.includes('2')")
    to_end = "scrollBy(0, document.querySelector('.steps').getBoundingClientRect().bottom - innerHeight + 40)"
    # What is loaded later moves what is below it, so each look scrolls there; while the bar goes up, no other is below.
    page.wait_for_function(f"({to_end}, !({at})(10))")
    assert page.locator(".handle").evaluate("e => getComputedStyle(e).visibility") == "hidden"
    page.wait_for_function(f"(document.querySelector('.faithfulness').scrollIntoView(), ({at})(10) === 'handle')")


CUT_OFF = """() => {
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isScrolled = (element) => element && (scrolls(element) || isScrolled(element.parentElement));
  return [...document.querySelectorAll("#stage .stage > * :not(canvas:not([style]))")]
    .filter((element) => element.getClientRects().length && !isScrolled(element))
    .filter((element) => element.getBoundingClientRect().right > innerWidth - 8)
    .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`);
}"""


def test_on_a_narrow_phone_nothing_is_cut_off(window: Callable[..., Page], address: str) -> None:
    page = window((320, 700), "phone")
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    for section in ("Explore", "Build", "Compare"):
        open_section(page, section)
        if section == "Build":  # with the longest numbers
            page.get_by_text("Change the network").tap()
            page.locator(".build").get_by_label("Start from").select_option("ViT-Tiny")
            page.locator(".build .fields").get_by_label("Image size").fill("2048")
            page.wait_for_function("document.querySelector('.build .totals div:nth-child(3) dd')?.title === '16,385'")
        if section == "Compare":  # its canvases have their size once they show something
            page.wait_for_function("document.querySelectorAll('.compare dd').length >= 14")
        wait_until(page, lambda: page.evaluate(CUT_OFF) == [])
    assert page.locator(".compare dd").evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")
