"""Drawing on the pad with a mouse and the keyboard."""

import base64
import io
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from vit_demo.images import to_mnist
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.frontend.components import inputs
from vit_demo.web.requests.packing import pack

from .choosing import Browser, Page, on_paper, press_along, wait_a_moment, wait_until

Ink = np.ndarray
received: list[str] = []  # the drawings, or names of examples, that the page has sent, in order


@pytest.fixture(scope="module")
def address(launch: Callable[..., str]) -> str:
    async def remember(request: dict[str, Any]) -> bytes:
        received.append(request["source"].get("drawing") or request["source"]["example"])
        return pack({"error": "There is no model here."})

    with gr.Blocks() as blocks:
        inputs(digits_preset="digits-tiny")
    return launch(blocks, remember)


def open_pad(page: Page, address: str) -> None:
    received.clear()
    page.goto(address)
    page.locator("#pad .example").nth(9).wait_for(state="attached")
    if page.locator(".handle").is_visible():
        page.locator(".handle button").first.click()
    page.locator("#pad .paper").click(trial=True)  # waits for the veil of a page still loading to be lifted


@pytest.fixture(scope="module")
def shared(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    open_pad(page, address)
    yield page
    page.close()


@pytest.fixture
def pad(shared: Page) -> Page:
    """The pad with an 8, on a page that these tests share."""
    received.clear()
    shared.get_by_role("button", name="Medium pen").click()
    for name in ("Example 1", "Example 8"):
        shared.get_by_role("button", name=name).click()
        wait_until(shared, lambda name=name: received and received[-1] == f"digit-{name[-1]}")
    received.clear()
    return shared


def wait_for(page: Page, drawings: int) -> str:
    wait_until(page, lambda: len(received) >= drawings)
    assert len(received) == drawings
    return received[-1]


def ink_of(value: str) -> Ink:
    """The darkness of each pixel, 0 to 1."""
    assert value.startswith("data:image/png;base64,")
    with Image.open(io.BytesIO(base64.b64decode(value.split(",")[1]))) as picture:
        assert picture.size == (280, 280)
        return 1 - np.asarray(picture.convert("L")) / 255


def draw(page: Page, points: list[tuple[float, float]]) -> None:
    press_along(page, on_paper(page, points, "#pad .paper"), steps=4)
    page.mouse.up()


DOWN = [(0.5, 0.2), (0.5, 0.8)]
ACROSS = [(0.2, 0.5), (0.8, 0.5)]


def paper_ink(page: Page) -> float:
    """The share of the paper that is inked."""
    return page.evaluate(
        """() => {
            const paper = document.querySelector("#pad .paper");
            const { data } = paper.getContext("2d").getImageData(0, 0, paper.width, paper.height);
            return data.filter((value, i) => i % 4 === 3 && value > 127).length / (data.length / 4);
        }"""
    )


@pytest.mark.parametrize("link", ["", "#tab=digits&patch_size=7&digit=8"], ids=["opened", "reloaded"])
def test_it_opens_with_the_example_and_the_first_stroke_replaces_it(page: Page, address: str, link: str) -> None:
    open_pad(page, address + link)
    expected = (np.asarray(example_picture(8)) < 127).mean()
    assert paper_ink(page) == pytest.approx(expected, rel=0.05)
    wait_a_moment(page)
    assert received == []
    draw(page, DOWN)
    ink = ink_of(wait_for(page, 1))
    assert ink[140, 140] > 0.9 and ink[:, 180:].max() == 0
    assert abs((ink[140] > 0.5).sum() - 280 / 12) <= 1


def test_undo_works_wherever_the_pad_was_used_last_and_only_there(pad: Page) -> None:
    draw(pad, DOWN)
    one = ink_of(wait_for(pad, 1))
    pad.get_by_role("button", name="Example 1").click()
    pad.get_by_role("button", name="Thick pen").click()
    assert wait_for(pad, 2) == "digit-1"
    pad.keyboard.press("Control+z")
    assert np.array_equal(ink_of(wait_for(pad, 3)), one)
    pad.get_by_role("button", name="Clear").click()  # it is disabled then, and has no focus any more
    pad.keyboard.press("Control+z")
    pad.wait_for_function("document.querySelector('#pad [data-action=undo]').disabled === false")
    assert paper_ink(pad) > 0
    pad.locator("#preset").focus()
    pad.keyboard.press("Control+z")
    wait_a_moment(pad)
    assert paper_ink(pad) > 0, "another part of the pad was used since"


def test_the_hint_is_for_an_empty_paper_and_the_tab_leaves_a_drawing_alone(pad: Page) -> None:
    hint = "getComputedStyle(document.querySelector('#pad .hint')).opacity"
    pad.wait_for_function(f"{hint} === '0'")  # not over a digit
    draw(pad, DOWN)
    one = wait_for(pad, 1)
    ink = paper_ink(pad)
    pad.get_by_role("tab", name="Digit").click()
    wait_a_moment(pad)
    assert paper_ink(pad) == ink and received == [one] and pad.evaluate(hint) == "0"
    pad.get_by_role("button", name="Clear").click()
    pad.wait_for_function(f"{hint} === '1'")


def test_a_click_is_a_dot(pad: Page) -> None:
    draw(pad, [(0.5, 0.5)])
    assert ink_of(wait_for(pad, 1))[140, 140] > 0.9


def test_the_keyboard_draws_the_same_line(pad: Page) -> None:
    """From the middle to the left, down, and back to the right; Space puts the pen down and lifts it."""
    pad.locator("#pad .paper").focus()
    pad.keyboard.press("Space")
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight"):
        for _ in range(4):
            pad.keyboard.press(key)
    assert pad.locator("#pad .nib.down").is_visible() and received == []
    pad.keyboard.press("Space")
    ink = ink_of(wait_for(pad, 1))
    assert (ink[140, 84:140] > 0.9).all() and (ink[140:196, 84] > 0.9).all() and ink[:120].max() == 0
    pad.keyboard.press("ArrowUp")
    assert len(received) == 1, "a lifted pen draws nothing"


def test_a_mouse_ends_the_stroke_of_the_keyboard_and_keeps_it(page: Page, address: str) -> None:
    open_pad(page, address)
    page.locator("#pad .paper").focus()
    page.keyboard.press("Space")
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    draw(page, [(0.5, 0.7), (0.8, 0.7)])
    ink = ink_of(wait_for(page, 2))
    assert (ink[140, 84:140] > 0.9).all() and (ink[196, 140:220] > 0.9).all()


def test_the_opening_digit_is_centred_as_those_of_mnist_are() -> None:
    """They are 28 x 28 pixels with the centre of mass in the middle."""
    ink = 1 - np.asarray(example_picture(7)) / 255
    centre = [(ink.sum(axis) * (np.arange(280) + 0.5)).sum() / ink.sum() / 280 for axis in (0, 1)]
    assert centre == pytest.approx([0.5, 0.5], abs=0.5 / 28)
    assert ink[:14].max() == ink[-14:].max() == ink[:, :14].max() == ink[:, -14:].max() == 0
    assert to_mnist(example_picture(7))[-1].max() == 0, "the model sees its foot"
