"""The photo tab: which part the model saw, and the patch that a click on it chooses, against the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import vit_demo

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIT_WORDS = {"Centre": "bright square", "Stretch": "stretched to a square", "All of it": "aspect ratio kept"}
FITS = {"Centre": "crop", "Stretch": "squash", "All of it": "keep"}


def test_a_click_on_the_small_photo_chooses_the_patch_at_that_place(opened: Page, tmp_path: Path):
    """A turned photo, dark but for one spot, which is the brightest patch of the network's input."""
    spot = Image.new("RGB", (300, 180))
    spot.paste((255, 255, 255), (180, 60, 210, 90))
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise: 180 x 300, the spot's middle at (180 - 75, 195)
    spot.save(tmp_path / "spot.png", exif=exif)
    x, y = 105 / 180, 195 / 300
    opened.get_by_role("tab", name="Photo").click()
    opened.locator("#model-view .part").wait_for()
    opened.locator("#photo input[type=file]").first.set_input_files(tmp_path / "spot.png")
    opened.wait_for_function("document.querySelector('.stage').__stage.current()?.source.upload")
    for name, fit in FITS.items():
        expected = vit_demo.explore(tmp_path / "spot.png", "photos-tiny", fit=fit)
        rows, cols = expected.grid
        brightness = expected.pixels[0].reshape(3, rows, expected.patch_size, cols, expected.patch_size).mean((0, 2, 4))
        opened.locator("#fit").get_by_text(name).click()
        opened.wait_for_function(
            "([fit, words]) => document.querySelector('.stage').__stage.current()?.source.fit === fit"
            " && document.querySelector('#model-view figcaption').innerText.includes(words)",
            arg=[fit, FIT_WORDS[name]],
        )
        bars = opened.locator("#fit, #fit label")
        assert bars.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)"), "nothing is cut off"
        small = opened.locator("#model-view canvas")
        box = small.bounding_box()
        assert box and box["width"] / box["height"] == pytest.approx(180 / 300, rel=0.05)
        small.click(position={"x": x * box["width"], "y": y * box["height"]})
        assert opened.evaluate("document.querySelector('.stage').__stage.choices.pinned") == int(brightness.argmax())
        small.click(position={"x": x * box["width"], "y": y * box["height"]})
        assert opened.evaluate("document.querySelector('.stage').__stage.choices.pinned") is None
        if fit == "crop":
            small.click(position={"x": x * box["width"], "y": 2})
            assert opened.evaluate("document.querySelector('.stage').__stage.choices.pinned") is None, "cut off"
    opened.get_by_role("tab", name="Draw").click()
    opened.wait_for_function("document.querySelector('#model-view .part').hidden")
