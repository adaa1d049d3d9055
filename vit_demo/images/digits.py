"""From a sketch or a photo of a digit to the convention of MNIST.

LeCun et al., "Gradient-based learning applied to document recognition", 1998: white ink on black, fitted into
20 x 20 pixels with its proportions kept and its edges smoothed, then placed by its centre of mass in the middle of
28 x 28 pixels.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from vit_demo.errors import EmptySketchError
from vit_demo.images.ink import OUTLINE, find_ink
from vit_demo.images.reading import ImageSource, read_image

SIDE = 28
"""Side of the result, in pixels."""

FITTED = 20
"""Longest side of the ink in the result, in pixels."""

STROKE_WIDTHS = (1.4, 4.8)
"""The 1st and 99th percentile of the stroke width in MNIST's training digits, in pixels of the result."""

USUAL_WIDTHS = (1.8, 3.5)
"""The 10th and 90th: what strokes outside `STROKE_WIDTHS` are brought to."""

THINNEST = 1.2
"""Thinner strokes than in any but one in 500 of MNIST's digits, though the size is already MNIST's: a thin pen."""

_FINE = 8  # working pixels for each pixel of the result


def to_mnist(image: ImageSource) -> np.ndarray:
    """Brings a drawn or photographed digit into the convention of MNIST.

    Ink may be dark on light, light on dark or coloured, anywhere, of any size; strokes much thinner or thicker than
    any in MNIST are brought into its range. An image that follows the convention already comes back unchanged.

    Args:
        image: anything `read_image` takes.

    Returns:
        uint8 [28, 28], white ink on black.

    Raises:
        EmptySketchError: there is no ink, or no more than a speck.
        ImageError: the picture cannot be read.
    """
    picture = read_image(image)
    digit = _as_it_is(picture)
    if digit is not None:
        return digit
    ink = find_ink(picture)
    if ink is None:
        raise EmptySketchError("The pad is empty: draw a digit first.")
    digit = _fit(_crop(ink))
    return _centre((digit * (255 / digit.max())).round().astype(np.uint8))


def _as_it_is(image: Image.Image) -> np.ndarray | None:
    """Gives the pixels of a picture that follows the convention, since taking it apart could only blur or shift it."""
    if image.size != (SIDE, SIDE):
        return None
    digit = np.asarray(image.convert("L"))
    if np.median(digit) > 127:
        digit = 255 - digit
    if digit.max() < 200 or max(np.ptp(indices) for indices in np.nonzero(digit)) + 1 not in (FITTED - 1, FITTED):
        return None
    return digit if all(abs(SIDE / 2 - centre) <= 0.5 for centre in _centre_of_mass(digit)) else None


def _crop(ink: np.ndarray) -> np.ndarray:
    rows, cols = np.nonzero(ink > OUTLINE)
    return ink[rows.min() : rows.max() + 1, cols.min() : cols.max() + 1]


def _fit(ink: np.ndarray) -> np.ndarray:
    """Scales ink that fills its array to the size, and if need be the stroke width, of MNIST."""
    fine = _resize_to(ink, FITTED * _FINE)
    mask = fine > fine.max() / 2
    width = _stroke_width(mask) / _FINE
    wanted = width
    if abs(max(ink.shape) - FITTED) <= 1:
        if width > THINNEST:
            return ink  # fits already, and resampling could only blur it
        wanted = USUAL_WIDTHS[0]
    elif not STROKE_WIDTHS[0] <= width <= STROKE_WIDTHS[1]:
        wanted = float(np.clip(width, *USUAL_WIDTHS))
    if wanted != width:
        # Growing makes the digit larger and fitting it again makes its strokes thinner: ask for that much more.
        change = (wanted - width) * FITTED / (FITTED - wanted)
        # Take away at most a third of a stroke, so that its thinner parts survive.
        radius = max(change, -width / 3) / 2 * _FINE
        fine = _resize_to(_crop(_grow(mask, radius)), FITTED * _FINE)
    return _resize_to(fine, FITTED, Image.Resampling.BOX)


def _resize_to(ink: np.ndarray, longest: int, resampling: Image.Resampling = Image.Resampling.BICUBIC) -> np.ndarray:
    # A thin stroke would fade if it was averaged with the paper beside it, so most of a reduction takes the maximum.
    stride = max(1, max(ink.shape) // longest) if resampling is Image.Resampling.BICUBIC else 1
    if stride > 1:
        ink = F.max_pool2d(torch.from_numpy(ink)[None, None], stride, ceil_mode=True)[0, 0].numpy()
    height, width = (max(1, round(side * longest / max(ink.shape))) for side in ink.shape)
    return np.asarray(Image.fromarray(ink).resize((width, height), resampling)).clip(0, 1)


def _stroke_width(mask: np.ndarray) -> float:
    """Estimates the mean width of strokes as twice their area over their perimeter, in pixels.

    The edges between pixels overstate a slanted outline; over all directions by 4 / pi (Crofton's formula).
    """
    mask = np.pad(mask, 1)
    edges = (mask[1:] != mask[:-1]).sum() + (mask[:, 1:] != mask[:, :-1]).sum()
    return float(2 * mask.sum() / max(edges * np.pi / 4, 1))


def _grow(mask: np.ndarray, radius: float) -> np.ndarray:
    """Dilates a mask by a disc, or erodes it where the radius is negative."""
    reach = int(np.ceil(abs(radius)))
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = torch.from_numpy((x * x + y * y <= radius * radius).astype(np.float32))[None, None]
    padded = torch.from_numpy(np.pad(mask, reach + 1) == (radius > 0)).float()[None, None]
    grown = F.conv2d(padded, disc, padding=reach)[0, 0].numpy() > 0.5
    return (grown == (radius > 0)).astype(np.float32)


def _centre(digit: np.ndarray) -> np.ndarray:
    """Places a digit with its centre of mass on pixel (14, 14), by whole pixels, and inside the image."""
    top, left = (
        int(np.clip(round(SIDE / 2 - centre), 0, SIDE - side))
        for centre, side in zip(_centre_of_mass(digit), digit.shape, strict=True)
    )
    canvas = np.zeros((SIDE, SIDE), dtype=np.uint8)
    canvas[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return canvas


def _centre_of_mass(digit: np.ndarray) -> tuple[float, float]:
    rows, cols = (
        np.average(np.arange(side), weights=digit.sum(axis=1 - axis)) for axis, side in enumerate(digit.shape)
    )
    return float(rows), float(cols)
