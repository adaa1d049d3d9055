"""What the stage says of requests that fail, and how it repeats them."""

import pytest

from .choosing import Page, choose_method, look_from, method_button, settings, wait_a_moment, wait_until
from .stage_page import (
    block_requests,
    faults,
    other_requests,
    point_at,
    scene,
    shows,
    subject,
    waited_for,
)


def test_a_block_that_cannot_be_loaded_leaves_one_sentence(stage: Page) -> None:
    look_from(stage)
    settings(stage).get_by_label("Block", exact=True).fill("1")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("could not be loaded").wait_for()
    assert subject(stage).startswith("From the class token · block 1 of 3")


def test_a_map_that_fails_leaves_one_sentence_and_a_page_that_works(stage: Page) -> None:
    choose_method(stage, "AttnLRP")
    stage.locator(".value", has_text="This went wrong: do otherwise.").wait_for()
    assert subject(stage).startswith("From the class token")
    choose_method(stage, "Rollout")
    assert "rollout" in subject(stage)
    assert (
        "Nothing stands out: no square gets more than if attention were spread evenly"
        in stage.locator("#stage .value").inner_text()
    )


def test_a_map_whose_request_was_lost_is_requested_when_it_is_chosen_again(stage: Page) -> None:
    stage.route("**/vit_demo/request", lambda route: route.abort(), times=1)
    choose_method(stage, "Relevance")
    stage.locator(".value", has_text="The server did not respond").wait_for()
    assert subject(stage).startswith("From the class token") and other_requests == []
    stage.mouse.move(*point_at(stage, 1, 1))  # looking around is no choice
    assert subject(stage) and other_requests == []
    method_button(stage, "Relevance").click()
    shows(stage, "for seven · relevance")
    assert scene(stage)[0] == -35 and len(other_requests) == 1
    method_button(stage, "Relevance").click()
    assert subject(stage).startswith("for seven") and len(other_requests) == 1, "what is there is not requested again"


@pytest.mark.parametrize("way", ["away-and-back", "class", "keyboard"])
def test_every_way_of_choosing_again_repeats_a_failed_request(stage: Page, way: str) -> None:
    faults.add("broken")
    choose_method(stage, "Relevance")
    stage.locator(".value", has_text="The server did not respond").wait_for()
    faults.remove("broken")
    if way == "away-and-back":
        choose_method(stage, "Rollout")
        assert "rollout" in subject(stage)
        choose_method(stage, "Relevance")
    elif way == "class":
        stage.locator(".bars").get_by_role("button", name="seven").click()
    else:
        method_button(stage, "Relevance").press("Space")
    shows(stage, "for seven · relevance")
    assert [request["method"] for request in other_requests] == ["relevance"] * 2


def test_the_docs_of_a_method_are_requested_again_after_a_failure(stage: Page) -> None:
    settings(stage).get_by_text("How is this computed?").click()
    stage.locator(".method-docs .text b", has_text="attention").wait_for()
    faults.add("broken")
    method_button(stage, "Relevance").check()
    stage.locator(".method-docs", has_text="did not respond").wait_for()
    method_button(stage, "Attention").check()
    stage.locator(".method-docs .text b", has_text="attention").wait_for()  # not the failure of another method
    faults.remove("broken")
    method_button(stage, "Relevance").check()
    stage.locator(".method-docs .text b", has_text="relevance").wait_for()


def test_a_block_that_could_not_be_loaded_is_requested_again(stage: Page) -> None:
    stage.route("**/vit_demo/request", lambda route: route.abort(), times=1)
    look_from(stage)
    settings(stage).get_by_label("Block", exact=True).fill("2")
    stage.mouse.click(*point_at(stage, 0, 0))
    stage.get_by_text("could not be loaded").wait_for()
    assert block_requests == []
    method_button(stage, "Attention").click()
    shows(stage, "From the square in row 1, column 1 · block 2 of 3")
    assert block_requests == [("source of first", 1)]


def test_a_test_that_failed_in_its_second_half_can_be_run_again(stage: Page) -> None:
    choose_method(stage, "Relevance")
    shows(stage, "for seven · relevance")
    faults.add("half broken")
    stage.get_by_role("button", name="Test these colours").click()
    stage.locator(".status", has_text="did not respond").wait_for()
    assert stage.locator(".findings svg").count() == 2, "the first half stays"
    faults.remove("half broken")
    stage.get_by_role("button", name="Test these colours").click()
    stage.get_by_role("button", name="Tested").wait_for()
    assert stage.locator(".findings svg").count() == 3


@pytest.mark.parametrize("way", ["elsewhere", "cancel"])
def test_a_test_that_was_interrupted_can_be_run_again(stage: Page, way: str) -> None:
    choose_method(stage, "Relevance")
    shows(stage, "for seven · relevance")
    faults.add("random_order waits")
    stage.get_by_role("button", name="Test these colours").click()
    stage.locator(".conclusion", has_text="Random orders are being computed").wait_for()
    if way == "cancel":
        stage.locator(".faithfulness .start").get_by_role("button", name="Cancel").click()
    else:
        choose_method(stage, "Rollout")
        wait_a_moment(stage)
        choose_method(stage, "Relevance")
    faults.remove("random_order waits")
    if way == "cancel":  # one that the visitor left for a moment goes on
        stage.get_by_role("button", name="Test these colours").click()
    stage.get_by_role("button", name="Tested").wait_for()
    assert (
        stage.locator(".findings svg").count() == 3
        and "being computed" not in stage.locator(".conclusion").inner_text()
    )


def test_a_chapter_that_is_asked_for_again_keeps_its_place_meanwhile(stage: Page) -> None:
    steps = stage.locator("#stage .steps")
    height = steps.evaluate("steps => steps.offsetHeight")
    faults.add("steps waits")
    steps.evaluate("steps => steps.scrollIntoView()")
    wait_until(stage, lambda: "steps" in waited_for)
    assert steps.evaluate("steps => steps.offsetHeight") == height, "or else what is below moves under the pointer"
