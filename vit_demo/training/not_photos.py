"""Pictures that show none of the things that photos are told apart by: blanks, dots, noise, gradients, drawings.

Shown these with an even spread over all classes as the answer to give, a network learns to doubt them (outlier
exposure; Hendrycks et al., 2018, https://arxiv.org/abs/1812.04606).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageDraw

from vit_demo.training.data import NO_CLASS, Labelled

PASSES = 2.0
"""How often each picture comes up in an epoch."""


def not_photos(count: int, seed: int, side: int) -> Labelled:
    """Draws what is no photo, as many of each of ``KINDS``.

    Args:
        count: How many.
        seed: Of everything random.
        side: Pixels of a side.

    Returns:
        uint8 ``[count, 3, side, side]``, all labelled ``NO_CLASS``.
    """
    rng = np.random.default_rng(seed)
    kinds = list(KINDS.values())
    images = np.stack([kinds[i % len(kinds)](rng, side) for i in range(count)])  # [count, side, side, 3]
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    return Labelled(tensor, torch.full((count,), NO_CLASS), (), torch.ones(count), torch.full((count,), PASSES))


def _colour(rng: np.random.Generator) -> np.ndarray:
    """Any colour; as often as not white, black or a grey."""
    if rng.random() < 0.5:
        return np.full(3, rng.choice((0, 255, int(rng.integers(256)))), np.uint8)
    return rng.integers(0, 256, 3, np.uint8)


def _blank(rng: np.random.Generator, side: int) -> np.ndarray:
    """One colour, in two of three pictures with a few dots of another."""
    image = np.empty((side, side, 3), np.uint8)
    image[:] = _colour(rng)
    for _ in range(rng.integers(0, 3)):
        row, col = rng.integers(side, size=2)
        size = rng.integers(1, 5)
        image[row : row + size, col : col + size] = _colour(rng)
    return image


def _noise(rng: np.random.Generator, side: int) -> np.ndarray:
    """Random pixels, grey or coloured, single ones or coarse, hard or smooth."""
    cells, channels = int(rng.integers(3, side + 1)), int(rng.choice([1, 3]))
    noise = rng.normal(rng.uniform(60, 195), rng.uniform(10, 90), (cells, cells, channels))
    noise = np.broadcast_to(noise.clip(0, 255), (cells, cells, 3)).astype(np.uint8)
    how = Image.Resampling.NEAREST if rng.random() < 0.5 else Image.Resampling.BICUBIC
    return np.asarray(Image.fromarray(noise).resize((side, side), how))


def _gradient(rng: np.random.Generator, side: int) -> np.ndarray:
    """From one colour to another, along a line or around a point, at times in stripes."""
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    angle, (u, v) = rng.uniform(0, 2 * np.pi), rng.uniform(-1, 1, 2)
    t = x * np.cos(angle) + y * np.sin(angle) if rng.random() < 0.5 else np.hypot(x - u, y - v)
    t = (t - t.min()) / np.ptp(t)
    if rng.random() < 0.4:
        t = (t * rng.integers(2, 16)) % 1 > 0.5
    a, b = _colour(rng).astype(float), _colour(rng).astype(float)
    return (a + (b - a) * t[:, :, None]).round().astype(np.uint8)


def _drawing(rng: np.random.Generator, side: int) -> np.ndarray:
    """Lines, curves, boxes and ellipses in pen or filled, on paper of one colour."""
    image = Image.new("RGB", (2 * side, 2 * side), tuple(map(int, _colour(rng))))  # drawn large, then made smooth
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
            if kind == 3:  # a wandering line, as a hand draws it
                points = points[0] + rng.normal(0, side / 6, (24, 2)).cumsum(0)
            pen.line([(float(u), float(v)) for u, v in points], line, width, "curve")
    return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "blank": _blank,
    "noise": _noise,
    "gradient": _gradient,
    "drawing": _drawing,
}


def unseen_not_photos(side: int, each: int = 50) -> dict[str, Labelled]:
    """Other pictures of the same kinds, to measure with: by kind, uint8 ``[each, 3, side, side]``."""
    rng = np.random.default_rng(2026)
    found = {}
    for kind, draw in KINDS.items():
        images = torch.from_numpy(np.stack([draw(rng, side) for _ in range(each)]))  # [each, side, side, 3]
        found[kind] = Labelled(images.permute(0, 3, 1, 2).contiguous(), torch.full((each,), NO_CLASS), ())
    return found
