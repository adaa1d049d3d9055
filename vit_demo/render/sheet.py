"""Every block and head on one sheet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_demo.render.overlay import overlay


def contact_sheet(
    image: Image.Image, maps: NDArray[np.floating], *, cell: int = 112, gap: int = 6, alpha: float = 0.75
) -> Image.Image:
    """Overlays of maps ``[blocks, heads, rows, cols]``, heads as rows and blocks as columns, each to its maximum."""
    blocks, heads = maps.shape[:2]
    first = overlay(image, maps[0, 0], display_size=cell)
    width, height = first.width + gap, first.height + gap
    sheet = Image.new("RGB", (blocks * width + gap, heads * height + gap), "white")
    for block in range(blocks):
        for head in range(heads):
            picture = overlay(image, maps[block, head], alpha=alpha, display_size=cell)
            sheet.paste(picture, (gap + block * width, gap + head * height))
    return sheet
