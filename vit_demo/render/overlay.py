"""Heatmaps over a picture, in perceptually even colours."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.checks import require
from vit_demo.defaults import OPACITY
from vit_demo.errors import InputError
from vit_demo.render.colours import BLACK_OF_INK, WHITE_OF_PAPER, heat_colours, scale_end


def overlay(
    image: Image.Image,
    values: NDArray[np.floating],
    *,
    alpha: float = OPACITY,
    display_size: int = 448,
    signed: bool | None = None,
    floor: float = 0.0,
    smooth: bool = False,
    cmap: str | None = None,
    box: tuple[float, float, float, float] | None = None,
) -> Image.Image:
    """Lays a map over a picture, which is grey below it; patches with a stronger value are painted more strongly.

    Args:
        image: What the model saw: a photo, or a grey drawing, white on black, which is shown as ink on paper.
        values: ``[rows, cols]``, scaled for show by the largest absolute value. NaN and infinities are not painted.
        alpha: Opacity of the strongest patch, in [0, 1].
        display_size: Longest side of the result, in pixels.
        signed: Whether values below 0 have a colour of their own; by default, whether there are any.
        floor: The scale ends there if no value is larger, so that a map without meaningful values is faint.
        smooth: Whether neighbouring patches blend. By default each is a square, because it has one value.
        cmap: Name of a colour map of matplotlib; ours for None.
        box: Left, top, right and bottom edge of the map, as shares of the picture's sides; the whole picture for None.

    Raises:
        InputError: If there is no such colour map.
    """
    scale = display_size / max(image.size)
    size = (round(image.width * scale), round(image.height * scale))
    map_filter = Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    picture_filter = Image.Resampling.BICUBIC if image.width > 64 else Image.Resampling.NEAREST
    is_drawing = image.mode == "L"
    picture = (ink_on_paper(image) if is_drawing else image).convert("RGB").resize(size, picture_filter)
    values = np.where(np.isfinite(values), values, 0)
    signed = bool(values.min(initial=0) < 0) if signed is None else signed
    if not is_drawing:  # its colours are easily taken for those of the map
        picture = picture.convert("L").convert("RGB")
    shares = values / scale_end(values, floor)  # [rows, cols]
    heat = heat_colours(shares, alpha, signed=signed)  # [rows, cols, 4]
    if cmap is not None:
        heat[..., :3] = _of_matplotlib(cmap, (shares + 1) / 2 if signed else shares)
    left, top, right, bottom = (round(edge * side) for edge, side in zip(box or (0, 0, 1, 1), size * 2, strict=True))
    size = max(1, right - left), max(1, bottom - top)
    colours = Image.fromarray(heat[..., :3].round().astype(np.uint8)).resize(size, map_filter)
    mask = Image.fromarray((255 * heat[..., 3]).round().astype(np.uint8)).resize(size, map_filter)
    picture.paste(colours, (left, top), mask)
    return picture


def _of_matplotlib(name: str, shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Red, green and blue, from 0 to 255, of values in [0, 1]."""
    require("matplotlib", "A colour map")
    from matplotlib import colormaps  # here, because importing it takes long

    if name not in colormaps:
        raise InputError(f"There is no colour map {name!r}: choose one of matplotlib's, such as viridis.")
    return 255 * np.asarray(colormaps[name](shares))[..., :3]


def ink_on_paper(image: Image.Image) -> Image.Image:
    """A drawing, white on black as the model sees it, as dark ink on light paper: mode L, the same size."""
    shares = np.asarray(image, np.float64) / 255
    return Image.fromarray((WHITE_OF_PAPER + (BLACK_OF_INK - WHITE_OF_PAPER) * shares).round().astype(np.uint8))


def contact_sheet(image: Image.Image, maps: NDArray[np.floating], *, cell: int = 112, gap: int = 6) -> Image.Image:
    """Overlays of maps ``[blocks, heads, rows, cols]``, heads as rows and blocks as columns, each to its maximum."""
    blocks, heads = maps.shape[:2]
    first = overlay(image, maps[0, 0], display_size=cell)
    width, height = first.width + gap, first.height + gap
    sheet = Image.new("RGB", (blocks * width + gap, heads * height + gap), "white")
    for block in range(blocks):
        for head in range(heads):
            picture = overlay(image, maps[block, head], alpha=0.75, display_size=cell)
            sheet.paste(picture, (gap + block * width, gap + head * height))
    return sheet
