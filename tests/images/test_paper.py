"""What is printed on the paper goes, what is written stays: ruled and squared paper, cells, boxes, bars."""

import io
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vit_demo.images import read_image, to_mnist
from vit_demo.images.ink import find_ink
from vit_demo.web.catalog.example_digits import example_picture

from .test_digit_preprocess import difference, photo

SIDE = 280


def written(digit: int, size: int = 190, left: int = 50, top: int = 40) -> Image.Image:
    """An example digit, smaller than its sheet."""
    sheet = Image.new("L", (SIDE, SIDE), 255)
    sheet.paste(example_picture(digit).resize((size, size), Image.Resampling.LANCZOS), (left, top))
    return sheet


def printed(draw: Callable[[ImageDraw.ImageDraw], None]) -> Callable[[Image.Image], Image.Image]:
    def on(sheet: Image.Image) -> Image.Image:
        form = Image.new("L", sheet.size, 255)
        draw(ImageDraw.Draw(form))
        return Image.fromarray(np.minimum(form, sheet))

    return on


def lines(step: int, width: int, grey: int, *, squared: bool = False) -> Callable[[ImageDraw.ImageDraw], None]:
    def draw(pencil: ImageDraw.ImageDraw) -> None:
        for at in range(step // 2, SIDE, step):
            pencil.line([(0, at), (SIDE, at)], grey, width)
            if squared:
                pencil.line([(at, 0), (at, SIDE)], grey, width)

    return draw


def cell(pencil: ImageDraw.ImageDraw) -> None:
    """Three borders of a cell, of which one is cut lengthwise, and a corner of the next."""
    pencil.rectangle((0, 0, SIDE, 4), 20)
    pencil.rectangle((0, 0, 1, SIDE), 20)
    pencil.rectangle((SIDE - 6, 0, SIDE, SIDE), 60)
    pencil.rectangle((120, SIDE - 9, 150, SIDE), 0)


def box_and_speck(pencil: ImageDraw.ImageDraw) -> None:
    pencil.rectangle((14, 10, SIDE - 20, SIDE - 12), outline=30, width=4)
    pencil.ellipse((30, 22, 34, 26), 0)


def letterbox(sheet: Image.Image) -> Image.Image:
    film = Image.new("L", (SIDE + 160, SIDE), 0)
    film.paste(sheet, (80, 0))
    return film


def white_ink(sheet: Image.Image) -> Image.Image:
    pixels = np.full((SIDE, SIDE, 4), 255, np.uint8)
    pixels[..., 3] = 255 - np.asarray(sheet)
    return Image.fromarray(pixels)


PAPERS = {
    "ruled": printed(lines(66, 2, 120)),
    "squared": printed(lines(48, 2, 100, squared=True)),
    "cell": printed(cell),
    "box": printed(lambda pencil: pencil.rectangle((14, 10, SIDE - 20, SIDE - 12), outline=30, width=4)),
    "box and a speck": printed(box_and_speck),
    "bars": letterbox,
    "white ink on transparent": white_ink,
}


def scanned(sheet: Image.Image) -> Image.Image:
    """Turned by a degree, cut, and saved as a JPEG."""
    turned = sheet.convert("RGB").rotate(1, Image.Resampling.BICUBIC, fillcolor="white")
    turned.crop((8, 8, sheet.width - 8, sheet.height - 8)).save(file := io.BytesIO(), "JPEG", quality=75)
    return Image.open(file)


def shifted_difference(a: np.ndarray, b: np.ndarray) -> float:
    """As ``difference``, at the best of nine places: a digit that is a pixel longer is centred a pixel away."""
    moves = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]
    return min(difference(np.roll(a, move, (0, 1)), b) for move in moves)


@pytest.mark.parametrize("kind", PAPERS)
def test_a_digit_is_read_as_on_plain_paper(kind: str):
    for digit in range(10):
        plain = to_mnist(written(digit))
        assert shifted_difference(to_mnist(PAPERS[kind](written(digit))), plain) < 0.25, digit


@pytest.mark.parametrize("kind", ["ruled", "squared", "box"])
def test_a_scan_is_read_as_on_plain_paper(kind: str):
    for digit in range(10):
        plain = to_mnist(scanned(written(digit)))
        assert shifted_difference(to_mnist(scanned(PAPERS[kind](written(digit)))), plain) < 0.25, digit


@pytest.mark.parametrize("kind", ["ruled", "squared", "cell", "box"])
def test_a_photo_is_read_as_of_plain_paper(kind: str):
    def light(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 0.55 + 0.4 * x

    for digit in range(10):
        plain = to_mnist(photo(written(digit).convert("RGB"), light))
        lit = photo(PAPERS[kind](written(digit)).convert("RGB"), light)
        assert shifted_difference(to_mnist(lit), plain) < 0.25, digit


def strokes(points: list[tuple[float, float]], pen: int, size: tuple[int, int] = (SIDE, SIDE)) -> np.ndarray:
    """A polyline of full ink, white on black: its points are shares of the picture's sides."""
    sheet = Image.new("L", size)
    ImageDraw.Draw(sheet).line([(x * (size[0] - 1), y * (size[1] - 1)) for x, y in points], 255, pen, joint="curve")
    return np.asarray(sheet)


KEPT = {
    "a 7 that was cut out closely, of a thin pen": strokes([(0, 0.01), (1, 0.01), (0.35, 1)], 4),
    "a 4 that was cut out closely, of a thin pen": np.maximum(
        strokes([(0.7, 0), (0.7, 1)], 4), strokes([(0.7, 0), (0.01, 0.7), (1, 0.7)], 4)
    ),
    "a 1 from edge to edge, of a thin pen": strokes([(0.5, 0), (0.5, 1)], 3),
    "a 1 from edge to edge and its base": np.maximum(
        strokes([(0.5, 0), (0.5, 0.9)], 22), strokes([(0.3, 0.95), (0.7, 0.95)], 12)
    ),
    "an 8 of arrow keys": np.maximum(
        strokes([(0.3, 0.1), (0.7, 0.1), (0.7, 0.9), (0.3, 0.9), (0.3, 0.1)], 22), strokes([(0.3, 0.5), (0.7, 0.5)], 22)
    ),
    "a 0 of arrow keys": strokes([(0.2, 0.1), (0.8, 0.1), (0.8, 0.9), (0.2, 0.9), (0.2, 0.1)], 22),
    "a 0 of arrow keys with a dot": np.maximum(
        strokes([(0.2, 0.1), (0.8, 0.1), (0.8, 0.9), (0.2, 0.9), (0.2, 0.1)], 22),
        strokes([(0.42, 0.5), (0.58, 0.5)], 44),
    ),
    "a 5 whose detached bar leaves the pad": np.maximum(
        strokes([(0.5, 0.02), (1, 0.02)], 44), strokes([(0.4, 0.2), (0.4, 0.5), (0.7, 0.6), (0.7, 0.8), (0.4, 0.9)], 22)
    ),
    "a 0 with a dot": np.maximum(
        255 * (np.abs(np.hypot(*np.mgrid[-140:140, -140:140]) - 100) < 12).astype(np.uint8),
        strokes([(0.5, 0.47), (0.5, 0.53)], 30),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_strokes_that_look_like_a_form_are_kept(name: str):
    pixels = KEPT[name]
    found = find_ink(Image.fromarray(np.repeat(pixels[..., None], 3, 2)))
    assert found is not None and np.array_equal(found[0] > 0.5, pixels > 127)


def test_white_on_transparent_lies_over_black_and_all_else_over_white():
    """Also grey with opacity, and a picture of more than one strip."""
    pixels = np.full((1200, 1000, 4), 255, np.uint8)
    pixels[..., 3] = np.linspace(0, 255, 1000).astype(np.uint8)
    image = Image.fromarray(pixels)
    for given in (image, image.convert("LA")):
        assert np.array_equal(np.asarray(read_image(given))[..., 0], pixels[..., 3])
    pixels[600, 500:900, :3] = 0
    expected = (
        255 - (np.arange(1200) == 600)[:, None] * ((np.arange(1000) >= 500) & (np.arange(1000) < 900)) * pixels[..., 3]
    )
    assert np.array_equal(np.asarray(read_image(Image.fromarray(pixels)))[..., 0], expected)
    assert (np.asarray(read_image(Image.new("RGBA", (9, 9), (255, 255, 255, 0)))) == 255).all(), "nothing is there"
