"""Tells drawings from photos, so that a photo is not read as a digit unless somebody says so."""

import numpy as np
from PIL import Image

from vit_demo.images.ink import border_of, perimeter_of

_SIDES = (256, 32)
"""Longest sides, in pixels, of the pictures that are looked at; the second for grey strokes with blurred edges."""

_PAPER = 24
"""Distance of colours, of 255, up to which a pixel is paper."""

_FLAT = 8
"""The same for most of the paper: a camera's light and noise differ more, what a JPEG adds around strokes less."""

_INK = 45
"""Distance of colours up to which a pixel lies between paper and ink: in a JPEG the edges of coloured strokes blur."""

_MAX_EDGES = 0.9
"""Pixels halfway between paper and ink, as a multiple of the strokes' perimeter: strokes have no other shades."""

_MAX_LENGTH = 4.0
"""Length of the strokes as a multiple of the drawing's larger side; 3.6 in MNIST's test digits at most."""

_MAX_WIDTH = 0.3
"""Mean width of the strokes in the same unit; 0.26 in MNIST's test digits at most."""


def is_drawing(image: Image.Image) -> bool:
    """Whether an RGB picture is a few strokes of one ink on paper of one colour, as a pad or MNIST has them.

    In doubt it is not: a photo of a written digit counts as a photo, like everything with light and shade.
    """
    large, small = (np.asarray(image.reduce(-(-max(image.size) // side)), np.float32) for side in _SIDES)
    return _has_strokes(large) or (bool(np.ptp(small, axis=2).max() <= _FLAT) and _has_strokes(small))


def _has_strokes(pixels: np.ndarray) -> bool:
    """As ``is_drawing``, of pixels ``[H, W, 3]`` from 0 to 255."""
    border = border_of(pixels)
    paper = np.median(pixels[border], axis=0)
    contrast = np.abs(pixels - paper).max(-1)
    on_paper = contrast <= _PAPER
    if on_paper.all() or on_paper.mean() < 0.5 or on_paper[border].mean() < 0.85:
        return False
    if (contrast[on_paper] <= _FLAT).mean() < 0.9:
        return False
    ink = np.median(pixels[contrast >= 0.8 * contrast.max()], axis=0) - paper
    share = ((pixels - paper) @ ink / (ink @ ink)).clip(0, 1)  # 0 is paper, 1 is ink
    distance = np.abs(pixels - paper - share[..., None] * ink).max(-1)[~on_paper]
    if np.median(distance) > 18 or (distance <= _INK).mean() < 0.93:
        return False
    mask = np.pad(share > 0.5, 1)
    perimeter = perimeter_of(mask)
    side = max(np.ptp(indices) for indices in np.nonzero(mask)) + 1
    return bool(
        ((share > 0.25) & (share < 0.75)).sum() <= _MAX_EDGES * perimeter
        and perimeter / 2 <= _MAX_LENGTH * side
        and 2 * mask.sum() <= _MAX_WIDTH * side * perimeter
    )
