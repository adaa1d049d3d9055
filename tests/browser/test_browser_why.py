"""Why one class rather than another, the search for the fewest squares, and where a map is strong."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from .choosing import (
    STAGE,
    Page,
    Route,
    bar,
    choose_method,
    close_settings,
    load_steps,
    open_anew,
    open_page,
    rub,
    settings,
    shown_result,
    wait_until,
)
from .test_browser_explanations import drop, map_when


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


def test_a_second_class_is_chosen_shown_tested_linked_and_left_again(quick: Page) -> None:
    result = shown_result(quick)
    (first, _), (second, _), *_, (last, _) = result.top(10)

    def rather(label: str) -> None:
        settings(quick).get_by_label("Compared with", exact=True).select_option(label=label)
        close_settings(quick)

    rather(last)
    found = map_when(quick, f"for {first} rather than {last}")
    np.testing.assert_allclose(found, result.heatmap("libra_fullgrad", first, against=last), atol=1e-5)
    quick.locator(".faithfulness .status", has_text="compares the difference of both scores").wait_for()
    load_steps(quick)
    quick.get_by_role("button", name="Test these colours").click()
    quick.get_by_role("button", name="Tested").wait_for()
    areas = result.faithfulness("libra_fullgrad", label=first, against=last)
    assert f"{areas.insertion_area:.2f} against {areas.random_insertion_area:.2f}" in quick.locator(
        ".measurements"
    ).inner_text().replace("−", "-")
    assert "%" not in quick.locator(".findings figure").first.inner_text(), "a difference of scores is no percentage"
    bar(quick, second).click()
    map_when(quick, f"for {second} rather than {last}")
    rather(first)
    map_when(quick, f"for {second} rather than {first}")
    index = f"against={result.labels.index(first)}"
    quick.wait_for_function("part => location.hash.includes(part)", arg=index)
    address_of_two = quick.url
    bar(quick, first).click()  # a class is not compared with itself: they change places
    swapped = map_when(quick, f"for {first} rather than {second}")
    np.testing.assert_allclose(swapped, result.heatmap("libra_fullgrad", first, against=second), atol=1e-5)
    quick.go_back()
    map_when(quick, f"for {second} rather than {first}")
    rather("a class: why not that?")
    quick.wait_for_function("!document.querySelector('.subject').innerText.includes('rather than')")
    quick.wait_for_function("!location.hash.includes('against')")
    quick.goto("about:blank")
    open_page(quick, address_of_two)
    quick.locator(".subject", has_text=f"for {second} rather than {first}").wait_for()
    other = quick.locator(".against option:checked")
    assert other.text_content() == first and "rather than" in quick.locator(".sentence").inner_text()


def test_an_improbable_class_is_tested_on_its_logit(quick: Page) -> None:
    result = shown_result(quick)
    choose_method(quick, "Libra FullGrad+")
    label, probability = result.top(3)[2]
    bar(quick, label).click()
    assert probability < 0.1
    map_when(quick, f"for {label} ")
    about = quick.locator(".faithfulness .status").inner_text()
    assert f"compares the score of {label}, because its probability is below 10\u00a0%, with" in about
    load_steps(quick)
    quick.get_by_role("button", name="Test these colours").click()
    quick.get_by_role("button", name="Tested").wait_for()
    areas = result.faithfulness("libra_fullgrad", label=label)
    assert areas.deletion[0] == pytest.approx(result.logits[result.target(label)], abs=1e-4), (
        "the curves are those of the logit"
    )
    words = quick.locator(".measurements").inner_text().replace("−", "-")
    assert f"{areas.insertion_area:.2f} against {areas.random_insertion_area:.2f}" in words
    verdict = quick.locator(".conclusion").inner_text()
    gains = np.trapezoid(areas.random_insertion, areas.fractions, axis=1)
    losses = np.trapezoid(areas.random_deletion, areas.fractions, axis=1)
    beats = areas.insertion_area > gains.max() + 0.005 and areas.deletion_area < losses.min() - 0.005
    assert verdict.startswith("Yes") == beats and "prediction" not in verdict and "%" not in words


DIFFERENCES = """() => {
  const canvas = document.querySelector(".picture");
  const size = canvas.width / 28;
  const context = canvas.getContext("2d");
  const at = (x, y) => [...context.getImageData(Math.round(x * size), Math.round(y * size), 1, 1).data].join();
  const pixels = Array.from({length: 784}, (_, i) => [i % 28, Math.floor(i / 28)]);
  return pixels.filter(([x, y]) => at(x + 0.25, y + 0.5) !== at(x + 0.75, y + 0.5)).length;
}"""
"""In how many pixels of a digit the picture under its heatmap has two colours."""


def test_a_map_is_smoothed_only_on_request_and_the_link_holds_it(page: Page, address: str) -> None:
    open_anew(page, f"{address}#tab=digits&model=digits-small&patch_size=2&digit=7")
    page.wait_for_function(f"{STAGE}.scene().map?.length === 196")
    rub(page)  # on the paper of Draw the squares lie where the ink is
    page.wait_for_selector(".stage[data-verb=rub]")
    assert page.evaluate(DIFFERENCES) == 0, "a square for each of 196 patches"
    settings(page).get_by_role("radio", name="blended").check()
    page.wait_for_function("location.hash.includes('smooth=yes')")
    assert page.evaluate(DIFFERENCES) > 100


def test_a_search_shows_what_it_tries_can_be_cancelled_and_begun_again(quick: Page) -> None:
    held: list[Route] = []  # so that the search cannot end before it is cancelled
    told: list[dict[str, object]] = []
    requests = "**/vit_demo/request"

    def answer(route: Route) -> None:
        if "smallest_set" not in (route.request.post_data or ""):
            route.continue_()
        elif told:
            route.fulfill(json=told.pop())
        else:
            held.append(route)

    quick.route(requests, answer)
    rub(quick)
    fewest = quick.locator(".fewest")
    painted = "document.querySelector('.picture').toDataURL()"
    quick.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    before = quick.evaluate(painted)
    for motion in ("no-preference", "reduce"):
        quick.emulate_media(reduced_motion=motion)
        told.append({"done": 1, "total": 4, "tried": [5, 6]})
        fewest.click()
        fewest.get_by_text("Cancel (25\u00a0%)").wait_for()
        if motion == "no-preference":
            quick.wait_for_function(f"before => {painted} !== before", arg=before)
        quick.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert (quick.evaluate(painted) == before) is (motion == "reduce"), motion
        assert quick.evaluate(f"{STAGE}.choices.dropped") is None, "nothing is rubbed out"
        fewest.click()
        quick.get_by_role("button", name="Find the fewest").wait_for()
        quick.wait_for_function(f"before => {painted} === before", arg=before)
    for route in held:
        route.continue_()
    held.clear()
    quick.unroute(requests)
    needed = shown_result(quick).needed()
    assert needed is not None
    fewest.click()
    over = re.compile(r"^(No fewer are known|Fewer may do)\.$")  # the fewest so far are rubbed out while it goes on
    quick.locator(".headline .next-act", has_text=over).wait_for()
    assert quick.evaluate(f"{STAGE}.current().dropped") == sorted(4 * row + col for row, col in needed.patches)


def test_the_fewest_so_far_are_rubbed_out_while_it_looks_for_fewer_and_taken_back_as_one_act(quick: Page) -> None:
    held: list[Route] = []
    sets = ([0, 1, 4], [0, 1], [2])
    quick.route("**/vit_demo/request", lambda route: answer(route))

    def answer(route: Route) -> None:
        if "smallest_set" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    rub(quick)
    fewest, headline = quick.locator(".fewest"), quick.locator(".headline")
    fewest.click()
    headline.get_by_text("Looking for the fewest squares without which it says something else …").wait_for()
    for squares in sets:
        wait_until(quick, lambda: bool(held))
        held.pop().fulfill(json={"done": 1, "total": 4, "tried": [5], "fewest": squares})
        dropped = ",".join(map(str, squares))
        quick.wait_for_function(f"dropped => {STAGE}.current().dropped.join() === dropped", arg=dropped)
        said = f"The fewest so far: {len(squares)}. Looking for fewer …" if len(squares) > 1 else ""
        quick.wait_for_function("text => document.querySelector('.next-act').textContent === text", arg=said)
        assert "You made it" not in headline.inner_text(), "it was the search"
    fewest.click()
    quick.locator(".undo").click()
    quick.wait_for_function(f"{STAGE}.current().dropped.length === 0")
    assert quick.locator(".undo").is_disabled(), "a search is one act"
    quick.unroute_all(behavior="ignoreErrors")


def test_the_class_that_is_explained_stays_while_patches_are_removed(page: Page, address: str) -> None:
    open_anew(page, f"{address}#digit=8&patch_size=7&method=libra_fullgrad&against=3")
    whole = shown_result(page)
    map_when(page, "for 8 rather than 3")
    drop(page, [(1, 1), (2, 1)], whole.grid)
    left = whole.drop_patches([(1, 1), (2, 1)])
    assert left.top(1)[0][0] == "3", "the prediction is another one now"
    expected = left.heatmap("libra_fullgrad", "8", against="3")
    np.testing.assert_allclose(map_when(page, "for 8 rather than 3"), expected, atol=1e-5)


def test_a_photo_loses_most_of_its_colours_below_a_map(page: Page, address: str) -> None:
    channels = """() => {
        const { __stage: stage } = document.querySelector(".stage");
        const canvas = document.querySelector(".picture");
        const { map, result } = stage.scene();
        const patch = map.reduce((best, value, i) => (Math.abs(value) < Math.abs(map[best]) ? i : best), 0);
        const [width, height] = [canvas.width / result.columns, canvas.height / result.rows];
        const [x, y] = [patch % result.columns, Math.floor(patch / result.columns)];
        const { data } = canvas.getContext("2d").getImageData((x + 0.3) * width, (y + 0.3) * height, 6, 6);
        return Math.max(...data.map((value, i) => (i % 4 ? 0 : Math.abs(value - data[i + 2]))));
    }"""
    open_anew(page, f"{address}#tab=photos&photo=goldfish&method=libra_fullgrad")
    map_when(page, "Libra")
    tinted = page.evaluate(channels)
    page.locator("[data-show=plain]").click()
    page.locator("[data-show=plain][aria-pressed=true]").wait_for()
    page.evaluate("new Promise(requestAnimationFrame)")
    assert tinted < 0.5 * page.evaluate(channels)


def test_the_sentence_under_a_map_is_true_and_read_out_and_its_method_links_to_its_row_of_the_board(
    opened: Page,
) -> None:
    rub(opened)
    choose_method(opened, "Libra FullGrad+")
    values = map_when(opened, "Libra FullGrad+")
    sentence = opened.locator(".value").inner_text()
    row, column = (int(place) + 1 for place in np.unravel_index(values.argmax(), values.shape))
    assert sentence.startswith(f"Strongest: row {row}, column {column}, {values.max():.2f}")
    assert ("against it: " in sentence) == (-values.min() > values.max() / 3)
    assert opened.evaluate(f"{STAGE}.scene().map.length") == values.size
    label = opened.locator(".picture").get_attribute("aria-label") or ""
    assert f"{sentence}." in label and label.startswith("The picture: What speaks for ")
    opened.locator(".picture").hover()
    opened.wait_for_function("text => document.querySelector('.value').innerText !== text", arg=sentence)

    choose_method(opened, "Relevance")
    settings(opened).get_by_text("How is this computed?").click()
    with opened.context.expect_page() as linked:
        opened.get_by_role("link", name="How faithful it is").click()
    board = linked.value
    board.wait_for_load_state()
    row = board.locator(":target")
    assert row.locator("td").first.inner_text() == "relevance" and "±" in row.inner_text()
    board.close()
