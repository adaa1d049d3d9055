"""Every block and head on one sheet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.render.overlay import overlay


def contact_sheet(
    image: Image.Image, maps: NDArray[np.floating], *, cell: int = 112, gap: int = 6, alpha: float = 0.75
) -> Image.Image:
    """Small overlays, heads as rows and blocks as columns.

    Args:
        image: What the model saw.
        maps: ``[blocks, heads, rows, cols]``; each is scaled to its own maximum.
        cell: Longest side of one overlay, in pixels.
        gap: Pixels between them.
        alpha: Opacity of each brightest patch.

    Returns:
        One RGB image on white.
    """
    blocks, heads = maps.shape[:2]
    first = overlay(image, maps[0, 0], display_size=cell)
    width, height = first.width + gap, first.height + gap
    sheet = Image.new("RGB", (blocks * width + gap, heads * height + gap), "white")
    for block in range(blocks):
        for head in range(heads):
            picture = overlay(image, maps[block, head], alpha=alpha, display_size=cell)
            sheet.paste(picture, (gap + block * width, gap + head * height))
    return sheet
