"""A heatmap over a picture, in perceptually even colours."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image

COLOUR_MAP = "magma"
"""Even steps of lightness, readable in grey and by the colour-blind."""

COARSE_PATCHES = 100
"""Maps of at most so many patches are drawn as cells, larger ones smoothly, as on the page."""


def colourise(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Colours for a map scaled to its own maximum.

    Args:
        values: ``[rows, cols]``; values below 0 are drawn as 0.

    Returns:
        RGB, uint8 ``[rows, cols, 3]``.
    """
    return (colormaps[COLOUR_MAP](_scaled(values))[..., :3] * 255).round().astype(np.uint8)


def overlay(
    image: Image.Image, values: NDArray[np.floating], *, alpha: float = 0.6, display_size: int = 448
) -> Image.Image:
    """Lays a map over a picture; patches with more weight are both brighter and more opaque.

    Args:
        image: What the model saw.
        values: ``[rows, cols]``, scaled to its own maximum for show; values below 0 are drawn as 0.
        alpha: Opacity of the brightest patch, in [0, 1].
        display_size: Longest side of the result, in pixels.

    Returns:
        An RGB image in the shape of ``image``.
    """
    scale = display_size / max(image.size)
    size = (round(image.width * scale), round(image.height * scale))
    smooth = Image.Resampling.NEAREST if values.size <= COARSE_PATCHES else Image.Resampling.BICUBIC
    picture_filter = Image.Resampling.BICUBIC if image.width > 64 else Image.Resampling.NEAREST
    picture = image.convert("RGB").resize(size, picture_filter)
    heat = Image.fromarray(colourise(values)).resize(size, smooth)
    opacity = alpha * (0.4 + 0.6 * _scaled(values))
    mask = Image.fromarray((opacity * 255).round().astype(np.uint8)).resize(size, smooth)
    return Image.composite(heat, picture, mask)


def _scaled(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """To [0, 1] by the maximum; a map without anything above 0 becomes zeros."""
    peak = float(values.max())
    return values.clip(0) / peak if peak > 0 else np.zeros_like(values)
