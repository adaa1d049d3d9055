"""What is ink and what is paper, on a clean pad or in a photograph."""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter

OUTLINE = 0.2
"""Share of full ink from which a pixel counts towards the outline."""

_MIN_CONTRAST = 24  # of 255: what a person would not see as ink on paper


def find_ink(image: Image.Image) -> np.ndarray | None:
    """Separates ink from paper, whichever of the two is darker.

    Args:
        image: an RGB picture.

    Returns:
        float32 [H, W] from 0 (paper) to 1 (ink), or None where there is nothing but paper and specks.
    """
    image = _at_most(image, 1024)  # finer detail costs time and tells nothing
    pixels = np.asarray(image)
    if (pixels[..., :1] == pixels).all():  # a grey picture, such as a drawing, says the same three times
        pixels = pixels[..., :1]
    contrast, flat = _contrast_to_flat_paper(pixels.astype(np.float32))
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
    cells = F.max_pool2d(torch.from_numpy(ink)[None, None], cell, ceil_mode=True) > OUTLINE
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
    rows, cols = np.nonzero((label == mass.argmax()) & (ink > OUTLINE))
    if max(np.ptp(rows), np.ptp(cols)) + 1 < max(2.0, 0.015 * max(ink.shape)):
        return None
    dropped = mass < 0.03 * mass.max()
    dropped[0] = False
    return np.where(dropped[label], 0, ink).astype(np.float32)
