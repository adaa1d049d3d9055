"""The first screen at every width: all is in sight, nothing moves or is cut, and its numbers are the package's."""

from collections.abc import Callable

import pytest

from ..percentages import percentage
from .acts import CUT, FIXED, REWRITTEN, WATCH, said, wait_until_done
from .choosing import STAGE, Page, draw, frames, look_from, middle_of, open_page, rub, shown_result, wait_until

SIZES = {
    **{"1920": (1920, 1080), "1440": (1440, 900), "1366": (1366, 768), "1280": (1280, 720), "1024": (1024, 768)},
    **{"tablet": (820, 1180), "small tablet": (700, 1000), "phone": (390, 844), "low phone": (390, 664)},
}
ACTED = ("1366", "tablet", "phone")
FIRST = (".headline", ".view", ".bars", ".verbs")
NBSP = "\u00a0"


@pytest.fixture(scope="module")
def screens(lasting_window: Callable[..., Page], address: str) -> Callable[[str], Page]:
    """The page in a window of a size; all sizes of a kind of screen share one."""
    pages: dict[str, Page] = {}

    def screen(size: str) -> Page:
        width, height = SIZES[size]
        kind = size.split()[-1] if size[0].isalpha() else "desktop"
        if kind not in pages:
            pages[kind] = open_page(lasting_window(SIZES[size], kind), address)
            pages[kind].evaluate("document.fonts.ready")
        page = pages[kind]
        page.set_viewport_size({"width": width, "height": height})
        choose_tab(page, "digits")
        show_digit(page, 8)
        page.evaluate("scrollTo(0, 0)")
        return page

    return screen


def press(page: Page, selector: str) -> None:
    """Presses a control of the inputs, which may lie in the closed sheet of a phone."""
    page.locator(selector).first.evaluate("control => control.click()")


def choose_tab(page: Page, name: str) -> None:
    press(page, f"#tab-{name}")
    page.wait_for_function(f"isDigit => {STAGE}.current()?.pixelated === isDigit", arg=name == "digits")
    wait_until_done(page)


def show_digit(page: Page, digit: int) -> None:
    page.locator(".example").nth(digit).evaluate("button => button.click()")
    page.wait_for_function(f"digit => {STAGE}.current()?.exampleDigit === digit", arg=digit)
    wait_until_done(page)


def rubbed(page: Page, *patches: int) -> None:
    """Waits until these squares are rubbed out."""
    page.wait_for_function(f"patches => {STAGE}.current().dropped.join() === patches", arg=",".join(map(str, patches)))


def wait_for_texts(page: Page, selector: str, texts: list[str]) -> None:
    all_of = (
        "([selector, texts]) => [...document.querySelectorAll(selector)].map((e) => e.textContent).join() === texts"
    )
    page.wait_for_function(all_of, arg=[selector, ",".join(texts)])


def check(page: Page, act: str) -> None:
    """After an act: the numbers are the package's, nothing is cut, and nothing has moved."""
    wait_until_done(page)
    result = shown_result(page)
    shares = [share for _, share in result.top(5)] if len(result.labels) > 12 else result.probabilities
    wait_for_texts(page, ".bars .number", [percentage(float(share), NBSP) for share in shares])
    assert said(page)["first"] == [result.top(1)[0][0]], act
    wait_for_texts(page, ".answers > span", [percentage(block[0][1], NBSP) for block in result.logit_lens()[1:]])
    assert page.evaluate("[...window.moved]") == [], act
    assert page.evaluate(CUT) == [], act
    wait_until(page, lambda: page.evaluate(REWRITTEN) == [])  # once all has arrived


@pytest.mark.parametrize("size", SIZES)
def test_picture_answers_and_verbs_are_on_the_first_screen(screens: Callable[[str], Page], size: str) -> None:
    page = screens(size)
    for tab in ("digits", "photos"):
        choose_tab(page, tab)
        page.evaluate("scrollTo(0, 0)")
        frames(page)
        foot = page.locator(".handle").bounding_box() if page.locator(".handle").is_visible() else None
        end = foot["y"] if foot else SIZES[size][1]
        for part in FIRST:
            box = page.locator(part).bounding_box()
            assert box and box["width"] > 0 and box["x"] >= 0 and box["y"] >= 0, (tab, part)
            assert box["x"] + box["width"] <= SIZES[size][0] and box["y"] + box["height"] <= end + 1, (tab, part)
        for verb in ("rub", "look", "draw"):
            page.locator(f"[data-mode={verb}]").click()
            page.wait_for_selector(f".stage[data-verb={verb}]")
            frames(page)
            assert page.evaluate(CUT) == [], (tab, verb)
            ways = page.locator(".photo-ways [data-way=choose]" if foot else "#photo [data-way=choose]")
            assert ways.is_visible() == (tab == "photos"), (tab, verb)
            choose = ways.bounding_box() if foot and tab == "photos" and verb != "draw" else None
            picture = page.locator(".picture").bounding_box()
            assert not choose or (picture and choose["y"] + choose["height"] <= picture["y"]), "it covers no square"
        tour = page.locator(".tour").bounding_box()
        assert tour and tour["y"] + tour["height"] <= SIZES[size][1], tab
        beside = page.locator(".handle button").last.bounding_box()
        assert not foot or (beside and beside["x"] + beside["width"] <= tour["x"]), "the fourth in the bar"
        assert foot or max(page.evaluate(HOLES)) < 180, tab
        rank = page.locator(".rank", has_text="How good is this kind of map? No.\u00a0")
        assert rank.evaluate("rank => rank.checkVisibility()"), "of the map that is shown, at every width"
        assert page.evaluate(TOUCHING) == [], tab
    if size == "tablet":
        assert not page.evaluate(IS_COVERED), "the buttons of the steps lie over none of them"
        page.evaluate("document.body.classList.add('dark')")
        filters = [
            f"getComputedStyle(document.querySelector('{each}')).filter"
            for each in (".picture", ".tour-picture", ".mirror canvas")
        ]
        choose_tab(page, "digits")
        assert len({page.evaluate(each) for each in filters} - {"none"}) == 1, "a drawing is as dark in every chapter"
        page.evaluate("document.body.classList.remove('dark')")


HOLES = """() => {
  const [bars, meaning, blocks] = [".bars", ".meaning", ".blocks"].map((selector) =>
    document.querySelector(selector).getBoundingClientRect());
  return [meaning.top - bars.bottom, Math.min(innerHeight, blocks.bottom) - meaning.bottom];
}"""
"""CSS pixels between the answers and what the colours mean, and below that to the foot of the blocks."""

TOUCHING = """() => {
  const rects = [...document.querySelectorAll(".answers strong > span")].map((name) => {
    const range = document.createRange();
    range.selectNodeContents(name);
    return range.getBoundingClientRect();
  });
  return rects.slice(1).map(({ left }, i) => left - rects[i].right).filter((gap) => gap < 1);
}"""
"""Gaps between neighbouring names below the blocks that are none."""

IS_COVERED = """() => {
  const [walk, nav] = [".walk", ".network"].map((each) => document.querySelector(`.steps ${each}`));
  return walk.getBoundingClientRect().bottom > nav.getBoundingClientRect().top;
}"""


@pytest.mark.parametrize("size", ACTED)
def test_every_act_leaves_all_in_its_place(screens: Callable[[str], Page], size: str) -> None:
    page = screens(size)
    page.evaluate(WATCH, FIXED)
    check(page, "opened")
    draw(page, 3)
    page.wait_for_selector('.stage[data-top1="3"]')
    check(page, "drawn")
    page.locator(".again").click()
    page.wait_for_selector(".stage[data-ready=empty]")
    frames(page)
    draw(page, 4)
    page.wait_for_selector('.stage[data-top1="4"]')
    check(page, "drawn on empty paper")
    show_digit(page, 8)
    rub(page)
    check(page, "rub out")
    for patches in ((5,), (5, 9)):
        place = middle_of(page.locator(".picture"), patches[-1] // 4, 1, 4, 4)
        page.touchscreen.tap(*place) if page.evaluate("'ontouchstart' in window") else page.mouse.click(*place)
        rubbed(page, *patches)
        check(page, f"without {patches}")
    assert page.locator(".changed .bars .first .label").inner_text() == "3", "the 8 has become a 3"
    look_from(page)
    page.locator(".next-act", has_text="what does it look at?").wait_for()
    check(page, "looks without squares")
    rub(page)
    page.locator(".back").click()
    rubbed(page)
    check(page, "all back")
    page.locator(".picture").focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_function(f"{STAGE}.current().dropped.length === 1")
    check(page, "keyboard")
    page.keyboard.press(" ")
    rubbed(page)
    needed = shown_result(page).needed()  # before the click: a quick search shows another result at once
    page.locator(".fewest").click()
    assert needed is not None and needed.is_minimal
    rubbed(page, *sorted(row * 4 + column for row, column in needed.patches))
    check(page, "the fewest")
    page.locator(".next-act", has_text="No fewer are known.").wait_for()


@pytest.mark.parametrize("size", ACTED)
def test_every_choice_leaves_all_in_its_place(screens: Callable[[str], Page], size: str) -> None:
    page = screens(size)
    page.evaluate(WATCH, FIXED)
    look_from(page)
    page.locator(".picture").click(position={"x": 40, "y": 40})
    page.wait_for_function(f"{STAGE}.choices.pinned === 0")
    page.locator(".headline", has_text="Row 1, column 1 looks at").wait_for()
    check(page, "looks from a square that is kept")
    page.keyboard.press("d")
    for word in ("plain", "class", "attention"):
        page.locator(f"[data-show={word}]").click()
        page.locator(f"[data-show={word}][aria-pressed=true]").wait_for()
        page.wait_for_function(f"{STAGE}.scene().map")
        check(page, word)
    for place in (0, 4):
        page.locator(".bars button").nth(place).click()
        page.locator(".bars button[aria-pressed=true]").wait_for()
        check(page, f"bar {place + 1}")
    for block in (0, 5):
        page.locator(f"[data-block='{block}']").click()
        page.locator(f"[data-block='{block}'][aria-pressed=true]").wait_for()
        check(page, f"block {block + 1}")
    page.locator(".tour").click()
    page.wait_for_selector(".filming")
    page.evaluate("scrollTo(0, 200)")
    page.keyboard.press("Escape")
    page.wait_for_function("scrollY === 0 && !document.querySelector('.filming')")


@pytest.mark.parametrize("size", ACTED)
def test_another_picture_or_grid_leaves_all_in_its_place(screens: Callable[[str], Page], size: str) -> None:
    page = screens(size)
    page.evaluate(WATCH, FIXED)
    for digit in (0, 1, 7):
        show_digit(page, digit)
        check(page, f"the digit {digit}")
    for patch_size in (14, 4, 2, 7):
        press(page, f"#patch-sizes input[value='{patch_size}']")
        page.wait_for_function(f"side => {STAGE}.current().columns === side", arg=28 // patch_size)
        check(page, f"squares of {patch_size}")
    choose_tab(page, "photos")
    page.evaluate(WATCH, FIXED)
    for place in (1, 2, 8, 0):  # the third is none of the classes
        if size == "phone":
            press(page, "[data-sheet=photos]")
        page.locator("#photos button").nth(place).evaluate("button => button.click()")
        assert not page.locator(".inputs").get_attribute("data-sheet"), "the sheet is closed, and the picture in sight"
        page.locator("#photos button").nth(place).and_(page.locator("[aria-pressed=true]")).wait_for(state="attached")
        check(page, f"photo {place + 1}")
