"""The first screen at three sizes: all in sight, nothing that moves or is cut, no sentence beside the numbers."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from ..asynchronous import PATIENCE
from ..percentages import percentage
from .choosing import STAGE, Browser, Page, middle_of, open_page, shown_result, wait_until

INVITATION = """({dropping, section, plain, method}) => dropping
  ? "Rub out squares. Can you make it say something else?"
  : plain || section === "features" ? ""
  : method === "attention" ? "Choose a square: what does it look at?" : "Choose a square to read its value."
"""
"""What is offered below the picture, by what a click does with what it shows."""

NBSP = "\u00a0"
SIZES = {"desktop": (1440, 900), "laptop": (1366, 768), "phone": (390, 844)}
FIRST_SCREEN = {
    "desktop": (".headline", ".view", ".bar", ".challenge", ".explore > .answer", ".blocks", "#inputs"),
    "laptop": (".headline", ".view", ".bar", ".challenge", ".explore > .answer", ".blocks", "#inputs"),
    "phone": (".headline", ".view", ".bar", ".bars .first"),
}
FIXED = (
    ".headline, .explore .seen, .bar, .challenge, .explore > .answer, .predictions, .sentence, .scale, .caption, .ways,"
    " .blocks, [data-show=plain], [data-show=attention], .switch button"
)
"""What stays where it is, whatever a visitor does."""

WATCH = """(selector) => {
  const parts = [...document.querySelectorAll(selector)];
  const boxes = () => parts.map((part) => {
    const { x, y, width, height } = part.getBoundingClientRect();
    return width ? [x + scrollX, y + scrollY, width, height] : null;
  });
  const first = boxes();
  const nameOf = (part) => part.dataset.show ?? part.dataset.mode ?? part.className;
  window.moved = new Set();
  const look = () => {
    for (const [i, box] of boxes().entries()) {
      if (!box) continue;
      first[i] ??= box;
      const isSame = box.every((side, at) => Math.abs(side - first[i][at]) < 1);
      if (!isSame) window.moved.add(`${nameOf(parts[i])}: ${first[i].map(Math.round)} became ${box.map(Math.round)}`);
    }
    requestAnimationFrame(look);
  };
  look();
}"""
"""Compares with every frame where the parts are with where they were first."""

CUT = """() => {
  const texts = document.createTreeWalker(document.querySelector(".gradio-container"), NodeFilter.SHOW_TEXT);
  const other = ".visually-hidden, select, script, style, .chapter, #footer, .scroller, #skip, .drawer";
  const found = [];
  const explored = []; // [text, rect]
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const box = node.parentElement;
    const text = node.data.trim();
    if (!text || box.closest(other)) continue;
    if (!box.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({ width }) => width);
    if (box.clientWidth && box.scrollWidth > box.clientWidth + 1) found.push(`wider than its box: ${text}`);
    if (rects.some(({ left, right }) => left < -1 || right > innerWidth + 1)) found.push(`beyond the screen: ${text}`);
    if (!box.closest(".explore")) continue;
    for (const one of rects) {
      const isOver = ([, two]) =>
        Math.min(one.right, two.right) - Math.max(one.left, two.left) > 2 &&
        Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 6;
      found.push(...explored.filter(isOver).map(([words]) => `over each other: ${words} / ${text}`));
    }
    explored.push(...rects.map((rect) => [text, rect]));
  }
  return found;
}"""
"""Words that are wider than their box, beyond the screen or over each other."""

TOLD = """() => {
  const text = (selector) => document.querySelector(selector).innerText.replace(/\\s+/g, " ").trim();
  const all = (selector) => [...document.querySelectorAll(selector)];
  const bars = all(".bars button").filter((bar) => bar.checkVisibility({ visibilityProperty: true }));
  const markOf = (mark) => (mark.hidden ? null : Math.round(10 * parseFloat(mark.style.left)));
  const answers = all(".answers strong").flatMap((name) =>
    new Array(Number(/span (\\d+)/.exec(name.style.gridColumn)[1])).fill(name.title));
  return {
    headline: text(".headline"),
    challenge: text(".challenge p"),
    bars: bars.map((bar) => [bar.querySelector(".label").innerText, bar.querySelector(".number").innerText]),
    marks: bars.map((bar) => markOf(bar.querySelector("b"))),
    answers: all(".answers > span").map((number, block) => [answers[block], number.innerText]),
    isSettled: all(".answers .yes").length > 0,
    word: text("[data-show=class]"),
  };
}"""


def truth(page: Page, challenge: str | None) -> dict[str, Any]:
    """What the first screen must say of the picture that is shown, by the package's own numbers."""
    result = shown_result(page)
    whole, count = shown_result(page, with_all=True), len(result.dropped)
    (first, probability), before = result.top(1)[0], whole.top(1)[0][0]
    digit = page.evaluate(f"{STAGE}.current().exampleDigit ?? null")
    picture = "the photo" if result.preset.task == "photos" else "your drawing" if digit is None else f"your {digit}"
    is_unsure = not result.is_confident
    unsure = f"is unsure: {first}, {percentage(probability, NBSP)}?"
    if count:
        squares = "1 square" if count == 1 else f"{count} squares"
        sure = f"{'still ' * (first == before)}says {first}: {percentage(probability, NBSP)}."
        headline = f"Without {squares} it {unsure if is_unsure else sure}"
    else:
        headline = f"The network cuts {picture} into {result.grid[0] * result.grid[1]} squares, lets them look at "
        headline += f"each other {result.preset.config.depth} times, and "
        headline += unsure if is_unsure else f"says {first}."
    news = f"still {before}." if first == before else f"now it says {first}."
    words = f"{count} rubbed out: {f'unsure, {first}?' if is_unsure else news}"
    top = result.top(5)
    chosen = page.evaluate(f"{STAGE}.choices.label")
    name = first if chosen is None else result.labels[chosen]
    return {
        "headline": headline.replace("\u00a0", " "),
        "challenge": challenge or (words if count else page.evaluate(f"({INVITATION})({STAGE}.choices)")),
        "bars": [[label, percentage(share, NBSP)] for label, share in top],
        "marks": [round(1000 * dict(whole.top(len(whole.labels)))[label]) if count else None for label, _ in top],
        "answers": [[block[0][0], percentage(block[0][1], NBSP)] for block in result.logit_lens()[1:]],
        "isSettled": not is_unsure,
        "word": f"What speaks for {name if len(name) <= 2 else 'it'}",
    }


def check(page: Page, act: str, challenge: str | None = None) -> None:
    """After an act: the words are true, whole and in sight, and nothing has moved."""
    page.wait_for_selector('.stage[data-state="done"]')
    with suppress(AssertionError):
        wait_until(page, lambda: page.evaluate(TOLD) == truth(page, challenge))
    assert page.evaluate(TOLD) == truth(page, challenge), act
    assert page.evaluate("[...window.moved]") == [], act
    assert page.evaluate(CUT) == [], act
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], act  # type: ignore[index]


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[[str], Page]]:
    """Opens the page, or what a link says, in a window of a size."""
    contexts, errors = [], []

    def visit(name: str, link: str = "") -> Page:
        width, height = SIZES[name]
        size, phone = {"width": width, "height": height}, name == "phone"
        contexts.append(browser.new_context(viewport=size, is_mobile=phone, has_touch=phone, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        open_page(page, address + link)
        page.wait_for_function("document.querySelectorAll('.answers > span').length === 6")
        page.evaluate("document.fonts.ready")
        page.evaluate(WATCH, FIXED)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []


def press(page: Page, row: int, column: int) -> None:
    """Clicks a square with the mouse, or taps it."""
    place = middle_of(page.locator(".picture"), row, column, *shown_result(page).grid)
    (page.touchscreen.tap if page.viewport_size["width"] < 400 else page.mouse.click)(*place)  # type: ignore[index]


def rubbed(page: Page, *patches: int) -> None:
    """Waits until these squares are rubbed out."""
    page.wait_for_function(f"patches => {STAGE}.current().dropped.join() === patches", arg=",".join(map(str, patches)))


def drag(page: Page, row: int, columns: range) -> None:
    """Draws over squares of a row, with a pressed mouse or a finger."""
    places = [middle_of(page.locator(".picture"), row, column, *shown_result(page).grid) for column in columns]
    if page.viewport_size["width"] > 400:  # type: ignore[index]
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place, steps=3)
        return page.mouse.up()
    finger = page.context.new_cdp_session(page)
    for kind, place in [("Start", places[0]), *(("Move", place) for place in places[1:]), ("End", None)]:
        points = [{"x": place[0], "y": place[1]}] if place else []
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    return None


@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_holds_all_that_belongs_to_it(visit: Callable[[str], Page], size: str) -> None:
    page = visit(size)
    foot = page.locator(".handle").bounding_box() if size == "phone" else None
    for part in FIRST_SCREEN[size]:
        box = page.locator(part).bounding_box()
        assert box and box["width"] > 0 and box["y"] >= 0, part
        assert box["y"] + box["height"] <= (foot["y"] if foot else SIZES[size][1]), part
    picture = page.locator(".picture").bounding_box()
    assert picture and picture["width"] == picture["height"] >= {"desktop": 470, "laptop": 360, "phone": 280}[size]
    check(page, "opened")
    result = shown_result(page)
    assert (result.preset.name, result.patch_size, result.top(1)[0][0]) == ("digits-small", 7, "8")


@pytest.mark.parametrize("size", SIZES)
def test_squares_are_rubbed_out_and_come_back(visit: Callable[[str], Page], size: str) -> None:
    page = visit(size)
    if size != "phone":
        page.mouse.move(*middle_of(page.locator(".picture"), 1, 1, 4, 4))
        page.locator(".value", has_text="row 2, column 2: gets ").wait_for()
        check(page, "hover")
    press(page, 1, 1)
    rubbed(page, 5)
    check(page, "one square")
    press(page, 2, 1)
    rubbed(page, 5, 9)
    check(page, "two squares")
    assert page.locator(".changed .bars .first .label").inner_text() == "3", "the 8 has become a 3"
    press(page, 1, 1)
    rubbed(page, 9)
    check(page, "one is back")
    page.locator(".undo").click()
    rubbed(page)
    check(page, "undone")
    drag(page, 1, range(4))
    rubbed(page, 4, 5, 6, 7)
    check(page, "drawn over")
    drag(page, 1, range(4))
    rubbed(page)
    check(page, "drawn over again: they are back")
    page.locator(".picture").focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_function(f"{STAGE}.current().dropped.length === 1")
    check(page, "keyboard")
    page.keyboard.press(" ")
    rubbed(page)
    check(page, "keyboard, back")
    page.keyboard.press("Escape")
    needed = shown_result(page).needed()  # before the click: a quick search shows another result at once
    page.locator(".fewest").click()
    assert needed is not None and needed.is_minimal
    patches = sorted(row * 4 + column for row, column in needed.patches)
    rubbed(page, *patches)
    label = shown_result(page).top(1)[0][0]
    check(page, "the fewest", f"The fewest found, {len(patches)}: now it says {label}.")


@pytest.mark.parametrize("size", SIZES)
def test_every_choice_leaves_all_in_its_place(visit: Callable[[str], Page], size: str) -> None:
    page = visit(size)
    page.locator("[data-mode=look]").click()
    if size != "phone":
        page.mouse.move(*middle_of(page.locator(".picture"), 1, 2, 4, 4))
        page.locator(".subject", has_text="From the square in row 2, column 3").wait_for()
        check(page, "look from")
    press(page, 1, 2)
    page.wait_for_function(f"{STAGE}.choices.pinned === 6")
    check(page, "looks from a square that is kept")
    page.locator("[data-mode=rub]").click()
    for word in ("plain", "class", "attention"):
        page.locator(f"[data-show={word}]").click()
        page.locator(f"[data-show={word}][aria-pressed=true]").wait_for()
        page.wait_for_function(f"{STAGE}.scene().map")
        check(page, word)
    for place, (label, _) in enumerate(shown_result(page).top(5)):
        page.locator(".bars button").nth(place).click()
        page.locator(".subject", has_text=f"What speaks for {label}").wait_for()
        check(page, f"the class {label}")
    for block in range(6):
        page.locator(f"[data-block='{block}']").click()
        page.locator(".subject", has_text=f"block {block + 1} of 6").wait_for()
        check(page, f"block {block + 1}")


@pytest.mark.parametrize("size", SIZES)
def test_another_picture_or_grid_leaves_all_in_its_place(visit: Callable[[str], Page], size: str) -> None:
    page = visit(size)
    tab = "button[data-sheet={}]" if size == "phone" else "#tab-{}"
    page.locator(tab.format("digits")).click()
    for digit in range(10):
        page.locator(".digits button").nth(digit).click()
        page.wait_for_function(f"digit => {STAGE}.current().exampleDigit === digit", arg=digit)
        check(page, f"the digit {digit}")
    page.locator(tab.format("photos")).click()
    for place in (0, 1, 2, 3, 8):  # the last is none of the classes
        page.locator("#photos button").nth(place).click()
        page.locator("#photos button[aria-pressed=true]").wait_for()
        page.wait_for_function(f"!{STAGE}.current().pixelated")
        check(page, f"photo {place + 1}")


@pytest.mark.parametrize("size", SIZES)
def test_another_grid_leaves_all_in_its_place_and_the_challenge_offers_the_search(
    visit: Callable[[str], Page], size: str
) -> None:
    page = visit(size)
    for patch_size in (14, 4, 2):
        if size == "phone":
            page.locator("button[data-sheet=model]").click()
        page.locator("#patch-sizes label", has=page.locator(f"input[value='{patch_size}']")).click()
        page.wait_for_function(f"side => {STAGE}.current().columns === side", arg=28 // patch_size)
        if size == "phone":
            page.locator("button[data-sheet=model]").click()
        check(page, f"squares of {patch_size}")
    drag(page, 0, range(14))
    rubbed(page, *range(14))
    check(page, "the empty margin", "14 rubbed out, still 8. Let it search?")
    page.locator(".challenge.offers .fewest").wait_for()
