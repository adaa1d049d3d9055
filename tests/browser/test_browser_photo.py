"""The photo tab shows which part of a photo the network gets."""

from pathlib import Path

import pytest
from PIL import Image

from .choosing import STAGE, Page

FITS = {
    "Centre": ("crop", "bright square, 60"),
    "Stretch": ("squash", "stretched"),
    "Whole": ("keep", "All of it, in"),
}


def test_the_part_that_the_network_gets_is_marked_in_the_photo_and_named(opened: Page, tmp_path: Path):
    """A turned photo, 180 x 300: its middle is the square from 60 to 240."""
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.new("RGB", (300, 180), "orange").save(tmp_path / "turned.png", exif=exif)
    opened.get_by_role("tab", name="Photo").click()
    opened.locator("#photo input[type=file]").first.set_input_files(tmp_path / "turned.png")
    opened.wait_for_function(f"{STAGE}.current()?.source.upload")
    for name, (fit, words) in FITS.items():
        opened.locator("#fit").get_by_text(name).click()
        opened.wait_for_function(f"fit => {STAGE}.current()?.source.fit === fit", arg=fit)
        opened.locator(".seen-part", has_text=words).wait_for()
        bars = opened.locator("#fit, #fit label")
        assert bars.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)"), "nothing is cut off"
        if fit != "crop":
            opened.locator("#photo .frame").wait_for(state="hidden")  # all of it is in the picture
            continue
        opened.wait_for_function("document.querySelector('.crop').clientWidth > 20")
        frame, part = opened.locator("#photo .frame").bounding_box(), opened.locator(".crop").bounding_box()
        assert part and frame
        assert part["width"] / part["height"] == pytest.approx(1, abs=0.02)
        middle = [part["x"] + part["width"] / 2, part["y"] + part["height"] / 2]
        assert middle == pytest.approx([frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2], abs=2)
