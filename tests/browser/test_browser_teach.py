"""Teaching in Build, as a visitor sees it: drawings and photos in boxes, bars at once, the map, and the link."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

import vit_demo
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS
from vit_demo.web.requests.parse import ResultRequest
from vit_demo.weights.trained import trained_preset

from .choosing import STAGE, open_page, open_section

if TYPE_CHECKING:
    from playwright.sync_api import Page

TURNS = (0.0, 0.15, -0.15)


def points(kind: str, turn: float) -> list[tuple[float, float]]:
    """The corners of a star or a box on the paper, in shares of its side."""
    count, step = (5, 4 * math.pi / 5) if kind == "star" else (4, math.pi / 2)
    return [(0.5 + 0.36 * math.sin(k * step + turn), 0.5 - 0.36 * math.cos(k * step + turn)) for k in range(count + 1)]


def draw(page: Page, kind: str, turn: float) -> None:
    page.locator("#pad [data-action=clear]").click()
    box = page.locator("#pad .paper").bounding_box()
    assert box
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points(kind, turn)]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def boxes(page: Page):
    return page.locator("[data-teach=class]")


def add(page: Page, index: int) -> None:
    """Adds what is on the stage to a class."""
    pictures = boxes(page).nth(index).locator(".pictures button")
    count = pictures.count()
    boxes(page).nth(index).locator("[data-teach=add]").click()
    pictures.nth(count).wait_for()


def name(page: Page, index: int, text: str) -> None:
    box = boxes(page).nth(index).get_by_label("Name of the class")
    box.fill(text)
    box.press("Tab")


def teach_star_and_box(page: Page) -> None:
    name(page, 0, "star")
    name(page, 1, "box")
    for turn in TURNS:
        for index, kind in enumerate(("star", "box")):
            draw(page, kind, turn)
            add(page, index)
    page.locator("[data-teach=accuracy]").get_by_text("Left out one at a time, 6 of 6 are right.").wait_for()


def predictions(page: Page) -> dict[str, float]:
    found = page.evaluate(f"{STAGE}.current().predictions.map(({{label, probability}}) => [label, probability])")
    return dict(found)


def test_two_symbols_are_taught_looked_into_and_sent_by_a_link(page: Page, address: str) -> None:
    open_page(page, f"{address}#digit=7&patch_size=4")
    page.get_by_role("button", name="Not what you see? Teach it").click()
    teach_star_and_box(page)
    draw(page, "star", 0.3)
    page.wait_for_function("parseFloat(document.querySelector('.teach .first .number')?.textContent) > 80")
    assert boxes(page).nth(0).get_attribute("class") == "box first"
    page.get_by_role("button", name="Look into it").click()
    page.locator(".predictions .first .label", has_text="star").wait_for()
    assert page.locator("#preset option:checked").inner_text() == "star, box"

    shown = predictions(page)
    preset = trained_preset(page.evaluate(f"{STAGE}.current().source.preset"))
    assert preset.labels == ("star", "box") and sum(shown.values()) == pytest.approx(1)
    page.locator("[data-show=class]").click()
    page.wait_for_function(f"{STAGE}.scene()?.method.label.startsWith('Libra') && {STAGE}.scene().map")
    request = ResultRequest.parse(page.evaluate(f"{STAGE}.current().source"))
    ex = get_engine().explore_source(request.source, preset, 4, request.fit)
    found = np.array(page.evaluate(f"Array.from({STAGE}.scene().map)"))
    np.testing.assert_allclose(found, ex.heatmap("libra_fullgrad", "star").ravel(), atol=1e-3)

    other = open_page(page.context.new_page(), page.url)
    other.wait_for_function(f"{STAGE}.current()?.source.preset.startsWith('taught-')")
    assert predictions(other) == pytest.approx(shown, abs=1e-3)
    assert other.evaluate(f"{STAGE}.current().source.preset") == preset.name


def test_what_the_server_refuses_changes_nothing(page: Page, address: str) -> None:
    open_page(page, f"{address}#section=teach&patch_size=4")
    note = page.locator("[data-teach=accuracy]")
    teach_star_and_box(page)
    boxes(page).nth(1).locator("[data-teach=add]").click()  # the same drawing again
    note.get_by_text("Two examples of “box” are the same").wait_for()
    name(page, 1, "star")
    note.get_by_text("Two classes are called “star”").wait_for()
    name(page, 1, " ")
    note.get_by_text("must be one line").wait_for()
    assert boxes(page).nth(1).get_by_label("Name of the class").input_value() == "box"
    page.locator("#pad [data-action=clear]").click()
    page.wait_for_selector(".stage[data-ready=empty]", state="attached")
    boxes(page).nth(0).locator("[data-teach=add]").click()
    note.get_by_text("There is no picture to add").wait_for()
    assert page.locator(".teach .pictures img").count() == 6
    name(page, 1, "<b>box</b>")
    note.get_by_text("6 of 6").wait_for()
    assert page.locator("#preset option:checked").inner_text() == "star, <b>box</b>"
    boxes(page).nth(0).locator(".pictures button").first.click()
    note.get_by_text("5 of 5").wait_for()


def test_photos_are_taught_from_files(page: Page, address: str) -> None:
    open_page(page, f"{address}#tab=photos&photo=koala&section=teach")
    names = ["goldfish", "tiger"]
    for index, example in enumerate(names):
        name(page, index, example)
        files = [str(EXAMPLE_PHOTOS[example].path)]
        boxes(page).nth(index).locator("input[type=file]").set_input_files(files)
        boxes(page).nth(index).locator(".pictures button").first.wait_for()
    page.locator("[data-teach=accuracy]").get_by_text("Add a second picture").wait_for()
    page.wait_for_function(f"{STAGE}.current()?.source.preset.startsWith('taught-')")
    assert set(predictions(page)) == set(names)
    preset = trained_preset(page.evaluate(f"{STAGE}.current().source.preset"))
    taught = vit_demo.Explainer(preset.name)
    ex = taught(EXAMPLE_PHOTOS["koala"].path)
    assert dict(ex.top(2)) == pytest.approx(predictions(page), abs=1e-3)
    assert np.isfinite(ex.heatmap("relevance", "tiger")).all()


def test_build_leads_from_one_way_to_the_other(page: Page, address: str) -> None:
    open_page(page, address)
    open_section(page, "Build")
    page.locator(".build").get_by_role("button", name="Teach your own classes").click()
    page.locator(".teach h2").wait_for()
    assert page.locator("#header [data-section=build]").get_attribute("aria-current") == "true"
    assert page.locator("#pad .paper").is_visible() and boxes(page).count() == 2
    page.locator(".teach").get_by_role("button", name="Train a network").click()
    page.locator(".build h2").first.wait_for()
