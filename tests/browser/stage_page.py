"""A stage with seeded attention, its server, and what tests ask of it."""

import asyncio
import base64
import io
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from vit_demo.web.frontend.components import stage as stage_component
from vit_demo.web.requests.packing import pack

from .. import asynchronous
from .choosing import Browser, Page, middle_of

BLOCKS, HEADS, WIDTH = 3, 2, 8
ROWS, COLUMNS = 4, 5
PATCHES = ROWS * COLUMNS
TOKENS = 1 + PATCHES

QUERIES, KEYS = np.random.default_rng(0).normal(0, 1.5, (2, BLOCKS, HEADS, TOKENS, WIDTH)).astype(np.float16)
SCORES = np.einsum("bhid,bhjd->bhij", QUERIES.astype(np.float64), KEYS.astype(np.float64))
LOGSUMEXP = np.log(np.exp(SCORES).sum(-1))
ATTENTION = np.exp(SCORES - LOGSUMEXP[..., None])
"""What the page must find: [blocks, heads, tokens, tokens], each row sums to 1."""

block_requests: list[tuple[str, int]] = []  # the traces that the page has requested
other_requests: list[dict[str, Any]] = []

faults: set[str] = set()
"""What goes wrong: "broken", every request; "half broken", the second half of a test; "slow map", the map of occlusion
is being computed; "random_order waits" and "steps waits", what requests of these kinds want is being computed."""

waited_for: set[str] = set()
"""The kinds of requests that have been answered so."""

BELOW = {
    "logit_lens": {"result": {"predictions": [{"label": "one", "probability": n / 5} for n in range(BLOCKS + 1)]}},
    "steps": {"error": "There is no network here."},
}
"""Replies about the answers below the blocks, and the chapter of the steps."""


def encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def trace_of(block: int) -> dict[str, str]:
    return {
        "q": encode(QUERIES[block]),
        "k": encode(KEYS[block]),
        "logsumexp": encode(LOGSUMEXP[block].astype(np.float32)),
    }


def attention_maps(query: int | None = None) -> dict[str, str]:
    """The attention of the class token, or of a patch, to each patch."""
    rows = ATTENTION[:, :, 0 if query is None else 1 + query, 1:]
    peak = rows.max(-1)
    levels = encode(np.round(rows / peak[..., None] * 65535).astype(np.uint16))
    return {"levels": levels, "peaks": encode(peak.astype(np.float32))}


def result(run: str) -> dict[str, Any]:
    """A result as the page gets it, without the trace of any block."""
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
        "pool": "cls",
        "num_blocks": BLOCKS,
        "num_heads": HEADS,
        "trace_bytes": 1000,
        "photo": None,
        "box": None,
        "early": None,
        "predictions": {
            "indices": encode(np.uint16([7, 1])),
            "probabilities": encode(np.float32([0.9, 0.0004])),
            "labels": ["seven", "one"],
            "scores": "softmax",
        },
        "dropped": [],
        "silent": [],
        "confident": True,
        "note": "",
        "attention_maps": attention_maps(),
        "rollout": {"levels": encode(np.arange(PATCHES, dtype=np.uint16)), "peaks": encode(np.float32([0.25]))},
        "operations": 1_200_000,
        "milliseconds": 1.5,
        "device": "cpu",
    }


@pytest.fixture(scope="module")
def stage_address(launch: Callable[..., str]) -> str:
    async def handle(request: dict[str, Any]) -> bytes:
        while request["kind"] == "logit_lens" and "answers wait" in faults:
            await asyncio.sleep(0.1)
        return pack(await reply_to(request))

    async def reply_to(request: dict[str, Any]) -> dict[str, Any]:
        if request["kind"] == "block":
            block_requests.append((request["source"], request["block"]))
            if request["block"] == 0:
                raise RuntimeError("lost")
            return {"result": trace_of(request["block"])}
        if request["kind"] == "attention_maps":
            return {"result": {"maps": attention_maps(request["query"])}}
        if f"{request['kind']} waits" in faults:
            waited_for.add(request["kind"])
            await asyncio.sleep(0.1)
            return {"done": 0, "total": 0}
        if request["kind"] in BELOW:
            return BELOW[request["kind"]]
        other_requests.append(request)
        if "broken" in faults:
            raise RuntimeError("lost")
        if request["kind"] == "method_docs":
            return {"result": {"html": f"<b>{request['method']}</b>"}}
        if request["kind"] in ("faithfulness", "random_order"):
            side = {"curve": [1, 0.5, 0], "area": 0.5}
            return {"result": {"fractions": [0, 0.5, 1], "deletion": side, "insertion": side}}
        if request["kind"] == "randomization":
            if "half broken" in faults:
                raise RuntimeError("lost")
            return {"result": {"correlations": [1, 0.5, 0.1]}}
        if request.get("method") == "attnlrp":
            return {"error": "This went wrong: do otherwise."}
        if request.get("method") == "occlusion" and "slow map" in faults:
            await asyncio.sleep(0.1)
            return {"done": 1, "total": 4}
        signs = np.arange(PATCHES, dtype=np.float32) - 5
        return {"result": {"map": encode(signs * request.get("label", 1))}}

    with gr.Blocks() as blocks:
        stage = stage_component(result("first"))
        gr.Button("first", elem_id="first").click(lambda: result("first"), None, stage, show_progress="hidden")
        gr.Button("next", elem_id="next").click(lambda: result("second"), None, stage, show_progress="hidden")
        empty = {"empty": True, "message": "Nothing here."}
        gr.Button("empty", elem_id="empty").click(lambda: empty, None, stage, show_progress="hidden")
    return launch(blocks, handle)


@pytest.fixture(scope="module")
def opened_stage(browser: Browser, stage_address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(1000 * asynchronous.PATIENCE)
    open_stage(page, stage_address)
    page.evaluate("window.firstChoices = document.querySelector('.stage').__stage.choices")
    yield page
    page.close()


@pytest.fixture
def stage(opened_stage: Page) -> Iterator[Page]:
    """A page that the tests of a file share, with a result of its own and the first choices for each."""
    page = opened_stage
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    faults.clear()
    give(page, "empty")
    page.wait_for_selector("#stage .stage[data-ready=empty]")
    for button in page.locator(".drawer:visible .close, .more[aria-expanded=true]").all():
        button.evaluate("button => button.click()")
    page.evaluate("for (const each of document.querySelectorAll('details[open]')) each.open = false")
    page.evaluate("document.querySelector('.stage').__stage.change(window.firstChoices)")
    give(page, "first")
    page.wait_for_selector("#stage .stage[data-run=first][data-ready=true]")
    steps = page.locator("#stage .steps")
    steps.scroll_into_view_if_needed()  # or else it is loaded, and moves what is below, while a test presses that
    steps.get_by_text(BELOW["steps"]["error"]).wait_for()
    page.evaluate("scrollTo(0, 0)")
    block_requests.clear()
    other_requests.clear()
    point_at_picture(page)
    page.locator("#stage .answers > span").first.wait_for()
    block_requests.clear()
    waited_for.clear()
    yield page
    page.unroute_all()
    assert not errors


def give(page: Page, name: str) -> None:
    """Has the server give the stage a result, whose button may just be moving as the page above it grows.

    Gradio stores each result, and reads and writes all of them with each: the twentieth would take three seconds.
    """
    page.locator(f"#{name}").evaluate("button => { localStorage.clear(); button.click(); }")


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
    return middle_of(page.locator("#stage .picture"), row, column, ROWS, COLUMNS)


def subject(page: Page) -> str:
    page.evaluate("new Promise(requestAnimationFrame)")
    return page.locator("#stage .subject").inner_text()


def scene(page: Page) -> list[float]:
    """What the picture shows."""
    return page.evaluate("Array.from(document.querySelector('.stage').__stage.scene().map ?? [])")


def shows(page: Page, start: str) -> None:
    """Waits until the caption begins so."""
    page.wait_for_function("start => document.querySelector('.subject').innerText.startsWith(start)", arg=start)
