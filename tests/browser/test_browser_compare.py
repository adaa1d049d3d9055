"""The section "Compare" on the real page, against the package."""

import numpy as np
import pytest

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.weights.costs import num_operations

from .choosing import Locator, Page, middle_of, open_section


@pytest.fixture
def compare(opened: Page) -> Page:
    open_section(opened, "Compare")
    wait_for(opened, 3)
    return opened


def wait_for(page: Page, count: int) -> None:
    page.wait_for_function(
        "n => document.querySelectorAll('.compare .column dl dd').length === 8 * n"
        " && !document.querySelector('.compare .pending')",
        arg=count,
    )


def column(page: Page, number: int) -> Locator:
    return page.get_by_role("region", name=f"Column {number}")


def facts(page: Page, number: int) -> dict[str, str]:
    part = column(page, number)
    return dict(zip(part.locator("dt").all_inner_texts(), part.locator("dd").all_inner_texts(), strict=True))


def test_columns_show_the_packages_numbers_and_hovering_is_linked(compare: Page) -> None:
    assert "maps in the same unit share a colour scale" in compare.locator(".compare .lead").inner_text()
    for number, size in enumerate((2, 4, 7), 1):
        expected = vit_demo.explore(example_picture(7), "digits-small", patch_size=size)
        found = facts(compare, number)
        assert found["Prediction"].startswith("7, ") and found["Tokens"] == str(1 + expected.attention().size)
        assert found["Deletion ↓"] == "–"
        count, unit = found["Operations"].split("\u00a0")
        operations = num_operations(expected.preset.config, expected.patch_size, 1 + expected.attention().size)
        assert unit == "M" and float(count) == pytest.approx(operations / 1e6, rel=0.005)
    sent: list[str] = []
    compare.on("request", lambda request: sent.append(request.url))
    compare.mouse.move(*middle_of(column(compare, 2).locator("canvas"), 2, 4))
    for number, (size, row, col) in enumerate(((2, 5, 9), (4, 2, 4), (7, 1, 2)), 1):
        value = vit_demo.explore(example_picture(7), "digits-small", patch_size=size).attention()[row, col]
        text = f"row {row + 1}, column {col + 1}: {100 * value:.{1 if value >= 0.01 else 2}f}\u00a0%"
        column(compare, number).locator(".at", has_text=text).wait_for()
    assert not sent, "hovering needs no request"


def test_another_model_method_and_faithfulness_and_no_picture(compare: Page) -> None:
    assert compare.locator("#preset, #patch-size").evaluate_all("all => all.every((each) => !each.checkVisibility())")
    column(compare, 1).get_by_label("Model").select_option(label="Digits, tiny")
    column(compare, 1).get_by_label("Method").select_option(label="Relevance")
    column(compare, 3).get_by_role("button", name="Delete this column").click()
    wait_for(compare, 2)
    compare.get_by_role("button", name="Measure deletion and insertion").click()
    compare.wait_for_function("document.querySelector('.compare .column dl').innerText.match(/Insertion.*\\d/s)")
    wait_for(compare, 2)
    expected = vit_demo.explore(example_picture(7), "digits-tiny", patch_size=2)
    found = expected.faithfulness(expected.relevance(), seeds=0)
    assert facts(compare, 1)["Deletion ↓"] == f"{found.deletion_area:.2f} (probability)"
    assert facts(compare, 1)["Insertion ↑"] == f"{found.insertion_area:.2f} (probability)"
    assert np.isfinite(float(facts(compare, 2)["Deletion ↓"].split()[0]))
    assert column(compare, 1).get_by_role("button", name="Delete this column").is_hidden(), "two columns are the fewest"
    compare.get_by_role("button", name="Reset", exact=True).click()
    wait_for(compare, 3)
    chosen = [column(compare, number).get_by_label("Patch size").input_value() for number in (1, 2, 3)]
    assert chosen == ["2", "4", "7"] and "compare=" not in compare.url
    assert column(compare, 1).get_by_label("Method").input_value() == '"attention"'
    compare.get_by_role("button", name="Clear").click()
    compare.locator(".compare .scales", has_text="Draw a digit or choose a photo.").wait_for()
    assert compare.get_by_role("button", name="Add a column").is_disabled()
    assert compare.locator(".compare .column").count() == 0
