"""Generated pictures that show none of the photo classes, for outlier exposure: blanks, noise, gradients, drawings.

Their training target is the uniform distribution, so that the network learns to be unsure of them (Hendrycks et al.,
2018, https://arxiv.org/abs/1812.04606).
"""

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from recipes.image_dataset import OUTLIER, ImageDataset

DRAWS_PER_EPOCH = 2.0
"""How often each picture is drawn in an epoch, on average."""


def make_photo_outliers(count: int, seed: int, side: int) -> ImageDataset:
    """Pictures ``[3, side, side]`` for training, each of ``KINDS`` equally often, all labelled ``OUTLIER``."""
    rng = np.random.default_rng(seed)
    kinds = list(KINDS.values())
    images = [_to_tensor(kinds[i % len(kinds)](rng, side)) for i in range(count)]
    return ImageDataset(images, torch.full((count,), OUTLIER), (), torch.full((count,), DRAWS_PER_EPOCH))


def evaluation_photo_outliers(side: int, per_kind: int = 50) -> dict[str, ImageDataset]:
    """Other pictures of the same kinds for evaluation: by kind, uint8 ``[per_kind, 3, side, side]``."""
    rng = np.random.default_rng(2026)
    labels = torch.full((per_kind,), OUTLIER)
    return {
        kind: ImageDataset(torch.stack([_to_tensor(draw(rng, side)) for _ in range(per_kind)]), labels, ())
        for kind, draw in KINDS.items()
    }


def _to_tensor(image: np.ndarray) -> Tensor:
    return torch.tensor(image).permute(2, 0, 1).contiguous()  # [side, side, 3] -> [3, side, side]


def _colour(rng: np.random.Generator) -> np.ndarray:
    """A random colour; half of the time white, black or a grey."""
    if rng.random() < 0.5:
        return np.full(3, rng.choice((0, 255, int(rng.integers(256)))), np.uint8)
    return rng.integers(0, 256, 3, np.uint8)


def _blank(rng: np.random.Generator, side: int) -> np.ndarray:
    """A single colour; two of three pictures have one or two dots in other colours."""
    image = np.empty((side, side, 3), np.uint8)
    image[:] = _colour(rng)
    for _ in range(rng.integers(0, 3)):
        row, col = rng.integers(side, size=2)
        size = rng.integers(1, 5)
        image[row : row + size, col : col + size] = _colour(rng)
    return image


def _noise(rng: np.random.Generator, side: int) -> np.ndarray:
    """Grey or coloured noise of random cell size, with hard or smooth cells."""
    cells, channels = int(rng.integers(3, side + 1)), int(rng.choice([1, 3]))
    noise = rng.normal(rng.uniform(60, 195), rng.uniform(10, 90), (cells, cells, channels))
    noise = np.broadcast_to(noise.clip(0, 255), (cells, cells, 3)).astype(np.uint8)
    how = Image.Resampling.NEAREST if rng.random() < 0.5 else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(noise).resize((side, side), how))


def _gradient(rng: np.random.Generator, side: int) -> np.ndarray:
    """A linear or radial gradient between two colours, sometimes as stripes."""
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    angle, (u, v) = rng.uniform(0, 2 * np.pi), rng.uniform(-1, 1, 2)
    t = x * np.cos(angle) + y * np.sin(angle) if rng.random() < 0.5 else np.hypot(x - u, y - v)
    t = (t - t.min()) / np.ptp(t)
    if rng.random() < 0.4:
        t = (t * rng.integers(2, 16)) % 1 > 0.5
    a, b = _colour(rng).astype(float), _colour(rng).astype(float)
    return (a + (b - a) * t[:, :, None]).round().astype(np.uint8)


def _drawing(rng: np.random.Generator, side: int) -> np.ndarray:
    """Lines, curves, rectangles and ellipses, some of them filled, on a plain background."""
    size = (2 * side, 2 * side)  # drawn at twice the size, for smooth edges
    image = Image.new("RGB", size, tuple(map(int, _colour(rng))))
    pen, width, line = ImageDraw.Draw(image), int(rng.integers(2, 20)), tuple(map(int, _colour(rng)))
    for _ in range(rng.integers(1, 9)):
        low, high = np.sort(rng.integers(0, 2 * side, (2, 2)), axis=0).tolist()
        fill = tuple(map(int, _colour(rng))) if rng.random() < 0.3 else None
        kind = rng.integers(4)
        if kind == 0:
            pen.rectangle([*low, *high], fill, line, width)
        elif kind == 1:
            pen.ellipse([*low, *high], fill, line, width)
        else:
            points = rng.integers(0, 2 * side, (int(rng.integers(2, 7)), 2))
            if kind == 3:  # a random walk, like a scribble
                points = points[0] + rng.normal(0, side / 6, (24, 2)).cumsum(0)
            pen.line([(float(u), float(v)) for u, v in points], line, width, "curve")
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "blank": _blank,
    "noise": _noise,
    "gradient": _gradient,
    "drawing": _drawing,
}
