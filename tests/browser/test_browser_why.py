"""Why one class rather than another, how few patches are enough, and where a map is strong, against the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from .choosing import method_button
from .test_browser_explanations import STAGE, drop, map_when, open_page, shown_result

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


VISIBLE = """(canvas, [rows, columns]) => Array.from({length: rows * columns}, (_, patch) => {
  const [row, column] = [Math.floor(patch / columns), patch % columns];
  const at = [(column + 0.5) * canvas.width / columns, (row + 0.5) * canvas.height / rows].map(Math.round);
  return canvas.getContext("2d").getImageData(...at, 1, 1).data[3] > 0;
})"""
"""Whether there is anything in the middle of each patch."""


def percentage(probability: float) -> str:
    return f"{100 * probability:.1f}\u00a0%"


def test_a_second_class_is_chosen_shown_tested_linked_and_left_again(quick: Page) -> None:
    result = shown_result(quick)
    (first, _), (second, _), *_, (last, _) = result.top(10)
    method_button(quick, "Libra FullGrad+").check()
    rather = quick.get_by_label("Rather than", exact=True)
    rather.select_option(label=f"rather than {last}")
    found = map_when(quick, f"for {first} rather than {last}, blue against it")
    np.testing.assert_allclose(found, result.heatmap("libra_fullgrad", first, against=last), atol=1e-5)
    quick.locator(".faithfulness .status", has_text=f"{first} rather than {last}, the difference").wait_for()
    quick.get_by_role("button", name="Test this heatmap").click()
    quick.get_by_role("button", name="Tested").wait_for()
    areas = result.faithfulness("libra_fullgrad", label=first, against=last)
    assert f"{areas.insertion_area:.2f} against {areas.random_insertion_area:.2f}" in quick.locator(
        ".measurements"
    ).inner_text().replace("−", "-")
    assert "%" not in quick.locator(".charts figure").first.inner_text(), "a difference of scores is no percentage"
    quick.locator(".bars button").nth(1).click()
    map_when(quick, f"for {second} rather than {last}")
    rather.select_option(label=f"rather than {first}")
    map_when(quick, f"for {second} rather than {first}")
    index = f"against={result.labels.index(first)}"
    quick.wait_for_function("part => location.hash.includes(part)", arg=index)
    address_of_two = quick.url
    quick.locator(".bars button").first.click()  # a class is not compared with itself: they change places
    swapped = map_when(quick, f"for {first} rather than {second}")
    np.testing.assert_allclose(swapped, result.heatmap("libra_fullgrad", first, against=second), atol=1e-5)
    quick.go_back()
    map_when(quick, f"for {second} rather than {first}")
    rather.select_option(label="rather than …")
    quick.wait_for_function("!document.querySelector('.look .subject').innerText.includes('rather than')")
    quick.wait_for_function("!location.hash.includes('against')")
    quick.goto("about:blank")
    open_page(quick, address_of_two)
    quick.locator(".look .subject", has_text=f"for {second} rather than {first}").wait_for()
    overlap = quick.evaluate("""() => {
      const [subject, menu] = [".subject", ".against"].map((name) => document.querySelector(`.caption ${name}`));
      subject.append(" a long name".repeat(20));
      return subject.getBoundingClientRect().right - menu.getBoundingClientRect().left;
    }""")
    assert overlap <= 0, "a long caption ends before the menu"
    assert (
        quick.get_by_label("Rather than", exact=True).locator("option:checked").inner_text() == f"rather than {first}"
    )


def test_the_patches_that_are_enough_and_needed_are_those_of_the_package(quick: Page) -> None:
    quick.get_by_role("button", name="Remove patches").click()
    drop(quick, [(0, 0)], shown_result(quick).grid)
    result = shown_result(quick)
    label = result.top(1)[0][0]
    quick.get_by_role("button", name="Find the patches").click()
    quick.get_by_role("button", name="Found").wait_for(timeout=120_000)
    captions = quick.locator(".sets figcaption").all_inner_texts()
    enough, needed = result.enough(), result.needed()
    assert enough is not None and needed is not None
    assert captions[0].startswith(
        f"{len(enough.patches)} of 15 patches are enough, the fewest found: {percentage(enough.probability)}"
    )
    left = result.drop_patches(needed.patches)
    assert captions[1].startswith(f"Without these {len(needed.patches)} the model says {left.top(1)[0][0]}: ")
    taken = list(enough.patches)
    for caption in captions[2:]:
        other = result.enough(without=taken)
        if other is None:
            assert caption.startswith("There is no other way")
            break
        assert caption.startswith("Another way to see it") and percentage(other.probability) in caption
        taken += other.patches
    every = set(np.ndindex(result.grid))
    for place, kept in enumerate((set(enough.patches), every - set(needed.patches) - set(result.dropped))):
        shown = quick.locator(".sets canvas").nth(place).evaluate(VISIBLE, list(result.grid))
        assert {divmod(patch, result.grid[1]) for patch in np.flatnonzero(shown).tolist()} == kept
    row, _ = min(enough.patches)
    assert f"row {row + 1}, column" in (quick.locator(".sets canvas").first.get_attribute("aria-label") or "")
    quick.locator(".bars button").nth(1).click()  # another class has other patches
    quick.get_by_role("button", name="Find the patches").wait_for()
    assert quick.locator(".sets figure").count() == 0
    quick.locator(".bars button").first.click()
    quick.get_by_role("button", name="Found").wait_for()
    assert quick.locator(".sets figcaption").all_inner_texts() == captions and label in captions[0]


def test_an_improbable_class_is_tested_on_its_logit_and_no_patches_are_enough_for_it(quick: Page) -> None:
    result = shown_result(quick)
    method_button(quick, "Libra FullGrad+").check()
    quick.locator(".bars button").nth(2).click()
    label, probability = result.top(3)[2]
    assert probability < 0.1
    map_when(quick, f"for {label},")
    about = quick.locator(".faithfulness .status").inner_text()
    assert f"the score of {label}, its logit, is compared" in about and "its probability is below 10\u00a0%" in about
    quick.get_by_role("button", name="Test this heatmap").click()
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
    assert quick.get_by_role("button", name="Find the patches").is_disabled()
    assert "too little to keep or to lose" in quick.locator(".smallest-sets .status").inner_text()
    method_button(quick, "Attention").check()  # about no class, so nothing shows which one was chosen
    shown = quick.locator(".smallest-sets .status", has_text=f"enough for {result.top(1)[0][0]} to keep")
    shown.wait_for()
    assert quick.get_by_role("button", name="Find the patches").is_enabled()


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
    open_page(page, f"{address}#tab=digits&model=digits-small&patch_size=2&digit=7")
    page.wait_for_function(f"{STAGE}.scene().map?.length === 196")
    assert page.evaluate(DIFFERENCES) == 0, "a square for each of 196 patches"
    page.get_by_role("button", name="Smooth").click()
    page.wait_for_function("location.hash.includes('smooth=yes')")
    assert page.get_by_role("button", name="Smooth").get_attribute("aria-pressed") == "true"
    assert page.evaluate(DIFFERENCES) > 100


def test_a_search_can_be_cancelled_and_begun_again(opened: Page) -> None:
    card = opened.locator(".smallest-sets")
    held: list[Route] = []  # so that the search cannot end before it is cancelled
    requests = "**/vit_demo/request"
    opened.route(
        requests,
        lambda route: held.append(route) if "smallest_set" in (route.request.post_data or "") else route.continue_(),
    )
    card.get_by_role("button", name="Find the patches").click()
    card.get_by_role("button", name="Cancel").click()
    card.get_by_role("button", name="Find the patches").wait_for()
    for route in held:
        route.continue_()
    opened.unroute(requests)
    card.get_by_role("button", name="Find the patches").click()
    card.get_by_role("button", name="Found").wait_for(timeout=120_000)
    assert card.locator("figure").count() >= 3


def test_the_class_that_is_explained_stays_while_patches_are_removed(page: Page, address: str) -> None:
    open_page(page, f"{address}#digit=8&patch_size=7&method=libra_fullgrad&against=3")
    whole = shown_result(page)
    map_when(page, "for 8 rather than 3")
    page.get_by_role("button", name="Remove patches").click()
    drop(page, [(1, 1), (2, 1)], whole.grid)
    left = whole.drop_patches([(1, 1), (2, 1)])
    assert left.top(1)[0][0] == "3", "the prediction is another one now"
    expected = left.heatmap("libra_fullgrad", "8", against="3")
    np.testing.assert_allclose(map_when(page, "for 8 rather than 3"), expected, atol=1e-5)


def test_a_photo_is_grey_where_the_map_has_no_value(page: Page, address: str) -> None:
    channels = """() => {
        const { __stage: stage } = document.querySelector(".stage");
        const canvas = document.querySelector(".look .picture");
        const { map, result } = stage.scene();
        const patch = map.reduce((best, value, i) => (Math.abs(value) < Math.abs(map[best]) ? i : best), 0);
        const [width, height] = [canvas.width / result.columns, canvas.height / result.rows];
        const [x, y] = [patch % result.columns, Math.floor(patch / result.columns)];
        const { data } = canvas.getContext("2d").getImageData((x + 0.3) * width, (y + 0.3) * height, 6, 6);
        return Math.max(...data.map((value, i) => (i % 4 ? 0 : Math.abs(value - data[i + 2]))));
    }"""
    open_page(page, f"{address}#tab=photos&photo=goldfish&method=libra_fullgrad")
    map_when(page, "Libra")
    assert page.evaluate(channels) <= 12


def test_the_sentence_under_a_map_is_true_of_its_numbers_and_is_read_out(opened: Page) -> None:
    method_button(opened, "Libra FullGrad+").check()
    values = map_when(opened, "Libra FullGrad+")
    sentence = opened.locator(".look .value").inner_text()
    row, column = (int(place) + 1 for place in np.unravel_index(values.argmax(), values.shape))
    start = f"Strongest: row {row}, column {column}, {values.max():.2f}; "
    assert sentence.startswith(start)
    count = int(sentence.removeprefix(start).split()[0])
    rest = np.sort(values.clip(0).ravel())[::-1][1:]
    assert rest[: count - 1].sum() < 0.5 * rest.sum() <= rest[:count].sum() + 1e-5 and count <= values.size / 4
    assert opened.evaluate(f"{STAGE}.scene().map.length") == values.size
    label = opened.locator(".picture").get_attribute("aria-label") or ""
    assert f"{sentence}." in label and label.startswith("The picture under its heatmap: Red for ")
    opened.locator(".picture").hover()
    opened.wait_for_function("text => document.querySelector('.look .value').innerText !== text", arg=sentence)


def test_a_method_links_to_its_row_of_the_board(opened: Page) -> None:
    method_button(opened, "Relevance").check()
    opened.get_by_text("How is this computed?").click()
    with opened.context.expect_page() as linked:
        opened.get_by_role("link", name="How faithful it is").click()
    board = linked.value
    board.wait_for_load_state()
    row = board.locator(":target")
    assert row.locator("td").first.inner_text() == "relevance" and "±" in row.inner_text()
    board.close()
