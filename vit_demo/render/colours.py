"""Heatmap colours; the page gets the scales from here (``web/frontend/constants.py``).

One look for photos and drawings: a drawing is dark ink on light paper, a photo is grey, and over both lies a wash of
colour, nothing where the value is 0 and deeper where it is higher. Maps with a sign have two hues, blue below 0 and red
above, equally strong at equal distance from 0.
"""

import numpy as np
from numpy.typing import NDArray

SCALE = [
    [254, 198, 138], [254, 174, 119], [253, 150, 104], [250, 125, 94], [244, 103, 92],
    [232, 83, 98], [214, 69, 108], [194, 59, 117], [173, 52, 124],
]  # fmt: skip
"""matplotlib's magma from 0.88 down to 0.48: lighter than ink, so that a drawing stays readable."""

SIGNED_SCALE = [
    [32, 101, 171], [67, 147, 195], [144, 196, 221], [209, 229, 240], [247, 246, 246],
    [253, 219, 199], [243, 164, 129], [214, 96, 77], [177, 24, 43],
]  # fmt: skip
"""ColorBrewer's RdBu, reversed, from 0.1 to 0.9."""

WHITE_OF_PAPER = 252  # grey of the paper, from 0 to 255
BLACK_OF_INK = 40  # grey of the darkest ink


def heat_colours(shares: NDArray[np.floating], opacity: float, *, signed: bool = False) -> NDArray[np.float64]:
    """Colours of values ``[...]`` in [0, 1], or [-1, 1] if ``signed``, over a picture.

    ``opacity`` is that of the strongest value, in [0, 1]. Returns ``[..., 4]``: red, green, blue from 0 to 255, and
    opacity from 0 to 1.
    """
    shares = np.asarray(shares, np.float64).clip(-1 if signed else 0, 1)
    stops = np.array(SIGNED_SCALE if signed else SCALE, np.float64)
    at = ((shares + 1) / 2 if signed else shares) * (len(stops) - 1)
    below = np.minimum(at.astype(int), len(stops) - 2)
    colours = stops[below] + (stops[below + 1] - stops[below]) * (at - below)[..., None]
    strength = np.abs(shares)
    # Nothing is painted at 0. On paper the root makes equal steps of the value equal steps of lightness.
    alpha = opacity * np.sqrt(strength)
    return np.concatenate([colours, alpha[..., None]], -1)


def scale_end(values: NDArray[np.floating], floor: float = 0.0) -> float:
    """The value at the strong end of the scale of a map: its largest absolute value, at least the floor, and above 0.

    The floor makes a map without a meaningful value faint; see ``methods.units``.
    """
    return max(float(np.abs(values).max(initial=0)), floor, 1e-12)
