"""The stage against numpy: what it computes, what it requests, and what keys and pointer do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from .choosing import method_button
from .stage_page import (
    ATTENTION,
    BLOCKS,
    COLUMNS,
    PATCHES,
    block_requests,
    faults,
    open_stage,
    other_requests,
    point_at,
    point_at_picture,
    scene,
    shown,
    subject,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_the_trace_of_a_block_is_requested_once_with_the_pointer_on_the_picture(page: Page, stage_address: str) -> None:
    block_requests.clear()
    open_stage(page, stage_address)
    page.wait_for_timeout(300)
    assert block_requests == []
    point_at_picture(page)
    assert block_requests == [("source of first", BLOCKS - 1)]


def test_looking_around_sends_no_request(stage: Page) -> None:
    requests: list[str] = []
    stage.on("request", lambda request: requests.append(request.url) if "heartbeat" not in request.url else None)
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage).startswith("What the patch row 2, column 5 "), "pointing shows what the patch attends to"
    expected = 100 * ATTENTION[-1, :, 0, 1 + COLUMNS + 4].mean()
    value = stage.locator("#stage .value").inner_text()
    kept = value.split("class token: ")[1]
    assert kept.endswith("here") and float(kept.split()[0]) == pytest.approx(expected, abs=0.06)
    stage.get_by_role("button", name="Follow pointer").click()
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage).startswith("What the class token "), "pointing reads the map that is there"
    value = stage.locator("#stage .value").inner_text()
    assert float(value.split("with ")[1].split()[0]) == pytest.approx(expected, abs=0.06)
    stage.get_by_role("radio", name="attended to by").check()
    assert "attends to" not in " ".join(stage.locator(".about .hint").all_inner_texts())
    stage.locator("[data-control=opacity]").fill("30")
    stage.get_by_role("radio", name="2", exact=True).check()
    method_button(stage, "Rollout").check()
    assert "rollout" in subject(stage)
    assert requests == []


def test_click_pins_keys_move_and_escape_returns(stage: Page) -> None:
    stage.mouse.click(*point_at(stage, 0, 3))
    stage.mouse.move(*point_at(stage, 2, 2))
    assert subject(stage).startswith("What the patch row 1, column 4 ")
    value = stage.locator("#stage .value").inner_text()
    expected = 100 * ATTENTION[-1, :, 1 + 3, 1 + 2 * COLUMNS + 2].mean()
    assert float(value.split("with ")[1].split()[0]) == pytest.approx(expected, abs=0.06)
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown"):  # held at the edges
        stage.keyboard.press(key)
    assert subject(stage).startswith("What the patch row 2, column 5 ")
    stage.keyboard.press("Escape")
    assert subject(stage).startswith("What the class token ")


def test_back_button_and_second_click_unpin(stage: Page) -> None:
    place = point_at(stage, 3, 0)
    back = stage.get_by_role("button", name="Back to class token")
    assert back.count() == 0
    stage.mouse.click(*place)
    back.click()
    assert subject(stage).startswith("What the class token ")
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
    assert subject(stage).startswith("What the patch row 1, column 1 attends to · block 2 of 3")
    assert block_requests == [("source of first", 1)]


def test_a_cell_of_the_head_grid_shows_its_head(stage: Page) -> None:
    stage.get_by_role("button", name="Block 2, head 1").click()
    assert subject(stage) == "What the class token attends to · block 2 of 3, head 1"
    stage.keyboard.press("ArrowDown")
    stage.keyboard.press("Enter")
    assert subject(stage) == "What the class token attends to · block 2 of 3, head 2"


def test_the_cells_of_the_head_grid_share_one_scale_and_follow_the_pinned_patch(stage: Page) -> None:
    about = stage.locator("#stage .about-cells")
    cells = "Array.from(document.querySelectorAll('.cell canvas'), (canvas) => canvas.toDataURL())"

    def peaks(token: int) -> np.ndarray:
        return ATTENTION[:, :, token, 1:].max(-1)  # [blocks, heads]

    assert about.inner_text().startswith("Attention from the class token; the number is the largest share")
    assert about.inner_text().endswith(f"All cells share one scale, up to {100 * peaks(0).max():.1f}\u00a0%.")
    written = [f"{100 * peak:.1f}\u00a0%" for peak in peaks(0).T.ravel()]
    assert stage.locator("#stage .cell span").all_inner_texts() == written
    shared = stage.evaluate(cells)
    stage.get_by_role("radio", name="Each its own").check()
    assert about.inner_text().endswith("Each cell is scaled to its own.")
    own = stage.evaluate(cells)
    strongest = int(peaks(0).argmax())
    assert [i for i, (one, other) in enumerate(zip(shared, own, strict=True)) if one == other] == [strongest]
    stage.get_by_role("radio", name="One scale").check()
    stage.locator("#stage .picture").scroll_into_view_if_needed()
    stage.mouse.click(*point_at(stage, 1, 2))
    about.filter(has_text="Attention from the patch row 2, column 3;").wait_for()
    assert about.inner_text().endswith(f"up to {100 * peaks(1 + 7).max():.1f}\u00a0%.")


def test_the_caption_says_where_the_map_is_strong_and_what_the_class_token_keeps(stage: Page) -> None:
    row = ATTENTION[-1, :, 0].mean(0)
    rest = np.sort(row[1:])[::-1][1:].cumsum()
    count = int((rest < rest[-1] / 2).sum()) + 1
    assert count <= PATCHES / 4
    line, column = divmod(int(row[1:].argmax()), COLUMNS)
    expected = f"Strongest: row {line + 1}, column {column + 1}, {100 * row[1:].max():.1f}\u00a0%; "
    expected += f"{count} of the other {PATCHES - 1} patches hold half of the rest"
    assert row[0] < 0.05, "a small part of the attention is on no patch, which is not said"
    assert stage.locator("#stage .value").inner_text() == expected


def test_a_click_on_a_class_shows_the_evidence_for_it_and_requests_it_once(stage: Page) -> None:
    one = stage.get_by_role("button", name="one")
    one.press("Enter")
    stage.wait_for_function("document.querySelector('.look .subject').innerText.includes('for one')")
    assert one.get_attribute("aria-pressed") == "true"
    assert stage.locator("#stage .dependence").inner_text() == "depends on the class"
    assert scene(stage) == [float(value) for value in range(-5, PATCHES - 5)]
    seven = stage.get_by_role("button", name="seven")
    seven.click()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.includes('for seven')")
    assert scene(stage)[-1] == 7 * 14 and one.get_attribute("aria-pressed") == "false"
    stage.mouse.move(*point_at(stage, 0, 4))
    assert stage.locator("#stage .value").inner_text() == "evidence against seven: 7.00\u00a0logits"
    one.click()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.includes('for one')")
    method_button(stage, "Attention").check()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.startsWith('What the class token')")
    assert seven.get_attribute("aria-pressed") == one.get_attribute("aria-pressed") == "false"
    assert [request["label"] for request in other_requests] == [1, 7]
    assert all(request["kind"] == "map" and request["source"] == "source of first" for request in other_requests)


def test_while_a_map_is_computed_the_old_one_stays_and_progress_is_shown(stage: Page) -> None:
    before = scene(stage)
    faults.add("slow map")
    method_button(stage, "Occlusion").check()
    stage.get_by_text("Computing Occlusion … 25").wait_for()
    assert scene(stage) == before and subject(stage).startswith("What the class token")
    faults.remove("slow map")
    stage.wait_for_function("document.querySelector('.look .subject').innerText.includes('for seven')")
    assert scene(stage)[0] == -35


def test_a_new_result_comes_with_its_own_map(stage: Page) -> None:
    method_button(stage, "Relevance").check()
    stage.wait_for_function("document.querySelector('.look .subject').innerText.includes('for seven')")
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
    assert subject(stage) == "What the class token attends to · block 2 of 3, mean of 2 heads"
    assert stage.evaluate("document.querySelector('.stage').offsetHeight") == height


def test_predictions_are_read_out(stage: Page) -> None:
    assert stage.locator("#stage .predictions .spoken").inner_text().strip() == "Prediction: seven, 90.0\u00a0%."
    assert stage.locator("#stage .bars li").nth(1).inner_text().split("\n")[-1] == "<0.1\u00a0%"


def test_a_phone_never_scrolls_sideways(phone: Page, stage_address: str) -> None:
    phone.goto(stage_address)
    phone.wait_for_selector("#stage .stage[data-ready=true]")
    phone.locator("#stage .picture").tap()
    phone.locator("#stage .subject", has_text="patch row ").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
