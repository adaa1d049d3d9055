"""What tests do on the page, as a visitor does it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vit_demo.inference.exploration import Exploration
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_digits import DIGITS, smooth
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.weights import PRESETS

from .. import asynchronous

try:
    from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Locator, Page, Request, Route
except ModuleNotFoundError:  # the tests are skipped
    Browser = BrowserContext = Frame = FrameLocator = Locator = Page = Request = Route = Any  # type: ignore[misc]

__all__ = ["Browser", "BrowserContext", "Frame", "FrameLocator", "Locator", "Page", "Request", "Route"]

READY = '.stage[data-ready="true"]'
STAGE = "document.querySelector('.stage').__stage"


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Waits until a condition holds, while what the page sends still arrives."""
    asynchronous.until(condition, lambda seconds: page.wait_for_timeout(1000 * seconds))


def wait_a_moment(page: Page) -> None:
    """Gives what must not happen on the page time to happen: whoever is slow passes the test, too."""
    asynchronous.a_moment(lambda seconds: page.wait_for_timeout(1000 * seconds))


def frames(page: Page, count: int = 2) -> None:
    """Waits until that many frames are painted."""
    for _ in range(count):
        page.evaluate("new Promise(requestAnimationFrame)")


def clear_storage(page: Page) -> None:
    """Has the browser remember nothing of visits before."""
    everything = {"origin": "*", "storageTypes": "all"}
    page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", everything)


def settle_address(page: Page) -> None:
    """Has the address written, which follows strokes and sliders a little later."""
    page.evaluate("dispatchEvent(new Event('pagehide'))")


@contextmanager
def launched() -> Iterator[str]:
    """The address of a page of its own."""
    from vit_demo.web.server import launch

    page = launch("127.0.0.1", wait=False)
    yield page.local_url
    page.close()


def open_page(page: Page, url: str) -> Page:
    """Opens an address, and waits for its result and until the veil of a page still loading is lifted."""
    page.goto(url)
    page.wait_for_selector(f'{READY}[data-state="done"]')
    page.wait_for_function(
        "document.querySelector('#columns').contains(document.elementFromPoint(innerWidth / 2, innerHeight / 2))"
    )
    return page


FOLD = """() => {
  for (const button of document.querySelectorAll("[data-mode=draw], .drawer:not([hidden]) .close")) button.click();
  for (const each of document.querySelectorAll("details[open]")) each.open = false;
  scrollTo(0, 0);
}"""
"""What is open closes, and the hand draws."""


def open_anew(page: Page, url: str) -> Page:
    """Opens an address in a window that tests share: nothing is left of the result before and what was done with it."""
    if page.url != "about:blank":
        page.unroute_all()
        page.goto(f"{url.partition('#')[0]}#picture=none")
        page.wait_for_selector('.stage[data-ready="empty"]', state="attached")
        page.evaluate(FOLD)
    return open_page(page, url)


def open_section(page: Page, name: str) -> None:
    page.locator("#header nav").get_by_role("button", name=name, exact=True).click()


def open_steps(page: Page | Frame) -> None:
    """Goes from the film's first moment to the first of the eight steps."""
    page.locator(".tour").click()
    page.locator(".more-of-step").click()


def load_steps(page: Page) -> None:
    """Has the chapter of the steps loaded: while it grows, a click on what is below it is lost."""
    page.wait_for_function(
        """() => {
            const steps = document.querySelector(".steps");
            steps.scrollIntoView({ block: "nearest" }); // again, if what is above it has grown meanwhile
            return steps.querySelector(".figure > *");
        }"""
    )


Points = list[tuple[float, float]]


def on_paper(page: Page, points: Points, selector: str = ".picture") -> Points:
    """Where points of the paper, 0 to 1 from its upper left corner, are on the screen."""
    paper = page.locator(selector)
    paper.scroll_into_view_if_needed()
    box = paper.bounding_box()
    assert box
    return [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]


def strokes_of(digit: int) -> list[Points]:
    """The strokes of an example digit."""
    return [smooth(stroke, 3) for stroke in DIGITS[str(digit)]]


def draw(page: Page, digit: int) -> None:
    """Draws an example digit on the picture with the mouse."""
    page.locator("[data-mode=draw]").click()
    for stroke in strokes_of(digit):
        press_along(page, on_paper(page, stroke))
        page.mouse.up()


def press_along(page: Page, places: Points, steps: int = 1) -> None:
    """Moves the pressed mouse along places of the screen; it is still down at the last one."""
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=steps)


def middle_of(canvas: Locator, row: int, column: int, rows: int = 7, columns: int = 7) -> tuple[float, float]:
    """Where the middle of a patch is on the page."""
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    return box["x"] + (column + 0.5) * box["width"] / columns, box["y"] + (row + 0.5) * box["height"] / rows


def percent(text: str) -> float:
    """The share of which a text is."""
    return float(text.split("\u00a0%")[0].split()[-1])


def shown_result(page: Page, *, with_all: bool = False) -> Exploration:
    """The result on the stage, computed by the package; with all its patches on request."""
    request = ResultRequest.parse(page.evaluate(f"{STAGE}.current().source"))
    preset = PRESETS[request.preset]
    whole = get_engine().explore_source(request.source, preset, request.patch_size, request.fit)
    dropped = [] if with_all else [divmod(patch, whole.grid[1]) for patch in request.dropped]
    return whole.drop_patches(dropped) if dropped else whole


def look_from(page: Page | Frame) -> None:
    """The map follows the pointer."""
    page.locator("[data-mode=look]").click()


def rub(page: Page | Frame) -> None:
    """The pointer rubs squares out."""
    page.locator("[data-mode=rub]").click()


def bar(page: Page | Frame, label: str) -> Locator:
    """The button of an answer beside the picture, by the name of its class."""
    name = page.locator(".label", has_text=re.compile(f"^{re.escape(label)}$"))
    return page.locator(".bars button", has=name)


def settings(page: Page | Frame) -> Locator:
    """The drawer of all settings, which is opened if it is not."""
    drawer = page.locator(".drawer")
    if drawer.is_hidden():
        page.locator(".ways .settings").click()
    return drawer


def close_settings(page: Page | Frame) -> None:
    page.locator(".drawer .close").click()


def method_button(page: Page, name: str) -> Locator:
    """The radio button of what the picture shows, below a photo's words or in the drawer, which is then opened."""
    label = page.locator("b", has_text=re.compile(f"^{re.escape(name)}$"))
    if not page.locator(".meaning .all").count():
        settings(page)
    return page.locator(".all .method", has=label).get_by_role("radio")


def choose_method(page: Page, name: str) -> None:
    """Chooses what the picture shows, and closes the drawer, which lies over the answer."""
    method_button(page, name).check()
    if page.locator(".drawer").is_visible():
        close_settings(page)
