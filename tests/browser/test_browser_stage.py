"""The stage against numpy: what it computes, what it requests, and what keys and pointer do."""

from __future__ import annotations

import asyncio
import base64
import io
import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from vit_demo.web.components.stage import Stage
from vit_demo.web.packing import pack

from .choosing import method_button

if TYPE_CHECKING:
    from playwright.sync_api import Page

BLOCKS, HEADS, WIDTH = 3, 2, 8
ROWS, COLUMNS = 4, 5
PATCHES = ROWS * COLUMNS
TOKENS = 1 + PATCHES

QUERIES, KEYS = np.random.default_rng(0).normal(0, 1.5, (2, BLOCKS, HEADS, TOKENS, WIDTH)).astype(np.float16)
SCORES = np.einsum("bhid,bhjd->bhij", QUERIES.astype(np.float64), KEYS.astype(np.float64))
LOGSUMEXP = np.log(np.exp(SCORES).sum(-1))
ATTENTION = np.exp(SCORES - LOGSUMEXP[..., None])
"""What the page must find: [blocks, heads, tokens, tokens], each row sums to 1."""

block_requests: list[tuple[str, int]] = []
"""The traces that the page has requested."""

other_requests: list[dict[str, Any]] = []
"""What else it has requested."""

is_computed = threading.Event()
"""Set when the slow map is computed."""

broken = threading.Event()
"""Set while every request fails."""

half_broken = threading.Event()
"""Set while the second half of a test fails."""


def encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def trace_of(block: int) -> dict[str, str]:
    return {
        "q": encode(QUERIES[block]),
        "k": encode(KEYS[block]),
        "logsumexp": encode(LOGSUMEXP[block].astype(np.float32)),
    }


def result(run: str) -> dict[str, Any]:
    """A result as the page gets it, without the trace of any block."""
    rows = ATTENTION[:, :, 0, 1:]
    peak = rows.max(-1)
    picture = io.BytesIO()
    Image.effect_noise((50, 40), 60).save(picture, "PNG")
    return {
        "run": run,
        "source": f"source of {run}",
        "image": "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode(),
        "size": [50, 40],
        "pixelated": False,
        "grid": [ROWS, COLUMNS],
        "num_prefix_tokens": 1,
        "class_token": True,
        "num_blocks": BLOCKS,
        "num_heads": HEADS,
        "trace_bytes": 1000,
        "photo": None,
        "predictions": [
            {"index": 7, "label": "seven", "probability": 0.9},
            {"index": 1, "label": "one", "probability": 0.0004},
        ],
        "dropped": [],
        "note": "",
        "attention_maps": {
            "levels": encode(np.round(rows / peak[..., None] * 65535).astype(np.uint16)),
            "peaks": encode(peak.astype(np.float32)),
        },
        "rollout": {"levels": encode(np.arange(PATCHES, dtype=np.uint16)), "peaks": encode(np.float32([0.25]))},
        "milliseconds": 1.5,
        "device": "cpu",
    }


@pytest.fixture(scope="module")
def address(launch: Callable[[gr.Blocks], str]) -> str:
    async def handle(request: dict[str, Any]) -> bytes:
        return pack(await reply_to(request))

    async def reply_to(request: dict[str, Any]) -> dict[str, Any]:
        if request["kind"] == "block":
            block_requests.append((request["source"], request["block"]))
            if request["block"] == 0:
                raise RuntimeError("lost")
            return {"result": trace_of(request["block"])}
        other_requests.append(request)
        if broken.is_set():
            raise RuntimeError("lost")
        if request["kind"] == "method_docs":
            return {"result": {"html": f"<b>{request['method']}</b>"}}
        if request["kind"] in ("faithfulness", "random_order"):
            side = {"curve": [1, 0.5, 0], "area": 0.5}
            return {"result": {"fractions": [0, 0.5, 1], "deletion": side, "insertion": side}}
        if request["kind"] == "randomization":
            if half_broken.is_set():
                raise RuntimeError("lost")
            return {"result": {"correlations": [1, 0.5, 0.1]}}
        if request.get("method") == "attnlrp":
            return {"error": "This went wrong: do otherwise."}
        if request.get("method") == "occlusion" and not is_computed.is_set():
            await asyncio.sleep(0.1)
            return {"done": 1, "total": 4}
        signs = np.arange(PATCHES, dtype=np.float32) - 5
        return {"result": {"map": encode(signs * request.get("label", 1))}}

    with gr.Blocks() as blocks:
        stage = Stage(result("first"), on_request=handle, elem_id="stage")
        gr.Button("next", elem_id="next").click(lambda: result("second"), None, stage, show_progress="hidden")
        empty = {"empty": True, "message": "Nothing here."}
        gr.Button("empty", elem_id="empty").click(lambda: empty, None, stage, show_progress="hidden")
    return launch(blocks)


@pytest.fixture
def stage(page: Page, address: str) -> Page:
    block_requests.clear()
    other_requests.clear()
    is_computed.clear()
    broken.clear()
    half_broken.clear()
    open_stage(page, address)
    point_at_picture(page)
    block_requests.clear()
    return page


def open_stage(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("#stage .stage[data-run=first][data-ready=true]")


def point_at_picture(page: Page) -> None:
    """Moves the pointer over the picture and away, and waits for the trace that this requests."""
    page.locator("#stage .picture").click(trial=True)  # waits for the veil of a page still loading to be lifted
    page.wait_for_function(f"document.querySelector('.stage').__stage.current().traces.has({BLOCKS - 1})")
    page.mouse.move(1, 1)


def shown(page: Page, **view: object) -> np.ndarray:
    """A map as the page computes it."""
    values = page.evaluate("view => Array.from(document.querySelector('.stage').__stage.map(view))", view)
    return np.array(values)


def point_at(page: Page, row: int, column: int) -> tuple[float, float]:
    box = page.locator("#stage .picture").bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) * box["width"] / COLUMNS, box["y"] + (row + 0.5) * box["height"] / ROWS


def subject(page: Page) -> str:
    page.evaluate("new Promise(requestAnimationFrame)")
    return page.locator("#stage .look .subject").inner_text()


def test_rows_and_columns_are_the_softmax(stage: Page) -> None:
    for head, query in itertools.product([-1, 0, 1], [0, 7, PATCHES - 1]):
        truth = ATTENTION[-1].mean(0) if head < 0 else ATTENTION[-1, head]
        view = {"block": BLOCKS - 1, "head": head, "query": query}
        np.testing.assert_allclose(shown(stage, direction="from", **view), truth[1 + query, 1:], atol=1e-3)
        np.testing.assert_allclose(shown(stage, direction="to", **view), truth[1:, 1 + query], atol=1e-3)


def test_the_class_token_is_there_for_every_block_and_head(stage: Page) -> None:
    for block in range(BLOCKS):
        mean = shown(stage, block=block, head=-1, direction="from")
        np.testing.assert_allclose(mean, ATTENTION[block, :, 0, 1:].mean(0), atol=2e-3)
    column = shown(stage, block=BLOCKS - 1, head=1, direction="to")
    np.testing.assert_allclose(column, ATTENTION[-1, 1, 1:, 0], atol=1e-3)
    np.testing.assert_allclose(shown(stage, method="rollout"), np.arange(PATCHES) / 65535 * 0.25, atol=1e-6)


def test_the_trace_of_a_block_is_requested_once_when_the_pointer_comes_to_the_picture(page: Page, address: str) -> None:
    block_requests.clear()
    open_stage(page, address)
    page.wait_for_timeout(300)
    assert block_requests == []
    point_at_picture(page)
    assert block_requests == [("source of first", BLOCKS - 1)]


def test_looking_around_sends_no_request(stage: Page) -> None:
    requests: list[str] = []
    stage.on("request", lambda request: requests.append(request.url) if "heartbeat" not in request.url else None)
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage).startswith("patch row 2, column 5 ")
    stage.get_by_role("radio", name="who looks at it").check()
    stage.get_by_label("Opacity").fill("30")
    stage.get_by_role("radio", name="2", exact=True).check()
    method_button(stage, "Rollout").check()
    assert "rollout" in subject(stage)
    assert requests == []


def test_click_pins_keys_move_and_escape_returns(stage: Page) -> None:
    stage.mouse.click(*point_at(stage, 0, 3))
    stage.mouse.move(*point_at(stage, 2, 2))
    assert subject(stage).startswith("patch row 1, column 4 ")
    value = stage.locator("#stage .value").inner_text()
    expected = 100 * ATTENTION[-1, :, 1 + 3, 1 + 2 * COLUMNS + 2].mean()
    assert float(value.split("gives ")[1].split()[0]) == pytest.approx(expected, abs=0.06)
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown"):  # held at the edges
        stage.keyboard.press(key)
    assert subject(stage).startswith("patch row 2, column 5 ")
    stage.keyboard.press("Escape")
    assert subject(stage).startswith("class token ")


def test_back_button_and_second_click_unpin(stage: Page) -> None:
    place = point_at(stage, 3, 0)
    back = stage.get_by_role("button", name="Back to class token")
    assert back.count() == 0
    stage.mouse.click(*place)
    back.click()
    assert subject(stage).startswith("class token ")
    stage.mouse.click(*place)
    back.wait_for()
    stage.mouse.click(*place)
    back.wait_for(state="hidden")  # with the next frame


def test_another_block_is_fetched_once_in_the_background(stage: Page) -> None:
    slider = stage.get_by_label("Block", exact=True)
    slider.fill("2")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.wait_for_function("document.querySelector('.stage').__stage.current().traces.has(1)")
    truth = ATTENTION[1, :, 1, 1:].mean(0)
    np.testing.assert_allclose(shown(stage, block=1, query=0), truth, atol=1e-3)
    slider.fill("3")
    slider.fill("2")
    assert subject(stage).startswith("patch row 1, column 1 · block 2 of 3")
    assert block_requests == [("source of first", 1)]


def test_a_block_that_cannot_be_loaded_leaves_one_sentence(stage: Page) -> None:
    stage.get_by_label("Block", exact=True).fill("1")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("could not be loaded").wait_for()
    assert subject(stage).startswith("class token · block 1 of 3")


def test_a_cell_of_the_head_grid_shows_its_head(stage: Page) -> None:
    stage.get_by_role("button", name="Block 2, head 1").click()
    assert subject(stage) == "class token · block 2 of 3 · head 1"
    stage.keyboard.press("ArrowDown")
    stage.keyboard.press("Enter")
    assert subject(stage) == "class token · block 2 of 3 · head 2"


def scene(page: Page) -> list[float]:
    """What the picture shows."""
    return page.evaluate("Array.from(document.querySelector('.stage').__stage.scene().map ?? [])")


def test_a_click_on_a_class_shows_the_evidence_for_it_and_requests_it_once(stage: Page) -> None:
    one = stage.get_by_role("button", name="one")
    one.press("Enter")
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('for one')")
    assert one.get_attribute("aria-pressed") == "true"
    assert stage.locator("#stage .dependence").inner_text() == "depends on the class"
    assert scene(stage) == [float(value) for value in range(-5, PATCHES - 5)]
    seven = stage.get_by_role("button", name="seven")
    seven.click()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('for seven')")
    assert scene(stage)[-1] == 7 * 14 and one.get_attribute("aria-pressed") == "false"
    stage.mouse.move(*point_at(stage, 0, 4))
    assert stage.locator("#stage .value").inner_text() == "evidence for seven: −7.00"
    one.click()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('for one')")
    method_button(stage, "Attention").check()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('class token')")
    assert seven.get_attribute("aria-pressed") == one.get_attribute("aria-pressed") == "false"
    assert [request["label"] for request in other_requests] == [1, 7]
    assert all(request["kind"] == "map" and request["source"] == "source of first" for request in other_requests)


def test_while_a_map_is_computed_the_old_one_stays_and_progress_is_shown(stage: Page) -> None:
    before = scene(stage)
    method_button(stage, "Occlusion").check()
    stage.get_by_text("Computing Occlusion … 25").wait_for()
    assert scene(stage) == before and subject(stage).startswith("class token")
    is_computed.set()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('for seven')")
    assert scene(stage)[0] == -35


def test_a_map_that_fails_leaves_one_sentence_and_a_page_that_works(stage: Page) -> None:
    method_button(stage, "AttnLRP").check()
    stage.locator(".value", has_text="This went wrong: do otherwise.").wait_for()
    assert subject(stage).startswith("class token")
    method_button(stage, "Rollout").check()
    assert "rollout" in subject(stage)
    assert "strongest patch" in stage.locator("#stage .value").inner_text()


def shows(page: Page, start: str) -> None:
    """Waits until the caption begins so."""
    page.wait_for_function("start => document.querySelector('.look .subject').innerText.startsWith(start)", arg=start)


def test_a_map_whose_request_was_lost_is_requested_when_it_is_chosen_again(stage: Page) -> None:
    stage.route("**/component_server/", lambda route: route.abort(), times=1)
    relevance = method_button(stage, "Relevance")
    relevance.check()
    stage.locator(".value", has_text="The server did not respond").wait_for()
    assert subject(stage).startswith("class token") and other_requests == []
    stage.mouse.move(*point_at(stage, 1, 1))  # looking around is no choice
    assert subject(stage) and other_requests == []
    relevance.click()
    shows(stage, "for seven · relevance")
    assert scene(stage)[0] == -35 and len(other_requests) == 1
    relevance.click()
    assert subject(stage).startswith("for seven") and len(other_requests) == 1, "what is there is not requested again"


@pytest.mark.parametrize("way", ["away-and-back", "class", "keyboard"])
def test_every_way_of_choosing_again_repeats_a_failed_request(stage: Page, way: str) -> None:
    broken.set()
    relevance = method_button(stage, "Relevance")
    relevance.check()
    stage.locator(".value", has_text="The server did not respond").wait_for()
    broken.clear()
    if way == "away-and-back":
        method_button(stage, "Rollout").check()
        assert "rollout" in subject(stage)
        relevance.check()
    elif way == "class":
        stage.get_by_role("button", name="seven").click()
    else:
        relevance.press("Space")
    shows(stage, "for seven · relevance")
    assert [request["method"] for request in other_requests] == ["relevance"] * 2


def test_the_docs_of_a_method_are_requested_again_after_a_failure(stage: Page) -> None:
    stage.get_by_text("How is this computed?").click()
    stage.locator(".method-docs b", has_text="attention").wait_for()
    broken.set()
    method_button(stage, "Relevance").check()
    stage.locator(".method-docs", has_text="did not respond").wait_for()
    method_button(stage, "Attention").check()
    stage.locator(".method-docs b", has_text="attention").wait_for()  # not the failure of another method
    broken.clear()
    method_button(stage, "Relevance").check()
    stage.locator(".method-docs b", has_text="relevance").wait_for()


def test_a_block_that_could_not_be_loaded_is_requested_again(stage: Page) -> None:
    stage.route("**/component_server/", lambda route: route.abort(), times=1)
    stage.get_by_label("Block", exact=True).fill("2")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("could not be loaded").wait_for()
    assert block_requests == []
    method_button(stage, "Attention").click()
    shows(stage, "patch row 1, column 1 · block 2 of 3")
    assert block_requests == [("source of first", 1)]


def test_a_test_that_failed_in_its_second_half_can_be_run_again(stage: Page) -> None:
    method_button(stage, "Relevance").check()
    shows(stage, "for seven · relevance")
    half_broken.set()
    stage.get_by_role("button", name="Test this heatmap").click()
    stage.locator(".status", has_text="did not respond").wait_for()
    assert stage.locator(".charts svg").count() == 2, "the first half stays"
    half_broken.clear()
    stage.get_by_role("button", name="Test this heatmap").click()
    stage.get_by_role("button", name="Tested").wait_for()
    assert stage.locator(".charts svg").count() == 3


def test_a_new_result_comes_with_its_own_map(stage: Page) -> None:
    method_button(stage, "Relevance").check()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('for seven')")
    stage.locator("#next").click()
    stage.wait_for_selector("#stage .stage[data-run=second]")
    assert scene(stage) and subject(stage).startswith("for seven")
    assert [request["source"] for request in other_requests] == ["source of first", "source of second"]


def test_choices_outlive_a_result_and_an_empty_pad(stage: Page) -> None:
    height = stage.evaluate("document.querySelector('.stage').offsetHeight")
    stage.get_by_label("Block", exact=True).fill("2")
    stage.locator("#empty").click()
    stage.get_by_text("Nothing here.").wait_for()
    assert stage.evaluate("document.querySelector('.stage').offsetHeight") == height
    stage.locator("#next").click()
    stage.wait_for_selector("#stage .stage[data-run=second][data-top1=seven]")
    assert subject(stage) == "class token · block 2 of 3 · mean of 2 heads"
    assert stage.evaluate("document.querySelector('.stage').offsetHeight") == height


def test_predictions_are_read_out(stage: Page) -> None:
    assert stage.locator("#stage .predictions .spoken").inner_text().strip() == "Prediction: seven, 90.0 percent."
    assert stage.locator("#stage .bars li").nth(1).inner_text().split("\n")[-1] == "<0.1\u00a0%"


def test_a_phone_never_scrolls_sideways(phone: Page, address: str) -> None:
    phone.goto(address)
    phone.wait_for_selector("#stage .stage[data-ready=true]")
    phone.locator("#stage .picture").tap()
    phone.locator("#stage .subject", has_text="patch row ").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
