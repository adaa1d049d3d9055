"""Tells drawings from photos, and separates ink from paper, on a clean pad or in a photograph.

Components and distances are SciPy's: the same to the bit as max pooling in torch, in a quarter of the time.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter
from scipy import ndimage

from vit_demo.images.geometry import Box

INK_THRESHOLD = 0.2  # share of full ink from which a pixel counts as ink

_MIN_CONTRAST = 24  # of 255; fainter marks are hardly visible

_SIDES = (256, 32)  # longest sides, in pixels, of the pictures looked at; the second for strokes with blurred edges
_LINE_WIDTH = 0.03  # of the widest ruled line, as a share of the longer side; the pad's thinnest pen has 0.055
_FRAME = 0.08  # of the margin in which pieces of a cell's border lie, in the same unit
_THUMBNAIL = 64  # longest side below which there is too little paper to tell light, bars and print from strokes
_PAPER = 24  # distance of colours, of 255, up to which a pixel is paper
_FLAT = 8  # distance for most of the paper: above what a JPEG adds around strokes, below a camera's light and noise

_INK = 45  # distance up to which a pixel lies between paper and ink: in a JPEG the edges of strokes blur
_MAX_EDGES = 0.9  # pixels halfway between paper and ink over the perimeter: strokes have no other shades
_MAX_LENGTH = 4.0  # length of the strokes over the drawing's larger side; at most 3.6 in MNIST's test digits
_MAX_WIDTH = 0.3  # mean width of the strokes in the same unit; 0.26 in MNIST's test digits at most


def find_ink(image: Image.Image) -> tuple[np.ndarray, Box] | None:
    """Separates ink, float32 [H, W] from 0 (paper) to 1, from paper in an RGB picture, whichever of them is darker.

    Returns it with the part of the picture that it covers; None if there is nothing but paper and specks.
    """
    given = image.size
    image = _as_grey(_reduce_to(image, 1024))  # finer detail takes time and adds nothing
    scale, is_thumbnail = max(given) / max(image.size), max(image.size) < _THUMBNAIL
    box = (0, 0, *image.size) if is_thumbnail else _between_bars(image)
    image = image.crop(box) if box != (0, 0, *image.size) else image
    contrast, flat = _contrast_on_uniform_paper(_channels(image))
    floor = 0.0
    photo = not flat and max(image.size) >= _THUMBNAIL  # only a photo has paper of varying colour
    if photo:
        contrast = _contrast_under_uneven_light(_reduce_to(image, 512))  # averaging pixels reduces noise
        # Most of the picture is paper, so median and median absolute deviation describe the paper and its noise.
        paper = float(np.median(contrast))
        floor = paper + 4 * 1.48 * float(np.median(np.abs(contrast - paper)))

    candidates = contrast[contrast > floor + _MIN_CONTRAST]
    if candidates.size == 0:
        return None
    full = float(np.percentile(candidates, 99))
    ink = ((contrast - floor) / (full - floor)).clip(0, 1)
    if photo:  # pressure and light vary along a stroke, but MNIST's strokes are uniform
        ink = ((ink - 0.25) * 2).clip(0, 1)
    clean = _remove_specks(ink if is_thumbnail else _without_lines(ink), photo, is_thumbnail)
    return None if clean is None else (clean, (box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale))


def _as_grey(image: Image.Image) -> Image.Image:
    """One channel of a picture whose three are equal, such as a drawing; any other as it is."""
    red, green, blue = image.split()
    levels = red.tobytes()
    return red if levels == green.tobytes() and levels == blue.tobytes() else image


def _channels(image: Image.Image) -> np.ndarray:
    """The levels of a grey or RGB picture: uint8 ``[C, H, W]``."""
    return np.stack([np.asarray(channel) for channel in image.split()])


def _reduce_to(image: Image.Image, side: int) -> Image.Image:
    """Averages whole blocks of pixels, so that even a line of one pixel is kept."""
    return image.reduce(-(-max(image.size) // side))


def _contrast_on_uniform_paper(channels: np.ndarray) -> tuple[np.ndarray, bool]:
    """Contrast, from 0 to 255, of each pixel to a uniform background, whatever the colours of paper and ink are.

    Takes uint8 [C, H, W]. Also returns whether nearly all of the paper has one colour.
    """
    border = border_of(channels[0])
    # Of the light and the dark half of the values, paper is the one that covers more of the border and of the whole.
    values = channels[np.ptp(channels, axis=(1, 2)).argmax()]
    light = values >= (int(values.min()) + int(values.max()) + 1) // 2
    paper = light if _share(light) + _share(light[border]) >= 1 else ~light
    contrast = _colour_distance(channels, paper)
    # The threshold may have cut through the noise of the paper, so estimate its colour again from all pixels near it.
    contrast = _colour_distance(channels, contrast <= max(_MIN_CONTRAST, contrast.min()))
    paper = contrast <= _MIN_CONTRAST
    return contrast, bool(np.count_nonzero(contrast <= 4) > 0.75 * np.count_nonzero(paper))


def _share(mask: np.ndarray) -> float:
    return np.count_nonzero(mask) / mask.size


def _colour_distance(channels: np.ndarray, paper: np.ndarray) -> np.ndarray:
    """Distance of each pixel from the median colour of the paper, in the channel where it is largest."""
    colour = [np.float32(np.median(channel[paper])) for channel in channels]
    return np.abs(channels - np.array(colour)[:, None, None]).max(0)


def _contrast_under_uneven_light(image: Image.Image) -> np.ndarray:
    """Share of the light that ink absorbs on unevenly lit paper, float32 [H, W] in units of 1/255; below 0 if lighter.

    The brightness of the paper under the ink is estimated by a morphological closing with a window wider than any
    stroke, which keeps the edges of shadows. Dividing by it makes ink in shadow as strong as ink in light.
    """
    small = image.copy()
    small.thumbnail((128, 128))  # light changes slowly
    pixels, coarse = (_channels(each).astype(np.float32) for each in (image, small))
    # Ink covers few pixels, which differ much from their surroundings: dark ink skews the differences downwards.
    difference = coarse - _channels(small.filter(ImageFilter.BoxBlur(16)))
    difference = difference[:, 10:-10, 10:-10]  # the edge may show a cell's border or the table
    if (difference[np.abs(difference) > _MIN_CONTRAST] ** 3).sum() > 0:
        pixels, coarse = 255 - pixels, 255 - coarse
    # The second window is wider than the first, since at full resolution the edge of a shadow may lie elsewhere.
    first, second = 33, 37
    margin = first // 2 + second // 2
    padded = np.pad(coarse, ((0, 0), (margin, margin), (margin, margin)), mode="edge")
    closed = ndimage.minimum_filter(ndimage.maximum_filter(padded, (1, first, first)), (1, second, second))
    paper = torch.from_numpy(closed[None, :, margin:-margin, margin:-margin])  # [1, C, h, w]
    paper = F.interpolate(paper, size=pixels.shape[1:], mode="bilinear").clamp(min=1)[0]
    return ((1 - pixels / paper.numpy()).max(axis=0) * 255).astype(np.float32)


def _between_bars(image: Image.Image) -> tuple[int, int, int, int]:
    """What lies between bars, as a letterbox has: lines at both ends in one colour, and none of it beside them."""
    block = -(-max(image.size) // 128)
    pixels = _channels(image.reduce(block)).astype(np.float32)
    box = [0, 0, *image.size]
    for axis, first_line in ((1, pixels[:, 0]), (0, pixels[:, :, 0])):
        distance = np.abs(pixels - first_line.mean(1)[:, None, None]).max(0)
        distance = distance if axis else distance.T
        bar = distance.max(1) <= _PAPER
        first, last = int(bar.argmin()) + 1, len(bar) - 1 - int(bar[::-1].argmin())  # next to each lies a blurred line
        is_pair = bar[0] and bar[-1] and first < last - 1 and distance[[first, last - 1]].min() > _PAPER
        if is_pair and _shows_writing(pixels[:, first:last] if axis else pixels[:, :, first:last]):
            box[axis], box[axis + 2] = first * block, last * block
    return box[0], box[1], box[2], box[3]


def _shows_writing(pixels: np.ndarray) -> bool:
    """Whether there is paper all around and ink within it, in pixels ``[C, H, W]``: a stroke alone has no paper."""
    border = border_of(pixels[0])
    paper = np.median(pixels[:, border], axis=1)
    ink = np.abs(pixels - paper[:, None, None]).max(0) > _INK
    inside = extent(ink & ~border)
    most = max(side.mean() for side in (ink[0], ink[-1], ink[:, 0], ink[:, -1]))
    return bool(most < 0.2 and max(map(len, inside)) > 0.25 * max(ink.shape))


def _without_lines(ink: np.ndarray) -> np.ndarray:
    """Erases ruled lines, also of a cell's border: thin, straight, from edge to edge, and longer than what is written.

    A stroke that crosses one is kept, and so is everything if strokes end where the lines do, as in a digit that was
    cut out closely, or if nothing else is there.
    """
    side, clean, ends = max(ink.shape), ink, []
    for _ in range(2):  # lines along the rows, then along the columns
        mask = (clean > INK_THRESHOLD).astype(np.uint8)
        rows = np.zeros(len(mask), bool)
        if mask.any(0).mean() > 0.95:
            length = 2 * round(_LINE_WIDTH * side / 2) + 3
            thick = ndimage.maximum_filter1d(ndimage.minimum_filter1d(mask, length, 0), length, 0)
            reach = 2 * (side // 40) + 1  # rows that hold a slightly slanted line
            near, thin = (ndimage.maximum_filter1d(part, reach, 0).mean(1) for part in (mask, mask & ~thick))
            rows = ndimage.maximum_filter1d((near > 0.95) & (thin > 0.4), reach + 2)
            clean = np.where(rows[:, None] & (ndimage.maximum_filter1d(thick, 3, 0) == 0), 0, clean)
        ends.append(rows.any())
        clean = clean.T
    left = clean > INK_THRESHOLD
    for found, part in zip(ends, (left.T, left), strict=True):
        edge = max(1, len(part) // 10)
        if found and max(part[:edge].mean(), part[-edge:].mean()) > 0.006:
            return ink
    return clean if any(ends) and max(map(len, extent(left))) > 0.1 * side else ink


def _remove_specks(ink: np.ndarray, photo: bool, is_thumbnail: bool) -> np.ndarray | None:
    """Erases connected components with very little ink; returns None if even the largest is only a speck.

    Unless in a thumbnail it erases frames as well, and in a photo what touches the border (the table, a finger), if
    enough else is left.
    """
    cell = -(-max(ink.shape) // 96)  # components are found on a coarse grid of cells
    height, width = ink.shape
    padded = np.pad(ink, ((0, -height % cell), (0, -width % cell)))
    # [cell * cell, rows, cols]: reducing the first axis is ten times as fast as reducing two short ones.
    cells = np.stack([padded[top::cell, left::cell] for top in range(cell) for left in range(cell)])
    labels, _ = ndimage.label(cells.max(0) > INK_THRESHOLD, structure=np.ones((3, 3)))
    amount = np.bincount(labels.ravel(), weights=cells.sum(0, dtype=np.float64).ravel())
    amount[0] = 0
    inner = amount.copy()
    inner[[] if is_thumbnail else _pieces_at_edges(labels, amount, photo)] = 0
    amount = inner if inner.max() > (0.05 if photo else 0.1) * amount.max() else amount

    def on_pixels(mask: np.ndarray) -> np.ndarray:
        return mask.repeat(cell, 0).repeat(cell, 1)[:height, :width]

    rows, cols = extent(on_pixels(labels == amount.argmax()) & (ink > INK_THRESHOLD))
    if max(np.ptp(rows), np.ptp(cols)) + 1 < max(2.0, 0.015 * max(ink.shape)):
        return None
    dropped = amount < 0.03 * amount.max()
    dropped[0] = False
    return np.where(on_pixels(dropped[labels]), 0, ink).astype(np.float32) if dropped.any() else ink


def _pieces_at_edges(labels: np.ndarray, amount: np.ndarray, photo: bool) -> list[int]:
    """Components that are not strokes: frames, and what fills or follows an edge; in photos all that touch an edge."""
    sides = [labels[0], labels[-1], labels[:, 0], labels[:, -1]]
    touching = set(np.concatenate(sides).tolist()) - {0}
    depth = round(_FRAME * max(labels.shape))
    inland = set(labels[depth:-depth, depth:-depth].ravel().tolist()) if touching and not photo else set()
    found = [i for i in touching if photo or i not in inland or any((side == i).mean() > 0.9 for side in sides)]
    boxes = ndimage.find_objects(labels)
    for i in map(int, np.argsort(amount)[-8:]):  # the largest few
        part = labels[boxes[i - 1]] if amount[i] else labels[:0]
        margin = round(0.12 * max(part.shape))
        middle = part[margin:-margin, margin:-margin]
        others = middle[(middle > 0) & (middle != i)]
        if others.size and (middle == i).sum() <= 0.05 * (part == i).sum():
            other = boxes[np.bincount(others).argmax() - 1]
            if max(one.stop - one.start for one in other) > 0.25 * max(part.shape):
                found.append(i)
    return found


def border_of(pixels: np.ndarray) -> np.ndarray:
    """Mask [H, W] of the border of a picture [H, W] or [H, W, C], a twentieth of its shorter side wide."""
    height, width = pixels.shape[:2]
    edge = max(1, min(height, width) // 20)
    border = np.ones((height, width), dtype=bool)
    border[edge : height - edge, edge : width - edge] = False
    return border


def perimeter_of(mask: np.ndarray) -> float:
    """The perimeter of a mask with a margin, averaged over all directions by Crofton's formula."""
    return (np.count_nonzero(mask[1:] != mask[:-1]) + np.count_nonzero(mask[:, 1:] != mask[:, :-1])) * np.pi / 4


def extent(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the columns of a mask [H, W] with anything in them, as indices."""
    return np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))


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
