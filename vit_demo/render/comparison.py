"""Several results side by side, all maps on one colour scale.

Colours grow with the square root of a value, so that flat maps can be seen beside peaked ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vit_demo.render.colours import WHITE_OF_PAPER, heat_colours
from vit_demo.render.overlay import overlay

TEXT, SUBDUED, LINE_HEIGHT = "#17181c", "#646973", 18
BAR_SIZE = (280, 12)
OPACITY = 0.8


@dataclass(frozen=True)
class ComparisonRow:
    """One row of a sheet: text at its left, what the model saw, and the map ``[rows, cols]`` of each column."""

    lines: Sequence[str]
    image: Image.Image
    maps: Sequence[NDArray[np.floating]]
    captions: Sequence[str]


def comparison_sheet(
    titles: Sequence[str], rows: Sequence[ComparisonRow], unit: str, *, cell: int = 168, gap: int = 16
) -> Image.Image:
    """Draws results as rows and maps as columns; the colour bar ends at the largest absolute value of all maps."""
    everything = np.concatenate([values.ravel() for row in rows for values in row.maps] or [np.zeros(1)])
    peak, signed = float(np.abs(everything).max()), bool(everything.min() < 0)
    label_width = max(round(_font().getlength(line)) for row in rows for line in row.lines) + gap
    row_height = cell + LINE_HEIGHT + gap
    top = gap + LINE_HEIGHT + gap // 2
    size = (
        2 * gap + label_width + (1 + len(titles)) * (cell + gap),
        top + len(rows) * row_height + LINE_HEIGHT + BAR_SIZE[1] + 2 * gap,
    )
    sheet = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(sheet)

    def write(x: int, y: int, text: str, colour: str, width: int | None = None) -> None:
        draw.text((x, y), _shortened(text, width) if width else text, fill=colour, font=_font())

    columns = [gap + label_width + i * (cell + gap) for i in range(1 + len(titles))]
    for x, title in zip(columns, ["Input", *titles], strict=True):
        write(x, gap, title, TEXT, cell)
    for number, row in enumerate(rows):
        y = top + number * row_height
        for i, line in enumerate(row.lines):
            write(gap, y + i * LINE_HEIGHT, line, SUBDUED if i else TEXT)
        flat = np.zeros((1, 1), np.float32)
        pictures = [overlay(row.image, flat, alpha=0, display_size=cell)]
        pictures += [
            overlay(row.image, _root(values), alpha=OPACITY, display_size=cell, signed=signed, floor=peak**0.5)
            for values in row.maps
        ]
        for x, picture, caption in zip(columns, pictures, ["", *row.captions], strict=True):
            sheet.paste(picture, (x, y))
            write(x, y + picture.height + 2, caption, SUBDUED, cell)
    x, y = columns[0], top + len(rows) * row_height
    low = -1 if signed else 0
    sheet.paste(_colour_bar(low, rows[0].image.mode == "L"), (x, y))
    for share in (-1, 0, 1) if signed else (0, 0.5, 1):
        value = f"{share * abs(share) * peak:.2g}"
        place = (share - low) / (1 - low) * (BAR_SIZE[0] - _font().getlength(value))
        write(x + round(place), y + BAR_SIZE[1] + 2, value, SUBDUED)
    write(x + BAR_SIZE[0] + gap // 2, y - 2, unit, SUBDUED)
    return sheet


def _root(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The square roots of the absolute values, with the signs of the values."""
    return np.sign(values) * np.sqrt(np.abs(values))


def _colour_bar(low: int, paper: bool) -> Image.Image:
    """The colours from ``low``, which is -1 or 0, to 1, as they look on white."""
    shares = np.linspace(low, 1, BAR_SIZE[0])[None]  # [1, width]
    heat = heat_colours(shares, 1.0, signed=low < 0, paper=paper)
    opacity = heat[..., 3:] if paper else 1.0
    colours = WHITE_OF_PAPER + (heat[..., :3] - WHITE_OF_PAPER) * opacity
    return Image.fromarray(colours.round().astype(np.uint8)).resize(BAR_SIZE)


def _shortened(text: str, width: int) -> str:
    """The text, cut where it is wider than so many pixels."""
    if _font().getlength(text) <= width:
        return text
    while text and _font().getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


@cache
def _font() -> ImageFont.FreeTypeFont:
    """The font that comes with matplotlib, which has accents and symbols."""
    import matplotlib  # here, because importing it takes longer than all else that the page needs

    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", 12)
