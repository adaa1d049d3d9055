"""Digits: from a drawing or a photo of a digit to MNIST's format, and to the input tensor.

LeCun et al., "Gradient-based learning applied to document recognition", 1998: white ink on black, scaled into
20 x 20 pixels with its aspect ratio kept and its edges smoothed, then placed with its centre of mass at the centre of
28 x 28 pixels.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from scipy import ndimage

from vit_demo.errors import EmptyDrawingError
from vit_demo.images.geometry import Geometry
from vit_demo.images.ink import INK_THRESHOLD, extent, find_ink, perimeter_of
from vit_demo.images.reading import ImageSource, read_image

MNIST_MEAN = 0.1307
MNIST_STD = 0.3081

SIDE = 28
"""Side of the result, in pixels."""

INK_SIDE = 20
"""Longest side of the ink in the result, in pixels."""

STROKE_WIDTH_RANGE = (1.4, 4.8)
"""1st and 99th percentile of the stroke width in MNIST's training digits, in pixels of the result."""

TYPICAL_STROKE_WIDTHS = (1.8, 3.5)
"""10th and 90th percentile; strokes outside `STROKE_WIDTH_RANGE` are brought to the nearer one."""

MIN_STROKE_WIDTH = 1.2
"""0.2nd percentile: a drawing of MNIST's size with thinner strokes was made with a thin pen."""

_OVERSAMPLING = 8  # working pixels per pixel of the result


def to_mnist(image: ImageSource) -> np.ndarray:
    """Converts a drawn or photographed digit, anything that `read_image` takes, to MNIST's format.

    Ink may be dark on light, light on dark or coloured, at any place and of any size. Strokes outside MNIST's range of
    widths are brought into it. An image in MNIST's format is returned unchanged.

    Returns:
        uint8 [28, 28], white ink on black.

    Raises:
        EmptyDrawingError: There is no ink, or nothing larger than a speck.
        ImageError: The picture cannot be read.
    """
    picture = read_image(image)
    digit = _if_in_mnist_format(picture)
    if digit is not None:
        return digit
    ink = find_ink(picture)
    if ink is None:
        raise EmptyDrawingError("No digit is seen: draw one, or choose a photo of dark ink on light paper.")
    digit = _fit(_crop(ink))
    return _centre((digit * (255 / digit.max())).round().astype(np.uint8))


def digit_to_tensor(digit: np.ndarray) -> tuple[torch.Tensor, Geometry]:
    """Normalizes a digit, uint8 [28, 28], to float32 [1, 1, 28, 28]; its geometry covers the whole digit."""
    height, width = digit.shape
    tensor = torch.from_numpy((digit.astype(np.float32) / 255 - MNIST_MEAN) / MNIST_STD)
    box = (0.0, 0.0, float(width), float(height))
    return tensor[None, None], Geometry((width, height), box, (width, height), "keep")


def _if_in_mnist_format(image: Image.Image) -> np.ndarray | None:
    """The pixels of a picture in MNIST's format, which processing could only blur or shift; None for any other."""
    if image.size != (SIDE, SIDE):
        return None
    digit = np.asarray(image.convert("L"))
    if np.median(digit) > 127:
        digit = 255 - digit
    if digit.max() < 200 or max(np.ptp(indices) for indices in np.nonzero(digit)) + 1 not in (INK_SIDE - 1, INK_SIDE):
        return None
    return digit if all(abs(SIDE / 2 - centre) <= 0.5 for centre in ndimage.center_of_mass(digit)) else None


def _crop(ink: np.ndarray) -> np.ndarray:
    rows, cols = extent(ink > INK_THRESHOLD)
    return ink[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]


def _fit(ink: np.ndarray) -> np.ndarray:
    """Scales ink that fills its array to MNIST's size, and corrects the stroke width if necessary."""
    fine = _resize_to(ink, INK_SIDE * _OVERSAMPLING)
    mask = fine > fine.max() / 2
    width = _stroke_width(mask) / _OVERSAMPLING
    wanted = width
    if abs(max(ink.shape) - INK_SIDE) <= 1:
        if width > MIN_STROKE_WIDTH:
            return ink  # has the right size already, and resampling could only blur it
        wanted = TYPICAL_STROKE_WIDTHS[0]
    elif not STROKE_WIDTH_RANGE[0] <= width <= STROKE_WIDTH_RANGE[1]:
        wanted = float(np.clip(width, *TYPICAL_STROKE_WIDTHS))
    if wanted != width:
        # Dilation enlarges the digit, and scaling it back makes its strokes thinner again: compensate for that.
        change = (wanted - width) * INK_SIDE / (INK_SIDE - wanted)
        # Erosion takes at most a third of the mean width, so that thinner parts survive.
        radius = max(change, -width / 3) / 2 * _OVERSAMPLING
        fine = _resize_to(_crop(_grow(mask, radius)), INK_SIDE * _OVERSAMPLING)
    return _resize_to(fine, INK_SIDE, Image.Resampling.BOX)


def _resize_to(ink: np.ndarray, longest: int, resampling: Image.Resampling = Image.Resampling.BICUBIC) -> np.ndarray:
    # Averaging a thin stroke with the paper beside it would fade it, so most of a reduction is max pooling.
    stride = max(1, max(ink.shape) // longest) if resampling is Image.Resampling.BICUBIC else 1
    if stride > 1:
        ink = F.max_pool2d(torch.from_numpy(ink)[None, None], stride, ceil_mode=True)[0, 0].numpy()
    height, width = (max(1, round(side * longest / max(ink.shape))) for side in ink.shape)
    return np.asarray(Image.fromarray(ink).resize((width, height), resampling)).clip(0, 1)


def _stroke_width(mask: np.ndarray) -> float:
    """Estimates the mean stroke width, in pixels, as twice the area divided by the perimeter."""
    mask = np.pad(mask, 1)
    return float(2 * mask.sum() / max(perimeter_of(mask), 1))


def _grow(mask: np.ndarray, radius: float) -> np.ndarray:
    """Dilates a mask by a disc, or erodes it if the radius is negative; float32, padded on all sides."""
    padded = np.pad(mask, int(np.ceil(abs(radius))) + 1)
    if radius > 0:
        grown = ndimage.distance_transform_edt(~padded) <= radius
    else:
        grown = ndimage.distance_transform_edt(padded) > -radius
    return grown.astype(np.float32)


def _centre(digit: np.ndarray) -> np.ndarray:
    """Places a digit in 28 x 28 pixels with its centre of mass at (14, 14), rounded to whole pixels."""
    top, left = (
        int(np.clip(round(SIDE / 2 - centre), 0, SIDE - side))
        for centre, side in zip(ndimage.center_of_mass(digit), digit.shape, strict=True)
    )
    canvas = np.zeros((SIDE, SIDE), dtype=np.uint8)
    canvas[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    return canvas
