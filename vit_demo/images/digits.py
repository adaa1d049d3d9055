"""From a sketch or a photo of a digit to the convention of MNIST.

LeCun et al., "Gradient-based learning applied to document recognition", 1998: white ink on black, fitted into
20 x 20 pixels with its proportions kept and its edges smoothed, then placed by its centre of mass in the middle of
28 x 28 pixels.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter

from vit_demo.errors import EmptySketchError
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
_MIN_CONTRAST = 24  # of 255: what a person would not see as ink on paper
_INK = 0.2  # share of full ink from which a pixel counts towards the outline


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
    ink = _find_ink(picture)
    if ink is None:
        raise EmptySketchError("The pad is empty: draw a digit first.")
    digit = _fit(_crop(ink))
    return _centre((digit * (255 / digit.max())).round().astype(np.uint8))


def is_empty(image: ImageSource) -> bool:
    """Tells whether a picture holds no ink, or no more than a speck; see `to_mnist` for the argument."""
    return _find_ink(read_image(image)) is None


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


def _find_ink(image: Image.Image) -> np.ndarray | None:
    """Separates ink from paper.

    Returns:
        float32 [H, W] from 0 (paper) to 1 (ink), or None where there is nothing but paper and specks.
    """
    image = _at_most(image, 1024)  # finer detail costs time and tells nothing
    contrast, flat = _contrast_to_flat_paper(np.asarray(image, dtype=np.float32))
    floor = 0.0
    # Only a photograph has no one colour of paper; in a thumbnail there is too little paper to tell.
    photo = not flat and max(image.size) >= 64
    if photo:
        contrast = _contrast_to_lit_paper(_at_most(image, 512))  # averaging pixels calms their noise
        # Paper is most of the picture, so the median and the spread about it describe paper and its noise.
        paper = float(np.median(contrast))
        floor = paper + 4 * 1.48 * float(np.median(np.abs(contrast - paper)))

    candidates = contrast[contrast > floor + _MIN_CONTRAST]
    if candidates.size == 0:
        return None
    full = float(np.percentile(candidates, 99))
    ink = ((contrast - floor) / (full - floor)).clip(0, 1)
    if photo:  # pressure and light vary along a stroke, but MNIST's strokes are full ink throughout
        ink = ((ink - 0.25) * 2).clip(0, 1)
    return _without_specks(ink, drop_border=photo)


def _at_most(image: Image.Image, side: int) -> Image.Image:
    """Averages whole blocks of pixels, so that even a line of one pixel stays one line."""
    return image.reduce(-(-max(image.size) // side))


def _contrast_to_flat_paper(pixels: np.ndarray) -> tuple[np.ndarray, bool]:
    """Measures how far each pixel is from the one colour of a clean pad, whatever the two colours are.

    Returns:
        The contrast, float32 [H, W] from 0 to 255, and whether nearly all the paper has that colour.
    """
    height, width, _ = pixels.shape
    edge = max(1, min(height, width) // 20)
    border = np.ones((height, width), dtype=bool)
    border[edge : height - edge, edge : width - edge] = False
    # Paper is whichever half of the values fills more of the border and of the whole.
    values = pixels[..., np.ptp(pixels, axis=(0, 1)).argmax()]
    light = values >= (values.min() + values.max()) / 2
    paper = light if light.mean() + light[border].mean() >= 1 else ~light
    contrast = _distance(pixels, paper)
    # The half may have cut through the paper's own noise, so ask again from all that is near its middle.
    contrast = _distance(pixels, contrast <= max(_MIN_CONTRAST, contrast.min()))
    paper = contrast <= _MIN_CONTRAST
    return contrast, bool((contrast <= 4).sum() > 0.75 * paper.sum())


def _distance(pixels: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """Measures how far each pixel is from the median colour of those called paper, in the channel that tells most."""
    return np.abs(pixels - np.median(pixels[paper], axis=0)).max(axis=-1)


def _contrast_to_lit_paper(image: Image.Image) -> np.ndarray:
    """Measures the share of light that ink takes away from unevenly lit paper.

    The paper under the ink is guessed by a morphological closing with a window wider than any stroke, which keeps
    the edges of shadows; dividing by it makes ink in the shade as strong as ink in the light.

    Returns:
        float32 [H, W] of 255, below 0 where the paper is lighter than guessed.
    """
    small = image.copy()
    small.thumbnail((128, 128))  # light changes slowly
    pixels, coarse = _tensor(image), _tensor(small)
    # Ink is the minority that departs far from its surroundings: dark ink skews the departures downwards.
    departure = coarse - _tensor(small.filter(ImageFilter.BoxBlur(16)))
    if departure.pow(3).sum() > 0:
        pixels, coarse = 255 - pixels, 255 - coarse
    paper = F.pad(coarse, (34,) * 4, mode="replicate")
    # The second window is wider than the first, since in the fine picture the edge of a shadow is not quite here.
    paper = -_dilate(-_dilate(paper, 33), 37)[..., 34:-34, 34:-34]
    paper = F.interpolate(paper, size=pixels.shape[-2:], mode="bilinear").clamp(min=1)
    return ((1 - pixels / paper).amax(dim=1) * 255)[0].numpy()


def _tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image, dtype=np.float32)).permute(2, 0, 1)[None]  # [1, 3, H, W]


def _dilate(x: torch.Tensor, size: int) -> torch.Tensor:
    """Takes the maximum over a square window of odd size."""
    return F.max_pool2d(F.max_pool2d(x, (size, 1), 1, (size // 2, 0)), (1, size), 1, (0, size // 2))


def _without_specks(ink: np.ndarray, drop_border: bool) -> np.ndarray | None:
    """Erases the connected parts that hold next to no ink; None where even the largest part is but a speck.

    Args:
        ink: float32 [H, W] from 0 to 1.
        drop_border: also erase what touches the border (the table, a finger), unless nothing else is left.
    """
    cell = -(-max(ink.shape) // 96)  # parts are told apart on a coarse grid of cells
    cells = F.max_pool2d(torch.from_numpy(ink)[None, None], cell, ceil_mode=True) > _INK
    labels = torch.arange(1.0, cells.numel() + 1).view(cells.shape) * cells
    while True:  # the highest label floods its part
        flooded = _dilate(labels, 3) * cells
        if torch.equal(flooded, labels):
            break
        labels = flooded
    label = labels[0, 0].long().numpy().repeat(cell, 0).repeat(cell, 1)[: ink.shape[0], : ink.shape[1]]
    mass = np.bincount(label.ravel(), weights=ink.ravel())
    mass[0] = 0
    if drop_border:
        inner = mass.copy()
        inner[np.concatenate([label[0], label[-1], label[:, 0], label[:, -1]])] = 0
        mass = inner if inner.max() > 0.05 * mass.max() else mass
    rows, cols = np.nonzero((label == mass.argmax()) & (ink > _INK))
    if max(np.ptp(rows), np.ptp(cols)) + 1 < max(2.0, 0.015 * max(ink.shape)):
        return None
    dropped = mass < 0.03 * mass.max()
    dropped[0] = False
    return np.where(dropped[label], 0, ink).astype(np.float32)


def _crop(ink: np.ndarray) -> np.ndarray:
    rows, cols = np.nonzero(ink > _INK)
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
