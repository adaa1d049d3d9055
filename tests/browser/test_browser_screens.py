"""The first screen on other sizes: tablets, a small phone, zoomed in; and the drawer of all settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .choosing import open_section, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = {
    "large desktop": (1920, 1080),
    "desktop": (1440, 900),
    "large tablet": (820, 1180),
    "small tablet": (768, 1024),
    "phone": (390, 844),
    "small phone": (360, 640),
    "laptop at 200 %": (640, 360),
    "desktop at 200 %": (720, 450),
}
FIRST_TASK = {
    "large desktop": [".headline", ".view", ".explore > .answer", ".blocks", "#inputs"],
    "desktop": [".headline", ".view", ".explore > .answer", ".blocks", "#inputs"],
    "large tablet": [".headline", ".view", ".bar", ".challenge", ".bars"],
    "small tablet": [".headline", ".view", ".bar", ".challenge", ".bars"],
    "phone": [".headline", ".view", ".bars .first"],
    "small phone": [".headline", ".view"],
    "laptop at 200 %": [".headline"],
    "desktop at 200 %": [".headline", ".view"],
}
OBSERVE = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });
"""


def open_page(browser: Browser, address: str, name: str) -> Page:
    width, height = SIZES[name]
    is_phone = "phone" in name
    touch = "tablet" in name or is_phone
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=touch, is_mobile=is_phone, reduced_motion="reduce"
    )
    page = context.new_page()
    page.add_init_script(OBSERVE)
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    page.wait_for_timeout(500)
    return page


@pytest.mark.parametrize("name", SIZES)
def test_the_first_task_is_in_sight_and_nothing_moves(browser: Browser, address: str, name: str) -> None:
    page = open_page(browser, address, name)
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
    page.context.close()


@pytest.mark.parametrize("name", ["desktop", "phone"])
def test_all_settings_open_over_the_page_and_close_by_themselves(browser: Browser, address: str, name: str) -> None:
    page = open_page(browser, address, name)
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
    page.context.close()


CUT_OFF = """() => {
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const isScrolled = (element) => element && (scrolls(element) || isScrolled(element.parentElement));
  return [...document.querySelectorAll("#stage .stage > * :not(canvas:not([style]))")]
    .filter((element) => element.getClientRects().length && !isScrolled(element))
    .filter((element) => element.getBoundingClientRect().right > innerWidth - 8)
    .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`);
}"""


def test_on_a_narrow_phone_nothing_is_cut_off(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector('.stage[data-ready="true"][data-state="done"]')
    for section in ("Explore", "Build", "Compare"):
        open_section(page, section)
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
