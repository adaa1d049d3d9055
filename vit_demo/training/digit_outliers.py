"""Drawings other than single digits, for outlier exposure: letters, symbols, scribbles and pairs of digits.

A network trained on digits alone classifies any drawing as a digit, often with high confidence. Trained on outliers
with the uniform distribution as their target, it learns to be unsure of them (Hendrycks et al., 2018,
https://arxiv.org/abs/1812.04606).
"""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import torch

from vit_demo.images import to_mnist
from vit_demo.training.data import OUTLIER, ImageDataset
from vit_demo.training.synthetic_digits import DIGIT_STROKES, Stroke, draw_strokes

# fmt: off
TRAINING_SYMBOLS: list[list[Stroke]] = [
    [[(0.15, 0.95), (0.5, 0.05), (0.85, 0.95)], [(0.28, 0.62), (0.72, 0.62)]],  # A
    [[(0.8, 0.08), (0.25, 0.08), (0.25, 0.95), (0.8, 0.95)], [(0.25, 0.5), (0.7, 0.5)]],  # E
    [[(0.8, 0.08), (0.25, 0.08), (0.25, 0.95)], [(0.25, 0.48), (0.7, 0.48)]],  # F
    [[(0.22, 0.05), (0.22, 0.95)], [(0.78, 0.05), (0.78, 0.95)], [(0.22, 0.5), (0.78, 0.5)]],  # H
    [[(0.25, 0.05), (0.25, 0.95)], [(0.78, 0.05), (0.28, 0.52), (0.8, 0.95)]],  # K
    [[(0.12, 0.95), (0.2, 0.05), (0.5, 0.7), (0.8, 0.05), (0.88, 0.95)]],  # M
    [[(0.2, 0.95), (0.2, 0.05), (0.8, 0.95), (0.8, 0.05)]],  # N
    [[(0.25, 0.95), (0.25, 0.05), (0.65, 0.08), (0.75, 0.28), (0.6, 0.48), (0.28, 0.5), (0.8, 0.95)]],  # R
    [[(0.1, 0.05), (0.3, 0.95), (0.5, 0.3), (0.7, 0.95), (0.9, 0.05)]],  # W
    [[(0.18, 0.05), (0.82, 0.95)], [(0.82, 0.05), (0.18, 0.95)]],  # X
    [[(0.12, 0.5), (0.12, 0.92)], [(0.12, 0.6), (0.3, 0.5), (0.42, 0.6), (0.42, 0.92)],
     [(0.42, 0.6), (0.62, 0.5), (0.76, 0.6), (0.76, 0.92)]],  # m
    [[(0.15, 0.4), (0.15, 0.75), (0.35, 0.9), (0.5, 0.75), (0.5, 0.45), (0.5, 0.75), (0.65, 0.9), (0.85, 0.75),
      (0.85, 0.4)]],  # omega
    [[(0.28, 0.05), (0.28, 0.95)], [(0.28, 0.62), (0.7, 0.4)], [(0.4, 0.58), (0.74, 0.95)]],  # k
    [[(0.5, 0.95), (0.12, 0.4), (0.28, 0.15), (0.5, 0.35), (0.72, 0.15), (0.88, 0.4), (0.5, 0.95)]],  # a heart
    [[(0.5, 0.08), (0.92, 0.9), (0.08, 0.9), (0.5, 0.08)]],  # a triangle
    [[(0.5, 0.1), (0.5, 0.9)], [(0.1, 0.5), (0.9, 0.5)], [(0.22, 0.22), (0.78, 0.78)],
     [(0.78, 0.22), (0.22, 0.78)]],  # an asterisk
    [[(0.35, 0.05), (0.25, 0.95)], [(0.72, 0.05), (0.62, 0.95)], [(0.1, 0.32), (0.9, 0.32)],
     [(0.08, 0.68), (0.88, 0.68)]],  # a hash
    [[(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9), (0.1, 0.1)], [(0.1, 0.1), (0.9, 0.9)]],  # a crossed box
]
# fmt: on
"""Strokes of letters and symbols that do not resemble digits: x and y in [0, 1], y downwards."""

EVALUATION_SYMBOLS: dict[str, dict[str, list[Stroke]]] = json.loads(
    files(__package__).joinpath("digit_outliers.json").read_text()
)
"""Other letters, symbols and scribbles, by kind and name: for evaluation only, never trained on."""

EVALUATION_KINDS = (*EVALUATION_SYMBOLS, "two digits")
DRAWINGS_PER_SYMBOL = 5
"""How often each symbol is drawn for evaluation, each time with other random deformations and another pen."""


def evaluation_digit_outliers(kind: str) -> ImageDataset:
    """Outliers for evaluation, preprocessed as the page does it.

    Args:
        kind: One of ``EVALUATION_KINDS``.

    Returns:
        uint8 ``[N, 1, 28, 28]``, always the same, all labelled ``OUTLIER``.
    """
    rng = np.random.default_rng(2026)
    symbols = (
        list(EVALUATION_SYMBOLS[kind].values())
        if kind in EVALUATION_SYMBOLS
        else [_two_digits(i, rng) for i in range(20)]
    )
    images = np.stack([to_mnist(draw_strokes(strokes, rng)) for strokes in symbols for _ in range(DRAWINGS_PER_SYMBOL)])
    labels = torch.full((len(images),), OUTLIER)
    return ImageDataset(torch.from_numpy(images)[:, None], labels, tuple("0123456789"))


def make_digit_outliers(count: int, seed: int, digits: ImageDataset) -> ImageDataset:
    """Outliers for training: symbols, scribbles and pairs of digits, a third of each.

    Args:
        count: Number of drawings.
        seed: Seed of all random choices.
        digits: The training digits that pairs are put together from.

    Returns:
        uint8 ``[count, 1, 28, 28]``, preprocessed as the page does it, all labelled ``OUTLIER``.
    """
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: draw_strokes(TRAINING_SYMBOLS[rng.integers(len(TRAINING_SYMBOLS))], rng),
        lambda: draw_strokes(_scribble(rng), rng),
        lambda: _pair(digits, rng),
    )
    images = np.stack([to_mnist(kinds[i % len(kinds)]()) for i in range(count)])
    return ImageDataset(torch.from_numpy(images)[:, None], torch.full((count,), OUTLIER), digits.classes)


def _scribble(rng: np.random.Generator) -> list[Stroke]:
    """The stroke of a random polyline, a zigzag or a coil."""
    kind, n = rng.integers(3), int(rng.integers(8, 24))
    t = np.linspace(0, 1, n)
    if kind == 0:
        points = rng.random((n, 2))
    elif kind == 1:
        points = np.stack([t, 0.5 + (np.arange(n) % 2 - 0.5) * rng.uniform(0.3, 1.0)], axis=1)
        if rng.random() < 0.5:
            points = points[:, ::-1]
    else:
        turns, shift = rng.uniform(2.5, 5), rng.uniform(0, 0.6)
        angle = np.linspace(0, 2 * np.pi * turns, 4 * n)
        radius = np.linspace(rng.uniform(0.0, 0.1), 0.5, 4 * n)
        points = np.stack([0.5 + radius * np.cos(angle) + shift * np.linspace(-0.5, 0.5, 4 * n),
                           0.5 + radius * np.sin(angle)], axis=1)  # fmt: skip
    return [[(float(x), float(y)) for x, y in points]]


def _pair(digits: ImageDataset, rng: np.random.Generator) -> np.ndarray:
    """Two of the digits side by side, uint8 ``[height, width]``."""
    left, right = (digits.images[int(i), 0].numpy() for i in rng.integers(len(digits), size=2))
    gap, drop = int(rng.integers(1, 8)), int(rng.integers(0, 5))
    left, right = (image[:, np.flatnonzero(image.max(0) > 60)] for image in (left, right))
    canvas = np.zeros((28 + drop, left.shape[1] + gap + right.shape[1]), np.uint8)
    canvas[:28, : left.shape[1]] = left
    canvas[drop:, -right.shape[1] :] = right
    return np.pad(canvas, 4)


def _two_digits(first: int, rng: np.random.Generator) -> list[Stroke]:
    """The strokes of a digit with a random other one to its right."""
    left = DIGIT_STROKES[first % len(DIGIT_STROKES)][1]
    right = DIGIT_STROKES[int(rng.integers(len(DIGIT_STROKES)))][1]
    narrow = [[(x / 2, y) for x, y in stroke] for stroke in left]
    return narrow + [[(0.5 + x / 2, y) for x, y in stroke] for stroke in right]
