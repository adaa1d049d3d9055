"""The ten example digits of the pad, drawn from the strokes of `examples/digits.json` as the browser draws them."""

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from PIL import Image, ImageDraw

Point = tuple[float, float]

DIGITS: dict[str, list[list[Point]]] = json.loads(
    (Path(__file__).parents[1] / "examples" / "digits.json").read_text(encoding="utf-8")
)
"""Strokes of the example digits: points in [0, 1] that guide a smooth curve. The 7 is centred by its centre of mass."""

SIDE = 280
PEN_WIDTH = 1 / 12
OVERSAMPLING = 4


def example_picture(digit: int) -> Image.Image:
    """An example digit, 0 to 9, as the pad draws it: black on white, 280 x 280 pixels, grey."""
    return drawn((PEN_WIDTH, 0, stroke) for stroke in DIGITS[str(digit)])


def drawn(strokes: Iterable[tuple[float, int, list[Point]]]) -> Image.Image:
    """A drawing of (width of the pen, its grey, points), as ``example_picture``."""
    side = SIDE * OVERSAMPLING
    picture = Image.new("L", (side, side), 255)
    draw = ImageDraw.Draw(picture)
    for width, grey, points in strokes:
        radius = width * side / 2
        path = [(x * side, y * side) for x, y in smooth(points)]
        draw.line(path, fill=grey, width=round(2 * radius))
        for x, y in path:  # round caps and joints
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=grey)
    return picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def smooth(points: list[Point], pieces: int = 8) -> list[Point]:
    """The curve that the pad draws through points: quadratic pieces that meet halfway between neighbours.

    It is a polyline from the first point to the last, with ``pieces`` lines for each piece.
    """
    path = [points[0]]
    for (x, y), (next_x, next_y) in pairwise(points[1:]):
        start_x, start_y = path[-1]
        end_x, end_y = (x + next_x) / 2, (y + next_y) / 2
        for step in range(1, pieces + 1):
            t = step / pieces
            a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
            path.append((a * start_x + b * x + c * end_x, a * start_y + b * y + c * end_y))
    return [*path, points[-1]]
