"""A drawing and a photo are told apart, in doubt in favour of the photo."""

import io
from pathlib import Path

import gradio
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from vit_demo.images import is_drawing, read_image
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS

from .test_digit_preprocess import DIGITS, draw, photo

SHEETS = [("black", "white"), ("white", "black"), ("blue", "white"), ("red", "#ffe"), ("yellow", "#203040")]
PHOTOS = [
    *(Path(gradio.__file__).parent / "media_assets" / "images").glob("[bclt]*.[jp][pn]g"),
    *(Path(__file__).parent / "turned.heic",),
]


def saved(image: Image.Image, quality: int) -> Image.Image:
    image.save(buffer := io.BytesIO(), "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


@pytest.mark.parametrize(("ink", "paper"), SHEETS)
@pytest.mark.parametrize("pen", [5, 10, 18, 30])
def test_strokes_of_one_ink_are_a_drawing(ink, paper, pen):
    for digit in DIGITS:
        sheet = draw(digit, ink=ink, paper=paper, pen=pen)
        assert is_drawing(sheet) and is_drawing(saved(sheet, 75)) and is_drawing(saved(sheet, 60))


def test_the_examples_of_the_pad_are_drawings_of_any_size():
    for digit in range(10):
        sheet = example_picture(digit)
        for side in (28, 64, 280, 1000):
            assert is_drawing(sheet.resize((side, side), Image.Resampling.LANCZOS).convert("RGB"))
        blurred = sheet.resize((28, 28), Image.Resampling.LANCZOS).resize((280, 280))
        assert is_drawing(blurred.convert("RGB"))


@pytest.mark.parametrize("shape", [(1120, 1120), (1120, 280), (280, 1120)])
def test_the_longest_side_decides_how_much_of_the_noise_is_averaged(shape):
    sheet, rng = Image.new("RGB", shape, "white"), np.random.default_rng(0)
    sheet.paste(draw(), ((shape[0] - 280) // 2, (shape[1] - 280) // 2))
    noisy = np.asarray(sheet, float) + rng.normal(0, 16, (*shape[::-1], 3))
    assert is_drawing(Image.fromarray(noisy.clip(0, 255).astype(np.uint8)))


@pytest.mark.parametrize("path", PHOTOS, ids=lambda path: path.name)
def test_photos_are_none(path):
    picture = read_image(path)
    for side in (32, 64, 224, 1000):
        small = picture.copy()
        small.thumbnail((side, side))
        assert not is_drawing(small) and not is_drawing(small.convert("L").convert("RGB"))


def test_the_example_photos_are_none():
    assert not any(is_drawing(read_image(one.path)) for one in EXAMPLE_PHOTOS.values())


def test_light_and_shade_make_a_photo():
    assert not is_drawing(photo(draw(), lambda x, y: 1 - 0.4 * x))
    ball = Image.new("RGB", (200, 200), "white")  # as shops show their goods
    ImageDraw.Draw(ball).ellipse((40, 40, 160, 160), fill="#a33")
    assert not is_drawing(ball), "an area is no stroke"
    assert not is_drawing(ball.filter(ImageFilter.GaussianBlur(20)))
    page = Image.new("RGB", (400, 400), "white")
    for line in range(20, 380, 12):
        ImageDraw.Draw(page).text((20, line), "a page of text is no digit, however black and white it is", fill="black")
    assert not is_drawing(page)


@pytest.mark.parametrize("colour", ["white", "black", "#347"])
def test_where_there_is_nothing_there_is_no_drawing(colour):
    assert not is_drawing(Image.new("RGB", (200, 100), colour))
    assert not is_drawing(Image.fromarray(np.zeros((1, 1, 3), np.uint8)))
