"""Drawing on the pad with a mouse, a finger and the keyboard."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from vit_demo.web.components.pad import DigitPad, example_picture

if TYPE_CHECKING:
    from playwright.sync_api import Page

Ink = np.ndarray
received: list[str | None] = []
"""The values Python has got, in order."""


@pytest.fixture(scope="module")
def address(launch: Callable[[gr.Blocks], str]) -> str:
    def remember(value: str | None) -> str:
        received.append(value)
        return f"events: {len(received)}"

    with gr.Blocks() as blocks:
        pad = DigitPad(elem_id="pad")
        count = gr.Markdown("events: 0", elem_id="count")
        gr.Button("empty", elem_id="empty").click(lambda: None, None, pad, show_progress="hidden")
        gr.Button("read", elem_id="read").click(remember, pad, count, show_progress="hidden")
        pad.input(remember, pad, count, show_progress="hidden", trigger_mode="always_last")
    return launch(blocks)


def open_pad(page: Page, address: str) -> None:
    received.clear()
    page.goto(address)
    page.locator("#pad .paper").click(trial=True)  # waits for the veil of a page still loading to be lifted


def wait_for(page: Page, events: int) -> str | None:
    page.wait_for_function("n => document.querySelector('#count')?.textContent.includes(`events: ${n}`)", arg=events)
    assert len(received) == events
    return received[-1]


def ink_of(value: str | None) -> Ink:
    """The darkness of each pixel, 0 to 1."""
    assert value is not None and value.startswith("data:image/png;base64,")
    with Image.open(io.BytesIO(base64.b64decode(value.split(",")[1]))) as picture:
        assert picture.size == (280, 280)
        return 1 - np.asarray(picture.convert("L")) / 255


def draw(page: Page, points: list[tuple[float, float]]) -> None:
    box = page.locator("#pad .paper").bounding_box()
    assert box is not None
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


DOWN = [(0.5, 0.2), (0.5, 0.8)]
ACROSS = [(0.2, 0.5), (0.8, 0.5)]


def test_opens_with_the_example_and_fires_nothing(page: Page, address: str) -> None:
    open_pad(page, address)
    page.locator("#read").click()
    assert np.array_equal(ink_of(wait_for(page, 1)), 1 - np.asarray(example_picture(7)) / 255)


def test_first_stroke_counts_and_replaces_the_opening_digit(page: Page, address: str) -> None:
    open_pad(page, address)
    draw(page, DOWN)
    ink = ink_of(wait_for(page, 1))
    assert ink[140, 140] > 0.9 and ink[:, 180:].max() == 0
    assert abs((ink[140] > 0.5).sum() - 280 / 12) <= 1


def test_strokes_add_up_and_undo_takes_them_back(page: Page, address: str) -> None:
    open_pad(page, address)
    draw(page, DOWN)
    one = ink_of(wait_for(page, 1))
    draw(page, ACROSS)
    two = ink_of(wait_for(page, 2))
    assert one[140, 70] == 0 and two[140, 70] > 0.9 and two[70, 140] > 0.9
    page.locator("#pad .paper").focus()
    page.keyboard.press("Control+z")
    assert np.array_equal(ink_of(wait_for(page, 3)), one)


def test_clear_empties_and_undo_restores(page: Page, address: str) -> None:
    open_pad(page, address)
    draw(page, DOWN)
    one = ink_of(wait_for(page, 1))
    page.locator("#pad .paper").focus()
    page.keyboard.press("Delete")
    assert wait_for(page, 2) is None
    assert page.get_by_role("button", name="Clear").is_disabled()
    page.get_by_role("button", name="Undo").click()
    assert np.array_equal(ink_of(wait_for(page, 3)), one)


def test_examples_and_pens(page: Page, address: str) -> None:
    open_pad(page, address)
    page.get_by_role("button", name="Example 1").click()
    expected = 1 - np.asarray(example_picture(1)) / 255
    assert np.abs(ink_of(wait_for(page, 1)) - expected).mean() < 0.01
    page.get_by_role("button", name="Clear").click()
    wait_for(page, 2)
    page.get_by_role("button", name="Thick pen").click()
    draw(page, DOWN)
    assert (ink_of(wait_for(page, 3))[140] > 0.5).sum() > 28


def test_a_click_is_a_dot(page: Page, address: str) -> None:
    open_pad(page, address)
    draw(page, [(0.5, 0.5)])
    assert ink_of(wait_for(page, 1))[140, 140] > 0.9


def test_python_can_empty_the_pad(page: Page, address: str) -> None:
    open_pad(page, address)
    draw(page, DOWN)
    wait_for(page, 1)
    page.locator("#empty").click()
    page.wait_for_selector("#pad .hint:not(.faded)")
    draw(page, ACROSS)
    assert ink_of(wait_for(page, 2))[70, 140] == 0


def test_a_finger_draws_and_does_not_scroll(phone: Page, address: str) -> None:
    open_pad(phone, address)
    box = phone.locator("#pad .paper").bounding_box()
    assert box is not None
    touch = phone.context.new_cdp_session(phone)
    x = box["x"] + box["width"] / 2
    for step in range(9):
        point = {"x": x, "y": box["y"] + box["height"] * (0.2 + 0.075 * step)}
        kind = "touchMove" if step else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    ink = ink_of(wait_for(phone, 1))
    assert (ink[60:220, 140] > 0.9).all()
    assert phone.evaluate("scrollY") == 0
