"""The stage against numpy: what it computes, what it asks for and what keys and pointer do."""

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

if TYPE_CHECKING:
    from playwright.sync_api import Page

BLOCKS, HEADS, WIDTH = 3, 2, 8
ROWS, COLUMNS = 4, 5
PATCHES = ROWS * COLUMNS
TOKENS = 1 + PATCHES

QUERIES, KEYS = np.random.default_rng(0).normal(0, 1.5, (2, BLOCKS, HEADS, TOKENS, WIDTH)).astype(np.float16)
SCORES = np.einsum("bhid,bhjd->bhij", QUERIES.astype(np.float64), KEYS.astype(np.float64))
LSE = np.log(np.exp(SCORES).sum(-1))
ATTENTION = np.exp(SCORES - LSE[..., None])
"""What the page must find: [blocks, heads, tokens, tokens], each row sums to 1."""

asked: list[tuple[str, int]] = []
"""The traces the page has asked for."""

questions: list[dict[str, Any]] = []
"""What else it has asked."""

worked_out = threading.Event()
"""When the slow map is there."""

broken = threading.Event()
"""While the server cannot answer at all."""

half_way = threading.Event()
"""While it answers only the first half of a test."""


def encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def trace_of(block: int) -> dict[str, str]:
    return {
        "q": encode(QUERIES[block]),
        "k": encode(KEYS[block]),
        "lse": encode(LSE[block].astype(np.float32)),
    }


def result(run: str) -> dict[str, Any]:
    """A result that carries the trace of its last block only."""
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
        "prefix": 1,
        "class_token": True,
        "blocks": BLOCKS,
        "heads": HEADS,
        "title": "a network of numbers",
        "top": [
            {"index": 7, "label": "seven", "probability": 0.9},
            {"index": 1, "label": "one", "probability": 0.0004},
        ],
        "dropped": [],
        "note": "",
        "summary": {
            "map": encode(np.round(rows / peak[..., None] * 255).astype(np.uint8)),
            "peak": encode(peak.astype(np.float32)),
        },
        "trace": {str(BLOCKS - 1): trace_of(BLOCKS - 1)},
        "rollout": {"map": encode(np.arange(PATCHES, dtype=np.uint8)), "peak": 0.25},
        "milliseconds": 1.5,
        "device": "cpu",
    }


@pytest.fixture(scope="module")
def address(launch: Callable[[gr.Blocks], str]) -> str:
    async def ask(question: dict[str, Any]) -> dict[str, Any]:
        if question["about"] == "block":
            asked.append((question["source"], question["block"]))
            if question["block"] == 0:
                raise RuntimeError("lost")
            return {"answer": trace_of(question["block"])}
        questions.append(question)
        if broken.is_set():
            raise RuntimeError("lost")
        if question["about"] == "method_docs":
            return {"answer": {"html": f"<b>{question['method']}</b>"}}
        if question["about"] == "test":
            side = {"curve": [1, 0.5, 0], "random": [[1, 0.6, 0]], "area": 0.5, "random_area": 0.6, "beaten": 1}
            return {"answer": {"fractions": [0, 0.5, 1], "deletion": side, "insertion": side}}
        if question["about"] == "randomization":
            if half_way.is_set():
                raise RuntimeError("lost")
            return {"answer": {"correlations": [1, 0.5, 0.1]}}
        if question.get("method") == "attnlrp":
            return {"error": "This went wrong: do otherwise."}
        if question.get("method") == "occlusion" and not worked_out.is_set():
            await asyncio.sleep(0.1)
            return {"done": 1, "total": 4}
        signs = np.arange(PATCHES, dtype=np.float32) - 5
        return {"answer": {"map": encode(signs * question.get("label", 1))}}

    with gr.Blocks() as blocks:
        stage = Stage(result("first"), ask=ask, elem_id="stage")
        gr.Button("next", elem_id="next").click(lambda: result("second"), None, stage, show_progress="hidden")
        empty = {"empty": True, "message": "Nothing here."}
        gr.Button("empty", elem_id="empty").click(lambda: empty, None, stage, show_progress="hidden")
    return launch(blocks)


@pytest.fixture
def stage(page: Page, address: str) -> Page:
    asked.clear()
    questions.clear()
    worked_out.clear()
    broken.clear()
    half_way.clear()
    page.goto(address)
    page.wait_for_selector("#stage .stage[data-run=first][data-ready=true]")
    page.locator("#stage .picture").click(trial=True)  # waits for the veil of a page still loading to be lifted
    page.mouse.move(1, 1)  # that was a pointer over a patch
    return page


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
    return page.locator("#stage .what").inner_text()


def test_rows_and_columns_are_the_softmax(stage: Page) -> None:
    for head, query in itertools.product([-1, 0, 1], [0, 7, PATCHES - 1]):
        truth = ATTENTION[-1].mean(0) if head < 0 else ATTENTION[-1, head]
        view = {"block": BLOCKS - 1, "head": head, "query": query}
        np.testing.assert_allclose(shown(stage, direction="from", **view), truth[1 + query, 1:], atol=1e-3)
        np.testing.assert_allclose(shown(stage, direction="to", **view), truth[1:, 1 + query], atol=1e-3)


def test_class_token_is_there_for_every_block_and_head(stage: Page) -> None:
    for block in range(BLOCKS):
        mean = shown(stage, block=block, head=-1, direction="from")
        np.testing.assert_allclose(mean, ATTENTION[block, :, 0, 1:].mean(0), atol=2e-3)
    column = shown(stage, block=BLOCKS - 1, head=1, direction="to")
    np.testing.assert_allclose(column, ATTENTION[-1, 1, 1:, 0], atol=1e-3)
    np.testing.assert_allclose(shown(stage, method="rollout"), np.arange(PATCHES) / 255 * 0.25, atol=1e-6)


def test_looking_around_asks_the_server_nothing(stage: Page) -> None:
    requests: list[str] = []
    stage.on("request", lambda request: requests.append(request.url) if "heartbeat" not in request.url else None)
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage).startswith("patch row 2, column 5 ")
    stage.get_by_role("radio", name="who looks at it").check()
    stage.get_by_label("Opacity").fill("30")
    stage.get_by_role("radio", name="2", exact=True).check()
    stage.get_by_role("radio", name="Rollout").check()
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
    assert asked == [("source of first", 1)]


def test_a_block_that_does_not_come_is_said_quietly(stage: Page) -> None:
    stage.get_by_label("Block", exact=True).fill("1")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("did not arrive").wait_for()
    assert subject(stage).startswith("class token · block 1 of 3")


def test_strip_brings_a_head_to_the_picture(stage: Page) -> None:
    stage.get_by_role("button", name="Block 2, head 1").click()
    assert subject(stage) == "class token · block 2 of 3 · head 1"
    stage.keyboard.press("ArrowDown")
    stage.keyboard.press("Enter")
    assert subject(stage) == "class token · block 2 of 3 · head 2"


def scene(page: Page) -> list[float]:
    """What the picture shows."""
    return page.evaluate("Array.from(document.querySelector('.stage').__stage.scene().map ?? [])")


def test_a_class_brings_the_map_that_is_about_it_and_the_server_is_asked_once(stage: Page) -> None:
    one = stage.get_by_role("button", name="one")
    one.press("Enter")
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('for one')")
    assert one.get_attribute("aria-pressed") == "true"
    assert stage.locator("#stage .pill").inner_text() == "depends on the class"
    assert scene(stage) == [float(value) for value in range(-5, PATCHES - 5)]
    seven = stage.get_by_role("button", name="seven")
    seven.click()
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('for seven')")
    assert scene(stage)[-1] == 7 * 14 and one.get_attribute("aria-pressed") == "false"
    stage.mouse.move(*point_at(stage, 0, 4))
    assert stage.locator("#stage .value").inner_text() == "worth −7.00 standard deviations of the score to seven"
    one.click()
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('for one')")
    stage.get_by_role("radio", name="Attention").check()
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('class token')")
    assert seven.get_attribute("aria-pressed") == one.get_attribute("aria-pressed") == "false"
    assert [question["label"] for question in questions] == [1, 7]
    assert all(question["about"] == "map" and question["source"] == "source of first" for question in questions)


def test_while_a_map_is_worked_out_the_old_one_stays_and_says_how_far_it_is(stage: Page) -> None:
    before = scene(stage)
    stage.get_by_role("radio", name="Occlusion").check()
    stage.get_by_text("Working out Occlusion … 25").wait_for()
    assert scene(stage) == before and subject(stage).startswith("class token")
    worked_out.set()
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('for seven')")
    assert scene(stage)[0] == -35


def test_a_map_that_fails_leaves_one_sentence_and_a_page_that_works(stage: Page) -> None:
    stage.get_by_role("radio", name="AttnLRP").check()
    stage.get_by_text("This went wrong: do otherwise.").wait_for()
    assert subject(stage).startswith("class token")
    stage.get_by_role("radio", name="Rollout").check()
    assert "rollout" in subject(stage)
    assert stage.locator("#stage .value").inner_text().startswith("brightest patch")


def shows(page: Page, start: str) -> None:
    """Waits until the caption begins so."""
    page.wait_for_function("start => document.querySelector('.what').innerText.startsWith(start)", arg=start)


def test_a_map_whose_request_was_lost_comes_when_it_is_chosen_again(stage: Page) -> None:
    stage.route("**/component_server/", lambda route: route.abort(), times=1)
    relevance = stage.get_by_role("radio", name="Relevance")
    relevance.check()
    stage.get_by_text("The server did not answer").wait_for()
    assert subject(stage).startswith("class token") and questions == []
    stage.mouse.move(*point_at(stage, 1, 1))  # looking around is no choice
    assert subject(stage) and questions == []
    relevance.click()
    shows(stage, "for seven · relevance")
    assert scene(stage)[0] == -35 and len(questions) == 1
    relevance.click()
    assert subject(stage).startswith("for seven") and len(questions) == 1, "what is there is not asked for again"


@pytest.mark.parametrize("way", ["away-and-back", "class", "keyboard"])
def test_every_way_of_choosing_again_asks_a_server_that_failed(stage: Page, way: str) -> None:
    broken.set()
    relevance = stage.get_by_role("radio", name="Relevance")
    relevance.check()
    stage.get_by_text("The server did not answer").wait_for()
    broken.clear()
    if way == "away-and-back":
        stage.get_by_role("radio", name="Rollout").check()
        assert "rollout" in subject(stage)
        relevance.check()
    elif way == "class":
        stage.get_by_role("button", name="seven").click()
    else:
        relevance.press("Space")
    shows(stage, "for seven · relevance")
    assert [question["method"] for question in questions] == ["relevance"] * 2


def test_how_a_map_is_made_is_asked_for_again(stage: Page) -> None:
    stage.get_by_text("How is this made?").click()
    stage.locator(".making b", has_text="attention").wait_for()
    broken.set()
    stage.get_by_role("radio", name="Relevance").check()
    stage.locator(".making", has_text="did not answer").wait_for()
    stage.get_by_role("radio", name="Attention").check()
    stage.locator(".making b", has_text="attention").wait_for()  # not the failure of another method
    broken.clear()
    stage.get_by_role("radio", name="Relevance").check()
    stage.locator(".making b", has_text="relevance").wait_for()


def test_a_block_that_did_not_come_is_asked_for_again(stage: Page) -> None:
    stage.route("**/component_server/", lambda route: route.abort(), times=1)
    stage.get_by_label("Block", exact=True).fill("2")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("did not arrive").wait_for()
    assert asked == []
    stage.get_by_role("radio", name="Attention").click()
    shows(stage, "patch row 1, column 1 · block 2 of 3")
    assert asked == [("source of first", 1)]


def test_a_test_that_was_lost_half_way_can_be_run_again(stage: Page) -> None:
    stage.get_by_role("radio", name="Relevance").check()
    shows(stage, "for seven · relevance")
    half_way.set()
    stage.get_by_role("button", name="Test this map").click()
    stage.locator(".claim", has_text="did not answer").wait_for()
    assert stage.locator(".charts svg").count() == 2, "what was found stays"
    half_way.clear()
    stage.get_by_role("button", name="Test this map").click()
    stage.get_by_role("button", name="Tested").wait_for()
    assert stage.locator(".charts svg").count() == 3


def test_a_new_result_comes_with_its_own_map(stage: Page) -> None:
    stage.get_by_role("radio", name="Relevance").check()
    stage.wait_for_function("document.querySelector('.what').innerText.startsWith('for seven')")
    stage.locator("#next").click()
    stage.wait_for_selector("#stage .stage[data-run=second]")
    assert scene(stage) and subject(stage).startswith("for seven")
    assert [question["source"] for question in questions] == ["source of first", "source of second"]


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


def test_answers_are_read_out(stage: Page) -> None:
    assert stage.locator("#stage .spoken").inner_text().strip() == "It says seven, 90.0 percent."
    assert stage.locator("#stage .bars li").nth(1).inner_text().split("\n")[-1] == "<0.1\u00a0%"


def test_a_phone_never_scrolls_sideways(phone: Page, address: str) -> None:
    phone.goto(address)
    phone.wait_for_selector("#stage .stage[data-ready=true]")
    phone.locator("#stage .picture").tap()
    assert subject(phone).startswith("patch row ")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
