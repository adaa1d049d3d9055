"""The page against the package: every map, any class, dropped patches, tests of a heatmap, the logit lens."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vit_demo.methods import METHODS

from .choosing import (
    STAGE,
    Page,
    Route,
    bar,
    choose_method,
    load_steps,
    method_button,
    middle_of,
    open_page,
    rub,
    settings,
    shown_result,
)

MAP = f"""text => {{
    const {{ map, result }} = {STAGE}.scene();
    const isThere = map && result === {STAGE}.current() && document.querySelector(".subject").innerText.includes(text);
    return isThere && {{ values: Array.from(map), shape: [result.rows, result.columns] }};
}}"""


@pytest.fixture(scope="module")
def page(lasting_window: Callable[..., Page]) -> Page:
    """One that all tests of this file share."""
    return lasting_window()


def map_when(page: Page, subject: str) -> np.ndarray:
    """The map of the result on the stage, once it is there and its caption holds the subject."""
    found = page.wait_for_function(MAP, arg=subject).json_value()
    return np.array(found["values"]).reshape(found["shape"])


def drop(page: Page, patches: list[tuple[int, int]], grid: tuple[int, int]) -> None:
    rub(page)
    for row, col in patches:
        page.mouse.click(*middle_of(page.locator(".picture"), row, col, *grid))
    page.wait_for_function(f"count => {STAGE}.current().dropped.length === count", arg=len(patches))


def test_every_method_shows_the_packages_numbers(quick: Page):
    result = shown_result(quick)
    label = result.top(1)[0][0]
    for name, subject, values in (
        ("Norm-based", "norm-based", result.heatmap("norm_attention")),
        ("Relevance", f"for {label} · relevance", result.relevance()),
        ("AttnLRP", f"for {label} · AttnLRP", result.heatmap("attnlrp")),
        ("Occlusion", f"for {label} · each square", result.heatmap("occlusion")),
        ("Local surrogate", f"for {label} · hundreds", result.heatmap("local_surrogate")),
    ):
        choose_method(quick, name)
        np.testing.assert_allclose(map_when(quick, subject), values, rtol=1e-4, atol=1e-6)
    other = result.top(2)[1][0]
    second = bar(quick, other)
    second.click()
    np.testing.assert_allclose(
        map_when(quick, f"for {other} · hundreds"), result.heatmap("local_surrogate", other), atol=1e-6
    )
    assert second.get_attribute("aria-pressed") == "true"


def test_dropped_patches_change_the_prediction_and_every_map(opened: Page):
    whole = shown_result(opened)
    dropped = [(2, 2), (2, 3), (6, 2)]
    drop(opened, dropped, whole.grid)
    left = whole.drop_patches(dropped)
    label, probability = left.top(1)[0]
    assert opened.locator(".stage").get_attribute("data-top1") == label
    assert bar(opened, label).locator(".number").inner_text() == f"{100 * probability:.1f}\u00a0%"
    attention = map_when(opened, "")
    np.testing.assert_allclose(attention, left.attention(), atol=2e-3)
    assert all(attention[patch] == 0 for patch in dropped)  # out of the mode, without the patches
    opened.wait_for_function(f"{STAGE}.current().traces.has(5)")
    for query, direction in (((3, 3), "from"), ((6, 3), "to")):
        row, col = query
        view: dict[str, Any] = {"query": row * whole.grid[1] + col, "direction": direction}
        values = opened.evaluate(f"view => Array.from({STAGE}.map(view))", view)
        wanted = left.attention(query=query, direction=direction)  # type: ignore[arg-type]
        np.testing.assert_allclose(np.reshape(values, whole.grid), wanted, atol=2e-3)
    choose_method(opened, "Rollout")
    np.testing.assert_allclose(map_when(opened, "rollout"), left.rollout(), atol=1e-3)
    choose_method(opened, "Relevance")
    np.testing.assert_allclose(map_when(opened, f"for {label}"), left.relevance(), atol=1e-6)
    opened.locator(".back").click()
    opened.wait_for_function(f"{STAGE}.current().dropped.length === 0")
    assert shown_result(opened).dropped == whole.dropped


def test_faithfulness_and_randomization_are_those_of_the_package(quick: Page):
    result = shown_result(quick)
    choose_method(quick, "AttnLRP")
    map_when(quick, "AttnLRP")
    load_steps(quick)
    quick.get_by_role("button", name="Test these colours").click()
    quick.locator(".randomization", has_text="random weights").wait_for()
    found = result.faithfulness("attnlrp")
    text = quick.locator(".measurements").inner_text()
    assert f"{found.deletion_area:.2f} against {found.random_deletion_area:.2f} (lower is better)" in text
    assert f"{found.insertion_area:.2f} against {found.random_insertion_area:.2f} (higher is better)" in text
    correlation = f"{result.randomization('attnlrp')[-1]:.2f}".replace("-", "−")
    assert f"correlation {correlation}; 1: the same" in quick.locator(".randomization").inner_text()
    assert quick.locator(".findings svg").count() == 3
    correlations = quick.locator(".findings figure").nth(2).inner_text()
    assert "1.00" in correlations and "%" not in correlations, "a correlation is no percentage"
    choose_method(quick, "Rollout")
    quick.get_by_role("button", name="Test these colours").wait_for()
    assert quick.locator(".finding").count() == 0, "a verdict is about its own heatmap"
    choose_method(quick, "AttnLRP")
    quick.locator(".measurements", has_text=f"{found.deletion_area:.2f} against").wait_for()
    quick.get_by_role("button", name="Again with blur").click()
    quick.get_by_role("button", name="Again with blur").wait_for(state="hidden")
    quick.get_by_role("button", name="Tested").wait_for()
    columns = quick.locator(".finding", has=quick.locator(".measurements"))
    assert columns.get_by_role("heading").all_inner_texts() == ["Masked by the mean colour", "Masked by a blur"]
    for column, areas in enumerate((found, result.faithfulness("attnlrp", baseline="blur"))):
        words = columns.nth(column).locator(".measurements").inner_text()
        assert f"area {areas.deletion_area:.2f} against {areas.random_deletion_area:.2f}" in words, "side by side"


def test_a_map_about_no_class_is_tested_on_the_class_that_is_shown(quick: Page):
    result = shown_result(quick)
    bar(quick, result.top(2)[1][0]).click()
    map_when(quick, f"for {result.top(2)[1][0]} ")
    choose_method(quick, "Attention")
    quick.locator(".faithfulness .status", has_text=f"the probability of {result.top(1)[0][0]} with").wait_for()
    load_steps(quick)
    quick.get_by_role("button", name="Test these colours").click()
    quick.get_by_role("button", name="Tested").wait_for()
    found = result.faithfulness("attention")
    assert f"{found.deletion_area:.2f} against" in quick.locator(".measurements").inner_text()
    assert quick.locator(".finding figcaption").first.inner_text() == f"{result.top(1)[0][0]} while squares are masked"


def test_every_method_is_compared_in_one_table(quick: Page):
    result = shown_result(quick)
    bar(quick, "4").click()
    quick.locator(".subject", has_text="for 4").wait_for()
    load_steps(quick)
    held: list[Route] = []
    waits = {"random_order"}

    def answer(route: Route) -> None:
        if any(kind in (route.request.post_data or "") for kind in waits):
            held.append(route)
        else:
            route.continue_()

    quick.route("**/vit_demo/request", answer)
    quick.get_by_role("button", name="Compare all methods").click()
    quick.locator(".every tbody tr").nth(len(METHODS) - 1).wait_for()
    slow = {method.title: method.is_slow for method in METHODS.values()}
    order = [slow[name] for name in quick.locator(".every tbody tr th .link").all_inner_texts()]
    assert order == sorted(slow.values()), "quick ones first"
    assert quick.locator(".every td small").count() == quick.locator(".every tr.random").count() == 0
    waits.clear()
    for route in held:
        route.continue_()
    quick.locator(".every tr.random").wait_for()
    assert quick.locator(".every caption").inner_text() == "Tested on 4 (logit), every method on the same class"
    rows = quick.locator(".every tbody tr")
    assert rows.count() == len(METHODS) + 1
    shown = {}
    for row in rows.all():
        title = row.locator("th").inner_text().removesuffix(" whatever the class")
        shown[title] = [float(cell.split()[0].replace("−", "-")) for cell in row.locator("td").all_inner_texts()]
    for name, method in METHODS.items():
        if not method.is_slow:
            found = result.faithfulness(name, label="4")
            areas = [found.deletion_area, found.insertion_area]
            assert shown[method.title] == pytest.approx(areas, abs=0.0051), name
    gains = [insertion - deletion for deletion, insertion in list(shown.values())[:-1]]
    assert gains == sorted(gains, reverse=True), "the most faithful first"
    for name in ("grad_cam", "attention"):
        quick.locator(".every").get_by_role("button", name=METHODS[name].title, exact=True).click()
        quick.wait_for_function("name => document.querySelector('.stage').__stage.choices.method === name", arg=name)
        assert quick.locator(".every table").is_visible(), "also a map that is about no class"
    bar(quick, result.top(1)[0][0]).click()
    quick.locator(".every table").wait_for(state="hidden")


def test_a_comparison_can_be_cancelled_and_the_docs_of_each_method_are_shown(opened: Page):
    load_steps(opened)
    opened.get_by_role("button", name="Compare all methods").click()
    opened.locator(".every").get_by_role("button", name="Cancel").click()
    opened.locator(".table-status", has_text="Cancelled").wait_for()
    opened.get_by_role("button", name="Compare all methods").wait_for()
    settings(opened).get_by_text("How is this computed?").click()
    opened.get_by_text("Source and details").click()
    opened.locator(".method-docs").get_by_role("link", name="arXiv:1706.03762").wait_for()
    method_button(opened, "Relevance").check()
    opened.locator(".method-docs p", has_text="evidence for the class").wait_for()
    opened.get_by_text("Source and details").click()
    opened.locator(".method-docs").get_by_role("link", name="arXiv:2103.15679").wait_for()


def test_a_phone_shows_all_of_it_without_scrolling_sideways(phone: Page, address: str):
    open_page(phone, address)
    choose_method(phone, "Relevance")
    load_steps(phone)
    phone.get_by_role("button", name="Test these colours").tap()
    phone.get_by_role("button", name="All heads").tap()
    phone.locator("[data-mode=rub]").tap()
    phone.locator(".findings svg").nth(2).wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    names = (
        settings(phone)
        .locator(".segments label")
        .evaluate_all(
            "all => all.filter(label => label.scrollWidth > label.clientWidth + 1).map(label => label.innerText)"
        )
    )
    assert names == []
