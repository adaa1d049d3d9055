"""The stage against numpy: what it computes, what it requests, and what keys and pointer do."""

import numpy as np
import pytest

from .choosing import Page, choose_method, close_settings, look_from, percent, rub, settings, wait_a_moment
from .stage_page import (
    ATTENTION,
    BLOCKS,
    COLUMNS,
    PATCHES,
    block_requests,
    faults,
    give,
    open_stage,
    other_requests,
    point_at,
    point_at_picture,
    scene,
    shown,
    shows,
    subject,
)


def test_the_trace_of_a_block_is_requested_once_with_the_pointer_on_the_picture(page: Page, stage_address: str) -> None:
    block_requests.clear()
    open_stage(page, stage_address)
    wait_a_moment(page)
    assert block_requests == []
    point_at_picture(page)
    assert block_requests == [("source of first", BLOCKS - 1)]


def test_looking_around_sends_no_request(stage: Page) -> None:
    requests: list[str] = []
    stage.on("request", lambda request: requests.append(request.url) if "heartbeat" not in request.url else None)
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage) == "", "pointing reads the map that is there"
    expected = 100 * ATTENTION[-1, :, 0, 1 + COLUMNS + 4].mean()
    value = stage.locator("#stage .value").inner_text()
    assert value.startswith("row 2, column 5: gets ") and percent(value) == pytest.approx(expected, abs=0.06)
    look_from(stage)
    for column in range(COLUMNS):
        stage.mouse.move(*point_at(stage, 1, column))
    assert subject(stage).startswith("From the square in row 2, column 5 "), "the map follows"
    drawer = settings(stage)
    drawer.get_by_role("radio", name="attended to by").check()
    assert subject(stage).startswith("To the class token ")
    drawer.locator("[data-control=opacity]").fill("30")
    drawer.locator("[data-control=head]").get_by_role("radio", name="2", exact=True).check()
    choose_method(stage, "Rollout")
    assert "rollout" in subject(stage)
    assert requests == []


def test_click_pins_keys_move_and_escape_returns(stage: Page) -> None:
    look_from(stage)
    stage.mouse.click(*point_at(stage, 0, 3))
    stage.mouse.move(*point_at(stage, 2, 2))
    assert subject(stage).startswith("From the square in row 1, column 4 ")
    expected = 100 * ATTENTION[-1, :, 1 + 3, 1 + 2 * COLUMNS + 2].mean()
    assert percent(stage.locator("#stage .value").inner_text()) == pytest.approx(expected, abs=0.06)
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown"):  # held at the edges
        stage.keyboard.press(key)
    assert subject(stage).startswith("From the square in row 2, column 5 ")
    stage.keyboard.press("Escape")
    assert subject(stage) == "", "the first map, of which the sentence says all"


def test_a_second_click_and_the_other_mode_leave_a_square(stage: Page) -> None:
    place = point_at(stage, 3, 0)
    for leave in (lambda: stage.mouse.click(*place), lambda: rub(stage)):
        look_from(stage)
        stage.mouse.click(*place)
        stage.mouse.move(1, 1)
        shows(stage, "From the square in row 4, column 1")
        leave()
        stage.mouse.move(1, 1)
        stage.wait_for_function("document.querySelector('.subject').innerText === ''")


def test_keys_press_the_buttons_around_the_picture_only_while_it_has_the_focus(stage: Page) -> None:
    def press(*keys: str) -> list[object]:
        for key in keys:
            stage.keyboard.press(key)
        return stage.evaluate(
            "(({ plain, method, block, verb }) => [plain, method, block, verb])"
            "(document.querySelector('.stage').__stage.choices)"
        )

    stage.locator("#stage .settings").focus()
    before = press("1", "3", "[")
    assert before[:3] == [False, "attention", BLOCKS - 1]
    stage.locator(".picture").focus()
    assert press("1") == [True, *before[1:]]
    assert press("2", "[", "[")[:3] == [False, "attention", BLOCKS - 3]
    assert press("[", "]")[:3] == [False, "attention", BLOCKS - 2], "held at the first block"
    assert press("3")[1] == "libra_fullgrad"


def test_another_block_is_fetched_once_in_the_background(stage: Page) -> None:
    look_from(stage)
    slider = settings(stage).get_by_label("Block", exact=True)
    slider.fill("2")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.wait_for_function("document.querySelector('.stage').__stage.current().traces.has(1)")
    truth = ATTENTION[1, :, 1, 1:].mean(0)
    np.testing.assert_allclose(shown(stage, block=1, query=0), truth, atol=1e-3)
    slider.fill("3")
    slider.fill("2")
    shows(stage, "From the square in row 1, column 1 · block 2 of 3")
    assert block_requests == [("source of first", 1)]


def test_the_answers_after_each_block_are_never_long_those_of_the_picture_before(stage: Page) -> None:
    answers = stage.locator("#stage .answers")
    faults.add("answers wait")
    give(stage, "next")
    stage.wait_for_selector("#stage .stage[data-run=second]")
    answers.wait_for(state="hidden")
    assert "other" in answers.get_attribute("class").split(), "at once, though those of other squares may stay a moment"
    faults.clear()
    answers.wait_for()
    assert answers.locator("> span").count() == BLOCKS


def test_a_cell_of_all_heads_shows_its_head(stage: Page) -> None:
    stage.get_by_role("button", name="All heads").click()
    stage.get_by_role("button", name="Block 2, head 1:").click()
    shows(stage, "From the class token · block 2 of 3, head 1")
    stage.keyboard.press("ArrowDown")
    stage.keyboard.press("Enter")
    shows(stage, "From the class token · block 2 of 3, head 2")
    stage.get_by_role("button", name="Hide the heads").click()
    stage.get_by_role("button", name="Block 3:").click()
    stage.wait_for_function("document.querySelector('.subject').innerText === ''")


def test_the_blocks_and_heads_share_one_scale_and_follow_the_pinned_patch(stage: Page) -> None:
    stage.get_by_role("button", name="All heads").click()
    group = stage.locator("#stage .cells")

    def peaks(token: int) -> list[str]:
        """Of the mean of all heads in each block, then of each head."""
        rows = np.concatenate([ATTENTION[:, :, token, 1:].mean(1)[None], ATTENTION[:, :, token, 1:].swapaxes(0, 1)])
        return [f"at most {100 * peak:.1f}\u00a0%" for peak in rows.max(-1).ravel()]

    def titles() -> list[str]:
        return [title.split(": ")[1] for title in group.locator(".cell").evaluate_all("all => all.map((e) => e.title)")]

    group.locator(".cell").nth(BLOCKS * 3 - 1).wait_for()
    assert group.get_attribute("aria-label") == "Every block: attention from the class token"
    assert titles() == peaks(0)
    stage.locator("#stage .answers > span").nth(2).wait_for()
    assert stage.locator("#stage .answers > span").all_inner_texts() == [f"{20 * n}.0\u00a0%" for n in (1, 2, 3)]
    assert stage.locator("#stage .answers strong").all_inner_texts() == ["one"], "once; early answers are grey"
    look_from(stage)
    stage.mouse.click(*point_at(stage, 1, 2))
    stage.wait_for_function("document.querySelector('.cells').ariaLabel.endsWith('square in row 2, column 3')")
    assert titles() == peaks(1 + 7)


def test_the_caption_says_where_the_map_is_strong_and_the_scale_where_it_ends(stage: Page) -> None:
    row = ATTENTION[-1, :, 0].mean(0)
    line, column = divmod(int(row[1:].argmax()), COLUMNS)
    expected = f"Strongest: row {line + 1}, column {column + 1}, {100 * row[1:].max():.1f}\u00a0%"
    assert row[0] < 0.05, "a small part of the attention is on no patch, which is not said"
    assert stage.locator("#stage .value").inner_text() == expected
    peak = stage.locator("#stage .scale .peak")
    common = 100 * ATTENTION[:, :, 0, 1:].mean(1).max()
    assert percent(peak.inner_text()) == pytest.approx(common, abs=0.06), "one scale for all blocks"
    assert stage.locator("#stage .scale").get_attribute("title") == "One scale for all maps of this picture"
    settings(stage).get_by_role("radio", name="of this map").check()
    stage.wait_for_function("!document.querySelector('.scale').title")
    assert percent(peak.inner_text()) == pytest.approx(100 * row[1:].max(), abs=0.06)


def test_a_click_on_a_class_shows_the_evidence_for_it_and_requests_it_once(stage: Page) -> None:
    one = stage.locator(".bars").get_by_role("button", name="one")
    one.press("Enter")
    stage.wait_for_function("document.querySelector('.subject').innerText.includes('for one')")
    assert one.get_attribute("aria-pressed") == "true"
    assert scene(stage) == [float(value) for value in range(-5, PATCHES - 5)]
    seven = stage.locator(".bars").get_by_role("button", name="seven")
    seven.click()
    stage.wait_for_function("document.querySelector('.subject').innerText.includes('for seven')")
    assert scene(stage)[-1] == 7 * 14 and one.get_attribute("aria-pressed") == "false"
    stage.mouse.move(*point_at(stage, 0, 4))
    value = stage.locator("#stage .value")
    assert value.inner_text() == "row 1, column 5: evidence against seven: 7.00\u00a0logits"
    stage.mouse.move(1, 1)
    against = "against it: row 1, column 1, −35.0"
    stage.locator("#stage .value", has_text=f"Strongest: row 4, column 5, 98.0 · {against}").wait_for()
    one.click()
    stage.wait_for_function("document.querySelector('.subject').innerText.includes('for one')")
    choose_method(stage, "Attention")
    stage.wait_for_function("document.querySelector('.subject').innerText === ''")
    assert seven.get_attribute("aria-pressed") == one.get_attribute("aria-pressed") == "false"
    assert [request["label"] for request in other_requests] == [1, 7]
    assert all(request["kind"] == "map" and request["source"] == "source of first" for request in other_requests)


def test_while_a_map_is_computed_the_old_one_stays_and_progress_is_shown(stage: Page) -> None:
    before = scene(stage)
    faults.add("slow map")
    choose_method(stage, "Occlusion")
    stage.get_by_text("Computing Occlusion … 25").wait_for()
    assert scene(stage) == before and subject(stage).startswith("From the class token")
    faults.remove("slow map")
    stage.wait_for_function("document.querySelector('.subject').innerText.includes('for seven')")
    assert scene(stage)[0] == -35


def test_a_new_result_comes_with_its_own_map(stage: Page) -> None:
    choose_method(stage, "Relevance")
    stage.wait_for_function("document.querySelector('.subject').innerText.includes('for seven')")
    give(stage, "next")
    stage.wait_for_selector("#stage .stage[data-run=second]")
    assert scene(stage) and subject(stage).startswith("for seven")
    assert [request["source"] for request in other_requests] == ["source of first", "source of second"]


def test_choices_outlive_a_result_and_an_empty_pad(stage: Page) -> None:
    height = stage.evaluate("document.querySelector('.blocks').offsetTop")
    settings(stage).get_by_label("Block", exact=True).fill("2")
    close_settings(stage)
    give(stage, "empty")
    stage.get_by_text("Nothing here.").wait_for()
    assert stage.evaluate("document.querySelector('.blocks').offsetTop") == pytest.approx(height, abs=1)
    give(stage, "next")
    stage.wait_for_selector("#stage .stage[data-run=second][data-top1=seven]")
    shows(stage, "From the class token · block 2 of 3, mean of 2 heads")
    assert stage.evaluate("document.querySelector('.blocks').offsetTop") == pytest.approx(height, abs=1)


def test_predictions_are_read_out(stage: Page) -> None:
    assert stage.locator("#stage .spoken-answer").inner_text().strip() == "Prediction: seven, 90.0\u00a0%."
    assert stage.locator("#stage .bars li").first.inner_text().split("\n")[-1] == "<0.1\u00a0%"
