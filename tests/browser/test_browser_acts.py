"""What a mouse and a finger do on the picture: the answers follow it, and nothing else moves or hears of it."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

from .acts import (
    CLOCK,
    FIXED,
    HEARD,
    NETWORK,
    SAID,
    WATCH,
    Hand,
    is_alike,
    painted,
    picture,
    run_of,
    said,
    wait_until_answered,
    wait_until_done,
)
from .choosing import (
    STAGE,
    Page,
    frames,
    middle_of,
    on_paper,
    open_page,
    press_along,
    rub,
    shown_result,
    strokes_of,
    wait_a_moment,
)

SIZES = {"laptop": (1366, 768), "tablet": (820, 1180), "phone": (390, 844)}
KINDS = {"laptop": "desktop", "tablet": "tablet", "phone": "phone"}
TOUCHED = ("tablet", "phone")
DOWN = [(0.5, 0.2), (0.5, 0.35), (0.5, 0.5), (0.5, 0.65), (0.5, 0.8)]
SEVEN = [(0.25, 0.22), (0.5, 0.22), (0.75, 0.22), (0.6, 0.5), (0.45, 0.8)]
ACROSS = [(0.2, 0.5), (0.4, 0.5), (0.6, 0.5), (0.8, 0.5)]


@pytest.fixture(scope="module", params=["laptop", "phone"])
def screen(lasting_window: Callable[..., Page], address: str, request: pytest.FixtureRequest) -> Iterator[Hand]:
    """A mouse at a large page or a finger at a small one, which all tests of that size share."""
    page = open_page(lasting_window(SIZES[request.param], KINDS[request.param]), address)
    page.evaluate(NETWORK)
    yield Hand(page, request.param in TOUCHED)
    page.close()


@pytest.fixture
def hand(screen: Hand) -> Hand:
    """The page with an 8, on which one draws."""
    page = screen.page
    page.evaluate("live.isLost = live.isHeld = false; scrollTo(0, 0)")
    page.locator("[data-mode=draw]").click()
    for digit in (3, 8):
        page.locator(".example").nth(digit).evaluate("button => button.click()")
        page.wait_for_function(f"digit => {STAGE}.current()?.exampleDigit === digit", arg=digit)
        wait_until_done(page)
    page.mouse.move(1, 1)
    return screen


touched = pytest.mark.parametrize("screen", ["phone"], indirect=True)


def other_run(page: Page, run: str) -> str:
    """Waits for an answer after that of a run."""
    page.wait_for_function("run => document.querySelector('.stage').dataset.run !== run", arg=run)
    return run_of(page)


def predictions(page: Page) -> list[list[float]]:
    return page.evaluate(f"{STAGE}.current().predictions.map(({{index, probability}}) => [index, probability])")


def told(page: Page) -> list[object]:
    """What history, address and screen reader know."""
    return [page.evaluate("history.length"), page.url, page.evaluate(HEARD)]


def test_answers_change_within_a_stroke_and_nothing_else_hears_of_it(hand: Hand) -> None:
    page = hand.page
    before, run, ordinary = told(page), run_of(page), page.evaluate(f"{STAGE}.current().run")
    places = on_paper(page, SEVEN)
    asked = page.evaluate("live.asked")
    hand.down(places[0])
    hand.along(on_paper(page, [(0.26, 0.22), (0.28, 0.22)]))
    wait_a_moment(page)
    assert page.evaluate("live.asked") == asked, "of a dot the network would get a blob as large as a digit"
    hand.along(places[1:3])
    other_run(page, run)
    wait_until_answered(page)
    half, run = said(page), run_of(page)
    assert page.locator(".example[aria-pressed=true]").count() == 0, "this is no example"
    hand.along(places[3:])
    other_run(page, run)
    page.wait_for_function("document.querySelector('.stage').dataset.top1 !== '8'")
    wait_until_answered(page)
    whole, run = said(page), run_of(page)
    assert half["numbers"] != whole["numbers"] and half["early"] != whole["early"]
    assert page.evaluate(f"{STAGE}.current().run") == ordinary, "the result on the stage waits for the end"
    first = page.evaluate("document.querySelector('.stage').dataset.top1")
    assert page.locator("[data-show=class]").inner_text() == f"Speaks for {first}", "of the answer of now"
    assert told(page) == before
    assert page.evaluate("scrollY") == 0
    hand.up()
    other_run(page, run)
    wait_until_done(page)
    assert told(page)[2] != before[2], "the answer is read out"
    page.wait_for_function("location.hash.includes('strokes=')")
    assert page.evaluate("history.length") == before[0]


def test_the_end_is_what_the_same_drawing_says_without_live_answers(hand: Hand) -> None:
    page = hand.page
    found = []
    for is_lost in (False, True):
        page.locator(".again").click()
        page.evaluate(f"live.isLost = {str(is_lost).lower()}")
        hand.draw(*strokes_of(5))
        page.wait_for_function(f"{STAGE}.current()?.pixelated")
        wait_until_done(page)
        found.append((predictions(page), picture(page)))
        assert said(page)["first"] == [shown_result(page).top(1)[0][0]]
    assert found[0][0] == found[1][0] and is_alike(found[0][1], found[1][1])


def test_an_answer_that_comes_after_the_end_changes_nothing(hand: Hand) -> None:
    page = hand.page
    run = run_of(page)
    page.evaluate("live.isHeld = true")
    hand.draw(DOWN, within=lambda: page.wait_for_function("live.asked > live.answered"))
    other_run(page, run)
    wait_until_done(page)
    ordinary, shown = run_of(page), said(page)
    page.evaluate("live.isHeld = false")
    page.wait_for_function("live.asked === live.answered")
    frames(page, 4)
    assert run_of(page) == ordinary == page.evaluate(f"{STAGE}.current().run") and said(page) == shown


def test_the_eraser_is_answered_while_it_goes(hand: Hand) -> None:
    page = hand.page
    hand.draw(*strokes_of(8))
    wait_until_done(page)
    page.locator("[data-pen=eraser]").evaluate("button => button.click()")
    run, before, ink = run_of(page), said(page), shown_result(page).pixels.sum()
    hand.draw(ACROSS, within=lambda: (other_run(page, run), wait_until_answered(page)))
    wait_until_done(page)
    assert said(page)["numbers"] != before["numbers"] and shown_result(page).pixels.sum() < ink
    page.locator("[data-pen=medium]").evaluate("button => button.click()")


@touched
def test_a_second_finger_takes_the_stroke_back_and_the_next_one_draws(hand: Hand) -> None:
    page = hand.page
    before, shown, run = picture(page), said(page), page.evaluate(f"{STAGE}.current().run")
    places = on_paper(page, DOWN)
    hand.down(places[0])
    hand.along(places[1:])
    other_run(page, run)
    wait_until_answered(page)
    hand.touch("Start", places[-1], (places[-1][0] + 80, places[-1][1]))
    hand.touch("End")
    page.wait_for_function("run => document.querySelector('.stage').dataset.run === run", arg=run)
    assert is_alike(picture(page), before) and said(page) == shown, "the 8 is there again, with its answer"
    hand.draw(DOWN)
    other_run(page, run)
    wait_until_done(page)
    assert not is_alike(picture(page), before)


@touched
def test_a_hand_that_lies_beside_the_pen_draws_nothing(hand: Hand) -> None:
    page = hand.page
    run = run_of(page)
    places, palm = on_paper(page, DOWN), on_paper(page, [(0.9, 0.9)])[0]
    hand.pen("Pressed", places[0])
    hand.pen("Moved", places[1])
    hand.touch("Start", palm)
    for place in places[2:]:
        hand.pen("Moved", place)
        hand.touch("Move", (palm[0] - 1, palm[1]))
    hand.touch("End")
    hand.pen("Released", places[-1])
    other_run(page, run)
    wait_until_done(page)
    page.wait_for_function("location.hash.includes('strokes=')")
    ink = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('strokes')")
    assert len(ink) <= 4 * (2 + 3 * len(DOWN)) / 3 + 2, "one stroke, of the points of the pen"


def test_the_strip_leads_back_to_any_moment_and_returns(hand: Hand) -> None:
    page = hand.page
    seen = []

    def note() -> None:
        wait_until_answered(page)
        seen.append(said(page))

    page.locator(".again").click()
    places = on_paper(page, SEVEN)
    hand.down(places[0])
    for place in places[1:]:
        hand.along([place])
        note()
    hand.up()
    wait_until_done(page)
    now, drawn = said(page), picture(page)
    now["headline"] = now["headline"].removesuffix(" Slide back along the strip below.")  # until one has
    strip = page.locator(".strip")
    box = strip.bounding_box()
    assert box
    places = [(box["x"] + share * box["width"], box["y"] + box["height"] / 2) for share in (0.5, 0.2)]
    page.locator(".strip").scroll_into_view_if_needed()
    hand.down(places[0])
    hand.along(places[1:])
    back = said(page)
    assert back["headline"] != now["headline"] and back["numbers"] != now["numbers"] and back["early"] != now["early"]
    assert not is_alike(picture(page), drawn), "the ink of that moment"
    hand.up()
    page.mouse.move(1, 1)
    assert said(page) == now and is_alike(picture(page), drawn), "its handle returns when it is let go"
    if not hand.has_fingers:
        page.mouse.move(*places[1])
        assert said(page)["numbers"] == back["numbers"], "a mouse leads without a press"
        page.mouse.move(1, 1)
        assert said(page) == now
    strip.focus()
    last = int(strip.get_attribute("aria-valuemax") or 0)
    found = []
    for moment in range(last - 1, -1, -1):
        page.keyboard.press("ArrowLeft")
        found.append(said(page)["numbers"])
        assert strip.get_attribute("aria-valuenow") == str(moment)
    assert all(moment["numbers"] in found for moment in seen[:-1]), "every answer that was there can be had again"
    page.keyboard.press("Escape")
    assert said(page) == now
    page.keyboard.press("Home")
    page.locator(".picture").focus()
    assert said(page) == now, "leaving returns"


def test_squares_are_rubbed_out_under_the_hand_and_the_answer_follows(hand: Hand) -> None:
    page = hand.page
    whole, before, run = shown_result(page), told(page), run_of(page)
    rub(page)
    places = [middle_of(page.locator(".picture"), 1, column, 4, 4) for column in range(4)]
    hand.down(places[0])
    hand.along(places[1:])
    other_run(page, run)
    wait_until_answered(page)
    live, run = said(page), run_of(page)
    assert told(page)[::2] == before[::2]
    hand.up()
    other_run(page, run)
    wait_until_done(page)
    left = whole.drop_patches([(1, column) for column in range(4)])
    assert sorted(page.evaluate(f"{STAGE}.current().dropped")) == [4, 5, 6, 7]
    label, probability = left.top(1)[0]
    assert page.locator(".bars .first .label").inner_text() == label
    assert dict(predictions(page))[left.target(label)] == pytest.approx(probability, abs=1e-5)
    assert said(page)["numbers"] == live["numbers"]
    assert "likely as" in page.locator(".strip-of p").inner_text(), "the rope says what it is"
    np.testing.assert_allclose(page.evaluate(f"Array.from({STAGE}.scene().map)"), left.attention().ravel(), atol=2e-3)


def test_a_drag_keeps_the_kind_of_the_map_and_a_stroke_names_its_own(hand: Hand) -> None:
    page = hand.page
    page.locator("[data-show=class]").evaluate("button => button.click()")
    page.wait_for_function(f"{STAGE}.scene().method.classSpecific && {STAGE}.scene().map")
    rub(page)
    run, places = run_of(page), [middle_of(page.locator(".picture"), 1, column, 4, 4) for column in (0, 1)]
    words = [page.locator(each) for each in (".caption", ".scale", "[aria-pressed=true][data-show]")]
    before = [each.inner_text() for each in words]
    hand.down(places[0])
    hand.along(places[1:])
    other_run(page, run)
    wait_until_answered(page)
    during, is_marked = [each.inner_text() for each in words], page.locator(".stage.map-before").count()
    hand.up()
    assert during == before and is_marked, "the map of the picture before stays, and is faint"
    wait_until_done(page)
    assert page.locator(".stage.map-before").count() == 0 and words[0].inner_text() != before[0]
    page.locator(".back").click()
    page.wait_for_function(f"{STAGE}.current().dropped.length === 0")
    page.locator("[data-mode=draw]").click()
    run, places = run_of(page), on_paper(page, DOWN)
    hand.down(places[0])
    hand.along(places[1:])
    other_run(page, run)
    wait_until_answered(page)
    during = words[2].inner_text()
    hand.up()
    assert during == "Where it looks", "of which the colours are"
    page.locator("[data-show=attention]").evaluate("button => button.click()")


def test_undo_takes_back_the_last_act_of_its_verb_alone(hand: Hand) -> None:
    page = hand.page
    page.locator(".again").click()
    hand.draw(*strokes_of(4))
    wait_until_done(page)
    drawn, inks = picture(page), page.evaluate(f"{STAGE}.current().source.digit")
    places = [page.locator(button).bounding_box() for button in (".undo", ".again")]
    rub(page)
    for row in (0, 1):
        place = middle_of(page.locator(".picture"), row, 1, 4, 4)
        page.touchscreen.tap(*place) if hand.has_fingers else page.mouse.click(*place)
        page.wait_for_function(f"count => {STAGE}.current().dropped.length === count", arg=row + 1)
    page.keyboard.press("d")
    page.wait_for_selector(".stage[data-verb=draw]")
    assert not is_alike(picture(page), drawn), "squares are out on the paper, too"
    assert page.locator(".back").is_visible(), "they can be had back here"
    assert page.locator(".strip-of").inner_text() == "2 squares are out", "what would be back"
    assert [page.locator(button).bounding_box() for button in (".undo", ".again")] == places
    page.keyboard.press("r")
    for count in (1, 0):
        page.keyboard.press("Control+z")
        page.wait_for_function(f"count => {STAGE}.current().dropped.length === count", arg=count)
    assert page.locator(".undo").is_disabled()
    page.keyboard.press("Control+z")
    page.keyboard.press("d")
    wait_until_done(page)
    assert is_alike(picture(page), drawn), "what was drawn is not the work of this verb"
    page.keyboard.press("r")
    hand.down(middle_of(page.locator(".picture"), 0, 0, 4, 4))
    hand.along([middle_of(page.locator(".picture"), 0, column, 4, 4) for column in range(3)])
    hand.up()
    page.wait_for_function(f"{STAGE}.current().dropped.length === 3")
    page.locator(".back").click()
    page.wait_for_function(f"{STAGE}.current().dropped.length === 0")
    assert page.locator(".back").is_disabled()
    page.keyboard.press("l")
    for button in (".undo", ".back"):
        page.locator(button).wait_for(state="hidden")
    page.keyboard.press("Control+z")
    page.keyboard.press("d")
    wait_until_done(page)
    assert is_alike(picture(page), drawn) and page.evaluate(f"{STAGE}.current().source.digit") == inks
    page.keyboard.press("Control+z")
    page.wait_for_function(f"inks => ![undefined, inks].includes({STAGE}.current()?.source.digit)", arg=inks)
    assert not is_alike(picture(page), drawn)


def test_a_key_presses_its_verb_wherever_one_is_but_in_a_field(hand: Hand) -> None:
    page = hand.page
    page.locator(".picture").focus()
    page.keyboard.press("ArrowUp")
    page.locator(".view > .nib").wait_for()
    page.keyboard.press("r")
    page.locator(".view > .nib").wait_for(state="hidden")
    for key, verb in (("r", "rub"), ("L", "look"), ("d", "draw"), ("R", "rub")):
        page.keyboard.press(key)
        page.wait_for_selector(f".stage[data-verb={verb}] [data-mode={verb}][aria-pressed=true]")
    if page.locator("#preset").is_visible():
        page.locator("#preset").focus()
        page.keyboard.press("d")
        frames(page)
        assert page.locator(".stage").get_attribute("data-verb") == "rub"


def test_a_name_that_is_typed_below_an_unsure_answer_goes_into_its_field(hand: Hand) -> None:
    page = hand.page
    page.locator(".again").click()
    hand.draw([(0.2, 0.2), (0.8, 0.8)], [(0.8, 0.2), (0.2, 0.8)])
    wait_until_done(page)
    field = page.locator("[data-teach=name]")
    page.wait_for_selector(".ask[data-kind=open]")
    page.keyboard.type("rald")
    assert field.input_value() == "rald" and page.locator(".stage").get_attribute("data-verb") == "draw"
    field.fill("")
    page.locator("[data-mode=draw]").focus()
    page.keyboard.press("Tab")  # now the keyboard is what one works with
    page.keyboard.press("l")
    page.wait_for_selector(".stage[data-verb=look]")
    assert field.input_value() == ""


@pytest.fixture
def moving(window: Callable[..., Page]) -> Callable[..., Page]:
    """Opens an address for visitors who like motion, with time that passes as the test says."""

    def opened(address: str, size: str) -> Page:
        page = window(SIZES[size], KINDS[size])
        page.emulate_media(reduced_motion="no-preference")
        for script in (NETWORK, CLOCK):
            page.add_init_script(f"({script})()")
        page.goto(address)
        page.wait_for_selector(".stage[data-ready=true]")
        return page

    return opened


def wait_for(page: Page, expression: str) -> None:
    """Waits for a state while no frame is painted."""
    page.wait_for_function(expression, polling=50)


@pytest.mark.parametrize("size", SIZES)
def test_a_pencil_writes_an_8_with_live_answers_and_then_it_is_your_turn(
    moving: Callable[..., Page], address: str, size: str
) -> None:
    page = moving(address, size)
    wait_for(page, "isHeld()")
    before = told(page)
    page.evaluate(WATCH, FIXED)
    answers = []
    for milliseconds in (1200, 500):
        page.evaluate("milliseconds => pass(milliseconds)", milliseconds)
        wait_for(page, "live.asked > 0 && live.asked === live.answered")
        wait_for(page, "document.querySelector('.stage').dataset.run === live.run")
        page.evaluate("pass(32)")
        answers.append(page.evaluate(SAID))
    assert answers[0]["numbers"] != answers[1]["numbers"], "the network's real answers"
    assert told(page) == before and page.locator(".pencil").is_visible()
    page.evaluate("pass(1200)")
    wait_for(page, "document.querySelector('.pencil').style.opacity === '0'")
    page.evaluate("pass(1200)")
    assert page.locator(".next-act").inner_text() == "Now you: draw a digit."
    assert "this 8" in page.locator(".mechanism").inner_text(), "it is nobody's"
    assert run_of(page) == page.evaluate(f"{STAGE}.current().run") and told(page) == before
    assert page.evaluate("[...window.moved]") == []
    # A change of verb glides, from the paper to what the network gets, and nothing else moves.
    paper = painted(page)
    page.locator("[data-mode=rub]").evaluate("button => button.click()")
    shown = [paper]
    for _ in range(5):
        page.evaluate("pass(96)")
        shown.append(painted(page))
    moves = [not is_alike(one, other) for one, other in pairwise(shown)]
    assert moves == [True, True, True, moves[3], False], "on its way, and there after 300 ms"
    assert page.evaluate("[...window.moved]") == []
    page.keyboard.press("d")
    page.evaluate("pass(480)")
    assert is_alike(painted(page), paper)
    page.reload()
    page.wait_for_selector(".stage[data-ready=true]")
    assert not page.evaluate("isHeld()"), "no pencil on a reload"


@pytest.mark.parametrize("way", ["press", "key"])
def test_whatever_is_pressed_ends_the_opening(moving: Callable[..., Page], address: str, way: str) -> None:
    page = moving(address, "laptop")
    wait_for(page, "isHeld()")
    page.evaluate("pass(1200)")
    run = page.evaluate(f"{STAGE}.current().run")
    if way == "key":
        page.keyboard.press("Shift")
        page.evaluate("pass(48)")
        assert run_of(page) == run and page.locator(".next-act").inner_text() == ""
    else:
        for stroke in strokes_of(4):
            press_along(page, on_paper(page, stroke))
            page.mouse.up()
        wait_for(page, f"{STAGE}.current().predictions[0].name === '4'")
        page.evaluate("pass(48)")
        assert "your 4" in page.locator(".mechanism").inner_text()
    assert page.locator(".pencil").evaluate("pencil => pencil.style.opacity") == "0"


def test_after_a_link_nothing_is_written(moving: Callable[..., Page], address: str, screen: Hand) -> None:
    page = moving(f"{address}#digit=8", "laptop")
    page.wait_for_selector(".stage[data-state=done]")
    assert not page.evaluate("isHeld()") and page.locator(".pencil").is_hidden()
    assert screen.page.locator(".pencil").is_hidden(), "nor with reduced motion"
