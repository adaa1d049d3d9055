"""Photos get onto the page by choosing, dropping, pasting and a camera, and leave it with their prediction."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vit_demo
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .choosing import Page, open_page, open_section

SOURCE = "document.querySelector('.stage').__stage.current()?.source"
LION = vit_demo.explore(EXAMPLE_PHOTOS["lion"].path, "photos-tiny").top(1)[0][0]

GIVE = """([kind, selector, content]) => {
  const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], "photo.jpg", { type: "image/jpeg" }));
  const target = document.querySelector(selector);
  const options = { bubbles: true, cancelable: true };
  if (kind === "paste") return target.dispatchEvent(new ClipboardEvent(kind, { ...options, clipboardData: data }));
  for (const name of ["dragenter", "dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(name, { ...options, dataTransfer: data }));
  }
}"""


def photo_of(name: str) -> str:
    """A smaller copy of an example, encoded for the browser."""
    buffer = io.BytesIO()
    Image.open(EXAMPLE_PHOTOS[name].path).resize((300, 200)).save(buffer, "JPEG")
    return base64.b64encode(buffer.getvalue()).decode()


def wait_for_upload(page: Page, name: str) -> None:
    expected = vit_demo.explore(base64.b64decode(photo_of(name)), "photos-tiny").top(1)[0][0]
    page.wait_for_function(
        f"label => {SOURCE}?.upload && document.querySelector('.stage')?.dataset.top1 === label", arg=expected
    )
    assert page.get_by_role("tab", name="Photo").get_attribute("aria-selected") == "true"


def photo_of_a_digit(tmp_path: Path, digit: int) -> Path:
    """An example digit on ruled paper, under uneven light."""
    sheet = Image.new("L", (420, 360), 255)
    sheet.paste(example_picture(digit), (70, 40))
    pixels = np.asarray(sheet) * np.linspace(0.5, 0.95, 420)
    pixels[45::60] *= 0.5
    Image.fromarray(pixels.astype(np.uint8)).save(path := tmp_path / "digit.jpg")
    return path


def test_a_photo_of_a_digit_is_read_by_the_digit_model(opened: Page, tmp_path: Path):
    path = photo_of_a_digit(tmp_path, 4)
    assert vit_demo.explore(path, "digits-small").top(1)[0][0] == "4"
    is_read = "label => document.querySelector('.stage')?.dataset.top1 === label"
    opened.evaluate(GIVE, ["drop", ".stage .picture", base64.b64encode(path.read_bytes()).decode()])
    opened.wait_for_function(is_read, arg="4")
    assert opened.get_by_role("tab", name="Digit").get_attribute("aria-selected") == "true"
    assert "picture=own" in opened.url and opened.locator(".veil").is_hidden()
    opened.get_by_role("button", name="New digit").click()
    opened.locator(".message").get_by_text("Here: one digit").wait_for()
    opened.locator(".pens input[type=file]").set_input_files(photo_of_a_digit(tmp_path, 3))
    opened.wait_for_function(is_read, arg="3")
    opened.reload()
    opened.wait_for_function(is_read, arg="3")
    Image.new("RGB", (300, 200), "white").save(blank := tmp_path / "blank.png")
    opened.locator(".pens input[type=file]").set_input_files(blank)
    opened.locator("#pad .problem").get_by_text("No digit is seen").wait_for()
    opened.wait_for_function(is_read, arg="3")  # what was there before
    open_section(opened, "Compare")
    assert opened.locator(".result-status").is_hidden(), "it does not follow"
    opened.get_by_role("button", name="See it as a photo").click()
    opened.wait_for_function(f"{SOURCE}?.upload && !{SOURCE}.digit")
    assert opened.get_by_role("tab", name="Photo").get_attribute("aria-selected") == "true"
    opened.get_by_role("tab", name="Digit").click()
    assert not opened.locator("#pad .problem").inner_text(), "it is said once"


def test_a_photo_is_dropped_or_pasted_anywhere(opened: Page):
    ways = (("drop", ".picture"), ("drop", "h1"), ("paste", "body"), ("paste", ".picture"), ("drop", ".blocks"))
    for (kind, where), name in zip(ways, ("goldfish", "lion", "goldfish", "lion", "goldfish"), strict=True):
        opened.evaluate(GIVE, [kind, where, photo_of(name)])
        wait_for_upload(opened, name)
        assert opened.locator("img.preview").get_attribute("alt") == "Your photo"
        assert opened.locator(".veil").is_hidden()
        opened.get_by_role("tab", name="Digit").click()
        opened.wait_for_function(f"{SOURCE}?.digit")  # what was on the paper is there again


def test_removing_the_photo_removes_its_prediction_and_examples_have_names_and_sources(opened: Page):
    opened.evaluate(GIVE, ["paste", "body", photo_of("goldfish")])
    wait_for_upload(opened, "goldfish")
    opened.get_by_role("button", name="Remove photo").click()
    opened.wait_for_selector('.stage[data-ready="empty"]')
    assert opened.locator(".bars .first").count() == 0
    assert opened.locator(".message").inner_text().startswith("Press here to choose a photo")
    opened.get_by_role("button", name="Lion").click()
    opened.wait_for_selector(f'.stage[data-top1="{LION}"]')

    names = opened.locator("#photos img").evaluate_all("all => all.map(image => image.alt)")
    assert names == [photo.title for photo in EXAMPLE_PHOTOS.values()]
    opened.get_by_role("button", name="Cathedral of Reims").click()
    opened.get_by_text("Cathedral of Reims: Mattana, public domain").wait_for()
    small = opened.locator("#photos button").evaluate_all("all => all.filter(b => b.clientWidth < 44).length")
    ways = opened.locator(".way:visible").evaluate_all("all => all.filter(b => b.offsetHeight < 44).length")
    assert small == ways == 0


def test_a_camera_of_the_browser_takes_a_photo(page: Page, address: str):
    """The test's browser has a camera that shows a moving pattern."""
    page.context.grant_permissions(["camera"])
    open_page(page, f"{address}#tab=photos")
    page.get_by_role("button", name="Live camera").click()
    page.wait_for_selector(".stage.live")
    page.get_by_role("button", name="Hold").click()
    page.wait_for_function(f"{SOURCE}?.upload")
    assert page.locator("video.preview").is_hidden()


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
    opened.wait_for_function(f"{SOURCE}?.upload")
    for name, (fit, words) in FITS.items():
        opened.locator("#fit").get_by_text(name).click()
        opened.wait_for_function(f"fit => {SOURCE}?.fit === fit", arg=fit)
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


def test_a_whole_photo_has_at_most_as_many_squares_as_a_square_one(page: Page, address: str):
    open_page(page, f"{address}#tab=photos&photo=tiger&fit=keep")
    page.wait_for_function(f"{SOURCE}?.fit === 'keep'")
    headline = int(page.locator(".mechanism").inner_text().split("into ")[1].split(" ")[0])
    said = page.locator("#patch-size label:has(input:checked) small").first.inner_text()
    assert said.startswith("≤") and headline <= int(said[1:].replace("\u00a0", ""))
    page.locator("#fit").get_by_text("Centre").click()
    page.wait_for_function("!document.querySelector('#patch-size').innerText.includes('≤')")
