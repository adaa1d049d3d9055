"""The first screen on desktops, tablets, a phone and with the browser's zoom: what is in sight; nothing moves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from .conftest import NOT_FIRST

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = {
    "desktop": (1440, 900),
    "laptop": (1280, 720),
    "large tablet": (820, 1180),
    "small tablet": (768, 1024),
    "phone": (390, 844),
    "small phone": (360, 640),
    "laptop at 200 %": (640, 360),
    "desktop at 200 %": (720, 450),
}
FIRST_TASK = {
    "desktop": ["#tabs", "#model", ".look", ".predictions", ".welcome"],
    "laptop": ["#tabs", "#model #patch-size", ".look", ".predictions", ".welcome"],
    "large tablet": ["#tabs", "#model", ".welcome", ".look .headline", ".look .picture"],
    "small tablet": ["#tabs", "#model", ".welcome", ".look .headline", ".look .picture"],
    "phone": [".welcome", "#tabs", ".look .headline", ".look .picture"],
    "small phone": ["#tabs", ".look .headline"],
    "laptop at 200 %": [".look .headline"],
    "desktop at 200 %": [".look .headline", ".look .picture"],
}
OBSERVE = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""


def open_page(browser: Browser, address: str, name: str, *, first_visit: bool = True) -> Page:
    width, height = SIZES[name]
    is_phone = "phone" in name
    touch = "tablet" in name or is_phone
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=touch, is_mobile=is_phone, reduced_motion="reduce"
    )
    page = context.new_page()
    page.add_init_script(OBSERVE if first_visit else NOT_FIRST)
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    page.wait_for_timeout(500)
    return page


def bottoms(page: Page, selectors: list[str]) -> dict[str, float]:
    return {
        selector: page.locator(selector).evaluate("element => element.getBoundingClientRect().bottom")
        for selector in selectors
    }


def check_that_nothing_moves_under_a_finger(page: Page) -> None:
    """The welcome, above all else, stays where it is: a deed only makes place for the words about the map."""
    box = page.locator(".paper").bounding_box()
    assert box
    touches = page.context.new_cdp_session(page)
    for kind, part in {"touchStart": 0.2, "touchMove": 0.8, "touchEnd": None}.items():
        place = {"x": box["x"] + 0.4 * box["width"], "y": box["y"] + (part or 0) * box["height"]}
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place] if part else []})
    page.wait_for_timeout(600)
    assert page.locator(".welcome").is_visible() and page.locator(".paper").bounding_box() == box
    assert page.locator(".about").is_hidden()
    places = [page.locator(part).bounding_box() for part in (".paper", ".look .seen")]
    page.get_by_role("button", name="Clear", exact=True).click()
    page.wait_for_selector(".about")
    page.wait_for_selector('.stage[data-ready="empty"]')
    assert [page.locator(part).bounding_box() for part in (".paper", ".look .seen")] == places
    page.locator(".digits button").nth(8).click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()")


@pytest.mark.parametrize("name", SIZES)
def test_the_first_task_is_in_sight_and_nothing_moves(browser: Browser, address: str, name: str) -> None:
    page = open_page(browser, address, name)
    assert sum(page.evaluate("window.shifts")) < 0.1
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if name == "phone":
        check_that_nothing_moves_under_a_finger(page)
    for tab in ("Draw a digit", "Photo"):
        page.get_by_role("tab", name=tab).click()
        digit = "true" if tab.startswith("Draw") else "false"
        page.wait_for_function(f"document.querySelector('.stage').__stage.current()?.pixelated === {digit}")
        page.wait_for_selector('.stage[data-state="done"]')
        beyond = {what: bottom for what, bottom in bottoms(page, FIRST_TASK[name]).items() if bottom > SIZES[name][1]}
        assert not beyond, tab
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if name == "phone":
        page.reload()
        page.wait_for_selector('.stage[data-ready="true"]')
        assert page.locator(".welcome").is_hidden() and page.locator(".about").is_visible(), "a deed ended the welcome"
    page.context.close()


def test_the_welcome_leads_to_step_by_step_and_stands_in_place_of_the_settings_words(
    browser: Browser, address: str
) -> None:
    page = open_page(browser, address, "desktop")
    assert page.locator(".about").is_hidden() and page.locator("#model .summary").is_hidden()
    page.mouse.move(
        *page.locator(".picture").evaluate("e => [e.getBoundingClientRect().x + 9, e.getBoundingClientRect().y + 9]")
    )
    assert page.locator(".welcome").is_visible(), "looking is no deed yet"
    page.get_by_role("button", name="See it step by step").click()
    page.locator(".steps .network .current", has_text="Patches").wait_for()
    page.locator(".steps .part", has_text="Answer").click()
    page.locator(".steps .network .current", has_text=re.compile(r"Answer[\s\S]*you are here")).wait_for()
    assert page.locator(".steps .network .current").inner_text().split() == ["Answer", "8", "you", "are", "here"]
    page.locator(".sections").get_by_role("button", name="Heatmaps").click()
    assert page.locator(".welcome").is_hidden() and page.locator("#model .summary").is_visible()
    page.context.close()


IN_SIGHT = """(element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


@pytest.mark.parametrize("name", ["phone", "small phone"])
def test_on_a_phone_the_picture_is_in_sight_and_other_sections_begin_with_their_own_card(
    browser: Browser, address: str, name: str
) -> None:
    page = open_page(browser, address, name, first_visit=False)
    height = SIZES[name][1]
    assert bottoms(page, [".look .picture"])[".look .picture"] <= height
    assert page.locator(".headline").inner_text().startswith("Prediction: 7")
    order = (".paper", ".picture", "#patch-size", ".look .controls", ".about", ".predictions")
    places = [page.locator(part).bounding_box()["y"] for part in order]
    assert places == sorted(places)
    page.locator(".about").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#patch-size').scrollIntoView({ block: 'end' })")
    assert page.locator(".look .picture").evaluate(IN_SIGHT), "the map is in sight while the patch size changes it"
    page.evaluate("document.querySelector('.about').scrollIntoView()")
    assert page.locator(".about .sentence").evaluate(IN_SIGHT), "a card slides over the picture"
    page.evaluate("scrollTo(0, 0)")
    numbers = page.locator(".caption .value")
    assert numbers.inner_text().endswith("of the rest") and numbers.evaluate(
        "element => element.scrollWidth <= element.clientWidth && element.scrollHeight <= element.clientHeight"
    )
    line = page.locator("#header p")
    assert line.is_visible() and line.evaluate("element => element.scrollWidth <= element.clientWidth"), "what this is"
    page.get_by_role("tab", name="Photo").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.pixelated === false")
    box = page.locator(".look .picture").bounding_box()
    assert box and box["y"] + 0.7 * box["height"] < height
    for section, card in {"Features": ".tokens", "Step by step": ".steps", "Build": ".build"}.items():
        page.locator(".sections").get_by_role("button", name=section, exact=True).tap()
        page.wait_for_selector(f".stage {card}:visible")
        parts = (".sections", f".stage {card}", "#tabs")[: 2 if section == "Build" else 3]  # where a picture matters
        tops = [page.locator(part).bounding_box()["y"] for part in parts]
        assert tops == sorted(tops) and tops[1] < 200, section
    page.context.close()


@pytest.mark.parametrize("name", ["laptop", "phone"])
def test_more_methods_open_over_the_page_and_close_by_themselves(browser: Browser, address: str, name: str) -> None:
    page = open_page(browser, address, name, first_visit=False)
    more, methods = page.locator(".more-methods"), page.locator(".all")
    tops = "[...document.querySelectorAll('.controls > :not(.all), .card')].map(e => e.getBoundingClientRect().top)"
    for leave in (
        lambda: methods.get_by_text("Rollout", exact=True).click(),
        lambda: page.keyboard.press("Escape"),
        lambda: page.mouse.click(5, 5),
        lambda: page.locator("#language").focus(),
    ):
        more.scroll_into_view_if_needed()
        before = page.evaluate(tops)
        more.click()
        assert methods.is_visible() and page.evaluate(tops) == before, "it moves nothing"
        box = methods.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= SIZES[name][0]
        leave()
        methods.wait_for(state="hidden")
        assert more.get_attribute("aria-expanded") == "false"
    assert page.evaluate("document.querySelector('.stage').__stage.choices.method") == "rollout"
    page.context.close()


def test_the_hint_names_the_grid_of_a_photo_that_keeps_its_aspect_ratio(page: Page, address: str) -> None:
    page.goto(f"{address}#tab=photos&photo=church")
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    hint = page.locator("#model .size-text")
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.example === 'church'")
    assert hint.inner_text().startswith("10 × 10 patches + class token = 101 tokens.")
    accuracies = page.locator("#patch-size label small:last-of-type")
    assert "Right on 82.9\u00a0% of 357 everyday photos" in hint.inner_text()
    assert accuracies.nth(1).inner_text() == "82.9"
    page.locator("#fit").get_by_text("Keep aspect ratio").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.fit === 'keep'")
    result = "document.querySelector('.stage').__stage.current()"
    rows, columns = page.evaluate(f"[{result}.rows, {result}.columns]")
    assert rows != columns
    assert hint.inner_text().startswith(f"{rows} × {columns} patches + class token = {rows * columns + 1} tokens.")
    assert hint.inner_text().endswith("The table is about square pictures.")
    assert set(accuracies.all_inner_texts()) == {"–"} and "Right on" not in hint.inner_text(), "measured on the centre"
    page.locator("#fit").get_by_text("Centre").click()
    page.wait_for_function("document.querySelector('.stage').__stage.current()?.source.fit === 'crop'")
    assert hint.inner_text().startswith("10 × 10 patches")


CUT_OFF = """() => {
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isScrolled = (element) => element && (scrolls(element) || isScrolled(element.parentElement));
  const cards = [...document.querySelectorAll("#stage .card")].filter((card) => card.getClientRects().length);
  const inside = cards.flatMap((card) => [...card.querySelectorAll("*")]);
  return inside
    .filter((element) => element.getClientRects().length && !isScrolled(element.parentElement))
    .filter((element) => element.getBoundingClientRect().right > innerWidth - 8)
    .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`);
}"""


def test_on_a_narrow_phone_nothing_is_cut_off(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    for section in ("Heatmaps", "Features", "Step by step", "Build", "Compare"):
        page.locator(".sections").get_by_role("button", name=section, exact=True).tap()
        if section == "Build":  # with the longest numbers
            page.get_by_text("Change the network").tap()
            page.locator(".build").get_by_label("Start from").select_option("ViT-Tiny")
            page.locator(".build .fields").get_by_label("Image size").fill("2048")
            page.wait_for_function("document.querySelector('.build .totals div:nth-child(3) dd').title === '16,385'")
        if section == "Compare":  # its canvases have their size once they show something
            page.wait_for_function("document.querySelectorAll('.compare dd').length >= 14")
        page.wait_for_timeout(300)
        assert page.evaluate(CUT_OFF) == [], section
    assert page.locator(".compare dd").evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")
    context.close()


def test_what_a_deed_has_ended_does_not_come_back(browser: Browser, address: str) -> None:
    page = open_page(browser, address, "desktop")
    assert page.locator(".welcome").is_visible()
    for selector in (".paper", ".look canvas", ".about .terms summary", ".predictions li button", ".paper"):
        page.locator(selector).first.click()
        page.wait_for_timeout(50)
        assert page.locator(".welcome").is_hidden() and page.locator(".about").is_visible(), selector
    page.context.close()
