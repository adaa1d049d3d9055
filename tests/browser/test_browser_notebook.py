"""What a notebook shows: the HTML alone, opened from a file, with nothing served."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture

from .choosing import Frame, Page, bar, close_settings, middle_of, settings

MAP = "() => [...document.querySelector('.stage').__stage.scene().map]"


@pytest.fixture(scope="module")
def result() -> Any:
    return vit_demo.explore(example_picture(7), "digits-small", patch_size=4)


@pytest.fixture
def frame(page: Page, result: Any, tmp_path: Path) -> Frame:
    return shown(page, result, tmp_path)


def shown(page: Page, result: Any, folder: Path) -> Frame:
    """The frame of a result in an otherwise empty document; the test fails if it requests anything."""
    path = folder / "result.html"
    path.write_text(f"<!DOCTYPE html><p>A notebook</p>{result._repr_html_()}", encoding="utf-8")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    frame = page.frames[1]
    frame.wait_for_selector(".predictions .first")
    frame.wait_for_function("() => document.querySelector('.stage').__stage.scene()?.map")
    outside = [url for url in requests if not url.startswith(("data:", "about:", path.as_uri()))]
    assert not outside
    page.on("request", lambda request: pytest.fail(f"requested {request.url[:80]}"))
    return frame


def near(frame: Frame, expected: np.ndarray) -> None:
    frame.wait_for_function(
        """(expected) => {
          const map = document.querySelector('.stage').__stage.scene().map;
          return expected.every((value, i) => Math.abs(map[i] - value) <= 0.005 * Math.max(...expected));
        }""",
        arg=expected.ravel().tolist(),
    )


def click(frame: Frame, row: int, col: int, grid: tuple[int, int]) -> None:
    frame.page.mouse.click(*middle_of(frame.locator(".picture"), row, col, *grid))


def test_the_prediction_and_the_attention_of_a_clicked_patch(frame: Frame, result: Any) -> None:
    assert frame.locator(".predictions .label").all_inner_texts() == list(result.labels), "in their order"
    assert frame.locator(".predictions .first .label").inner_text() == result.top(1)[0][0]
    near(frame, result.attention())
    canvas = frame.locator(".picture")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    click(frame, 2, 4, result.grid)
    near(frame, result.attention(query=(2, 4)))
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before
    click(frame, 5, 3, result.grid)
    near(frame, result.attention(query=(5, 3)))


def test_other_blocks_and_methods(frame: Frame, result: Any) -> None:
    frame.locator("[data-block='1']").click()
    near(frame, result.attention(block=1))
    drawer = settings(frame)
    drawer.locator("input[data-value=norm_attention]").check()
    near(frame, result.heatmap("norm_attention", block=1))
    drawer.locator("input[data-value=relevance]").check()
    near(frame, result.relevance())
    close_settings(frame)
    bar(frame, result.top(2)[1][0]).click()
    near(frame, result.relevance(result.top(2)[1][0]))


def test_what_needs_the_server_is_not_offered(frame: Frame) -> None:
    visible = " ".join(frame.locator("button:visible").all_inner_texts())
    assert not any(word in visible for word in ("Rub out", "fewest", "trusted", "See how", "Test these colours"))
    assert frame.locator("input[data-value=local_surrogate]").count() == 0
    settings(frame).locator(".method-docs summary").click()
    frame.wait_for_function("() => document.querySelector('.method-docs .text').textContent.length > 200")


def test_dropped_patches_are_shown_as_such(page: Page, result: Any, tmp_path: Path) -> None:
    dropped = result.drop_patches([(2, 2), (3, 4)])
    frame = shown(page, dropped, tmp_path)
    near(frame, dropped.attention())
    assert frame.locator(".headline").inner_text().startswith("Without 2 squares")


def test_a_block_that_did_not_fit_is_said_to_be_missing(page: Page, tmp_path: Path) -> None:
    result = vit_demo.explore(example_picture(7), "digits-small", patch_size=2)
    frame = shown(page, result, tmp_path)
    frame.locator("[data-block='0']").click()
    near(frame, result.attention(block=0))
    click(frame, 4, 8, result.grid)
    frame.get_by_text("could not be loaded").wait_for()
