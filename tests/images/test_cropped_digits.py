"""Digits that fill their picture: a stroke from edge to edge is no bar, line or frame."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vit_demo.images import to_mnist
from vit_demo.web.catalog.example_digits import example_picture

from .test_paper import shifted_difference


def drawn(*strokes: list[tuple[float, float]], side: int, pen: float) -> np.ndarray:
    """White on black with soft edges: points are shares of the side."""
    large = Image.new("L", (side * 16, side * 16))
    for points in strokes:
        scaled = [(16 * side * x, 16 * side * y) for x, y in points]
        ImageDraw.Draw(large).line(scaled, 255, round(16 * pen), joint="curve")
    return np.asarray(large.resize((side, side), Image.Resampling.BOX))


def with_margin(digit: np.ndarray, margin: int) -> np.ndarray:
    rows, cols = np.flatnonzero((digit > 127).any(1)), np.flatnonzero((digit > 127).any(0))
    return np.pad(digit[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1], margin)


FULL = {
    "an upright 1": drawn([(0.5, -0.1), (0.5, 1.1)], side=16, pen=2.6),
    "a 1 that leans": drawn([(0.56, -0.1), (0.47, 1.1)], side=16, pen=2.6),
    "an upright 1 of 160 px": drawn([(0.5, -0.1), (0.5, 1.1)], side=160, pen=26),
    "a 7 with a bar": drawn([(0.1, 0), (0.8, 0), (0.4, 1.1)], [(-0.1, 0.5), (1.1, 0.5)], side=16, pen=2),
    "a 4": drawn([(0.5, -0.1), (0.05, 0.6), (1.1, 0.6)], [(0.65, 0.2), (0.65, 1.1)], side=16, pen=2),
    "a 5 with a detached bar": drawn(
        [(0.5, 0), (1.1, 0)], [(0.3, 0.2), (0.3, 0.5), (0.8, 0.6), (0.8, 0.9), (0.2, 1)], side=16, pen=2
    ),
}


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("invert", [False, True])
def test_a_digit_from_edge_to_edge_is_read_as_one_with_a_margin(name, invert):
    digit = FULL[name]
    wide = np.pad(digit, len(digit) // 2)
    found, expected = (to_mnist(255 - pixels if invert else pixels) for pixels in (digit, wide))
    assert shifted_difference(found, expected) < 0.25


@pytest.mark.parametrize("side", [16, 20, 28, 160])
def test_each_digit_may_be_cropped_to_its_ink(side):
    for digit in range(10):
        sheet = 255 - np.asarray(example_picture(digit).resize((side, side), Image.Resampling.LANCZOS).convert("L"))
        expected = to_mnist(with_margin(sheet, side // 2))
        # Where most is ink, and no paper around it, nothing says which of the two it is.
        for margin in range(int((with_margin(sheet, 0) > 127).mean() > 0.45), 4):
            for pixels in (with_margin(sheet, margin), 255 - with_margin(sheet, margin)):
                assert shifted_difference(to_mnist(pixels), expected) < 0.25, (digit, margin)
