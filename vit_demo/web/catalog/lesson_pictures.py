"""A small picture of what a lesson's link opens: its digit under the grid, its photo, or what is built there."""

from html import unescape
from itertools import pairwise
from urllib.parse import parse_qs

from vit_demo.web.catalog.example_digits import DIGITS, PEN_WIDTH, Point

SIDE = 28  # of a picture, in units of a digit's pixels

PHOTOS = "./gradio_api/vit_demo/examples/preview"

_CHART = '<path class="line" d="M4 3v21h21"/><path class="ink thin" d="M5 23C9 21 8 10 13 8s8-1 11-2"/>'
_SHAPES = (
    '<path class="ink thin" d="M8 19C1 13 3 9 5.5 9S8 11 8 12 8 9 10.5 9 15 13 8 19Z"/>'
    '<path class="ink thin" d="M20 8l1.8 3.9 4.2.5-3.1 2.9.8 4.2-3.7-2.1-3.7 2.1.8-4.2-3.1-2.9 4.2-.5Z"/>'
)
_THREADS = '<path class="thread" d="M8 10C8 24 6 26 1 26M20 10C20 25 10 27 1 26M20 18C19 25 10 26.5 1 26"/>'
_FILM = "2"  # the lesson whose link leads to the film
_PLACES = {"build": _CHART, "teach": _SHAPES}


def picture_of(link: str) -> str:
    """The picture of a link as HTML, without a description, because the link has one.

    Args:
        link: The fragment of the page's address, as HTML.
    """
    fields = {name: values[0] for name, values in parse_qs(unescape(link).lstrip("#")).items()}
    if photo := fields.get("photo"):
        return f'<img src="{PHOTOS}/{photo}.webp" alt="" loading="lazy">'
    threads = _THREADS if fields["lesson"] == _FILM else ""
    shapes = _PLACES.get(fields.get("section", "")) or _digit(fields.get("digit", "8"), int(fields["patch_size"]))
    return f'<svg viewBox="0 0 {SIDE} {SIDE}" aria-hidden="true">{shapes}{threads}</svg>'


def _digit(digit: str, patch_size: int) -> str:
    cuts = range(patch_size, SIDE, patch_size)
    grid = "".join(f"M{cut} 0V{SIDE}M0 {cut}H{SIDE}" for cut in cuts)
    strokes = "".join(map(_path, DIGITS[digit]))
    return f'<path class="line" d="{grid}"/><path class="ink" stroke-width="{SIDE * PEN_WIDTH:.2f}" d="{strokes}"/>'


def _path(stroke: list[Point]) -> str:
    """A smooth curve along the points, as the pad draws it: quadratic pieces that meet halfway between neighbours."""
    points = [(SIDE * x, SIDE * y) for x, y in stroke]
    middles = [((x + next_x) / 2, (y + next_y) / 2) for (x, y), (next_x, next_y) in pairwise(points[1:])]
    pieces = [
        f"Q{x:.1f} {y:.1f} {to_x:.1f} {to_y:.1f}" for (x, y), (to_x, to_y) in zip(points[1:], middles, strict=False)
    ]
    (x, y), (last_x, last_y) = points[0], points[-1]
    return f"M{x:.1f} {y:.1f}{''.join(pieces)}L{last_x:.1f} {last_y:.1f}"
