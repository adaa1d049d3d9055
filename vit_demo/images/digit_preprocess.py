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
from vit_demo.images.geometry import Box, Geometry
from vit_demo.images.ink import INK_THRESHOLD, extent, find_ink, perimeter_of
from vit_demo.images.reading import ImageSource, read_image

MNIST_MEAN = 0.1307
MNIST_STD = 0.3081

SIDE = 28  # side of the result, in pixels
INK_SIDE = 20  # longest side of the ink in the result, in pixels

STROKE_WIDTH_RANGE = (1.4, 4.8)  # percentiles 1 and 99 of MNIST's training digits, in pixels of the result
TYPICAL_STROKE_WIDTHS = (1.8, 3.5)  # percentiles 10 and 90, to which wider and thinner strokes are brought
MIN_STROKE_WIDTH = 1.2  # 0.2nd percentile: a drawing of MNIST's size with thinner strokes was made with a thin pen

_OVERSAMPLING = 8  # working pixels per pixel of the result


def to_mnist(image: ImageSource) -> np.ndarray:
    """Converts a drawn or photographed digit, anything that `read_image` takes, to MNIST's format: uint8 [28, 28].

    Ink may be dark on light, light on dark or coloured, at any place and of any size. Strokes outside MNIST's range of
    widths are brought into it. An image in MNIST's format is returned unchanged.

    Raises:
        EmptyDrawingError: If there is no ink, or nothing larger than a speck.
        ImageError: If the picture cannot be read.
    """
    return place_digit(image)[0]


def place_digit(image: ImageSource) -> tuple[np.ndarray, Geometry]:
    """As `to_mnist`, with the square of the picture whose ink the result shows; it may reach beyond the picture."""
    picture = read_image(image)
    digit = _if_in_mnist_format(picture)
    box: Box = (0, 0, SIDE, SIDE)
    if digit is None:
        found = find_ink(picture)
        if found is None:
            raise EmptyDrawingError("No digit is seen: draw one, or choose a photo of dark ink on light paper.")
        fitted, box = _fit(*_crop(*found))
        digit, box = _centre((fitted * (255 / fitted.max())).round().astype(np.uint8), box)
    return digit, Geometry(picture.size, box, (SIDE, SIDE), "keep")


def digit_to_tensor(digit: np.ndarray) -> tuple[torch.Tensor, Geometry]:
    """Normalizes a digit, uint8 [28, 28], to float32 [1, 1, 28, 28]; its geometry covers the whole digit."""
    tensor = torch.from_numpy((digit.astype(np.float32) / 255 - MNIST_MEAN) / MNIST_STD)
    return tensor[None, None], Geometry((SIDE, SIDE), (0, 0, SIDE, SIDE), (SIDE, SIDE), "keep")


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


def _crop(ink: np.ndarray, box: Box) -> tuple[np.ndarray, Box]:
    """The part of ink with anything in it, and where that lies, if all of it lies in a box."""
    rows, cols = extent(ink > INK_THRESHOLD)
    top, bottom, left, right = rows[0], rows[-1] + 1, cols[0], cols[-1] + 1
    x, y = (box[2] - box[0]) / ink.shape[1], (box[3] - box[1]) / ink.shape[0]
    place = box[0] + left * x, box[1] + top * y, box[0] + right * x, box[1] + bottom * y
    return ink[top:bottom, left:right], place


def _fit(ink: np.ndarray, box: Box) -> tuple[np.ndarray, Box]:
    """Scales ink that fills its box to MNIST's size, and corrects the stroke width if necessary."""
    fine = _resize_to(ink, INK_SIDE * _OVERSAMPLING)
    mask = fine > fine.max() / 2
    width = _stroke_width(mask) / _OVERSAMPLING
    wanted = width
    if abs(max(ink.shape) - INK_SIDE) <= 1:
        if width > MIN_STROKE_WIDTH:
            return ink, box  # has the right size already, and resampling could only blur it
        wanted = TYPICAL_STROKE_WIDTHS[0]
    elif not STROKE_WIDTH_RANGE[0] <= width <= STROKE_WIDTH_RANGE[1]:
        wanted = float(np.clip(width, *TYPICAL_STROKE_WIDTHS))
    if wanted != width:
        # Dilation enlarges the digit, and scaling it back makes its strokes thinner again: compensate for that.
        change = (wanted - width) * INK_SIDE / (INK_SIDE - wanted)
        # Erosion takes at most a third of the mean width, so that thinner parts survive.
        radius = max(change, -width / 3) / 2 * _OVERSAMPLING
        ink, box = _crop(*_grow(mask, box, radius))
        fine = _resize_to(ink, INK_SIDE * _OVERSAMPLING)
    return _resize_to(fine, INK_SIDE, Image.Resampling.BOX), box


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


def _grow(mask: np.ndarray, box: Box, radius: float) -> tuple[np.ndarray, Box]:
    """Dilates a mask by a disc, or erodes it if the radius is negative; float32, mask and box padded on all sides."""
    margin = int(np.ceil(abs(radius))) + 1
    padded = np.pad(mask, margin)
    x, y = margin * (box[2] - box[0]) / mask.shape[1], margin * (box[3] - box[1]) / mask.shape[0]
    if radius > 0:
        grown = ndimage.distance_transform_edt(~padded) <= radius
    else:
        grown = ndimage.distance_transform_edt(padded) > -radius
    return grown.astype(np.float32), (box[0] - x, box[1] - y, box[2] + x, box[3] + y)


def _centre(digit: np.ndarray, box: Box) -> tuple[np.ndarray, Box]:
    """Places a digit in 28 x 28 pixels with its centre of mass at (14, 14), rounded to whole pixels.

    Returns them with the box of all these pixels: a square, though the digit's shorter side was rounded.
    """
    top, left = (
        int(np.clip(round(SIDE / 2 - centre), 0, SIDE - side))
        for centre, side in zip(ndimage.center_of_mass(digit), digit.shape, strict=True)
    )
    height, width = digit.shape
    canvas = np.zeros((SIDE, SIDE), dtype=np.uint8)
    canvas[top : top + height, left : left + width] = digit
    scale = max(box[2] - box[0], box[3] - box[1]) / max(digit.shape)
    x, y = (box[0] + box[2]) / 2 - (left + width / 2) * scale, (box[1] + box[3]) / 2 - (top + height / 2) * scale
    return canvas, (x, y, x + SIDE * scale, y + SIDE * scale)
