"""What people put on a pad that is no digit: letters, signs, scribbles, two digits at once.

A network that has only ever seen digits answers any drawing with a digit, and often with confidence. Shown drawings
like these, with an even spread over all classes as the answer to give, it learns to doubt (outlier exposure; Hendrycks
et al., 2018, https://arxiv.org/abs/1812.04606).
"""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import torch

from vit_demo.images import to_mnist
from vit_demo.training.data import NO_CLASS, Labelled
from vit_demo.training.strokes import SHAPES, Stroke, draw

# fmt: off
SIGNS: list[list[Stroke]] = [
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
"""Strokes of letters and signs that look like no digit: x and y in [0, 1], y downwards."""

UNSEEN: dict[str, dict[str, list[Stroke]]] = json.loads(files(__package__).joinpath("unsure.json").read_text())
"""Other letters, signs and scribbles, drawn by hand to measure with and never trained on: by kind, by name."""

KINDS = (*UNSEEN, "two digits")
HANDS = 5
"""How often each drawing to measure with is drawn, each time by another hand and pen."""


def unsure_drawings(kind: str) -> Labelled:
    """Drawings of no digit that no training has seen, to measure with.

    Args:
        kind: One of ``KINDS``.

    Returns:
        As the page would hand them to a model, ``[N, 1, 28, 28]``, all labelled ``NO_CLASS``.
    """
    rng = np.random.default_rng(2026)
    shapes = list(UNSEEN[kind].values()) if kind in UNSEEN else [_two(i, rng) for i in range(20)]
    images = np.stack([to_mnist(draw(strokes, rng)) for strokes in shapes for _ in range(HANDS)])
    labels = torch.full((len(images),), NO_CLASS)
    return Labelled(torch.from_numpy(images)[:, None], labels, tuple("0123456789"))


def not_digits(count: int, seed: int, digits: Labelled) -> Labelled:
    """Draws what is no digit: signs, scribbles and pairs of digits, a third of each.

    Args:
        count: How many.
        seed: Of the hands.
        digits: To put two of side by side; training digits.

    Returns:
        As the page would hand them to a model, ``[count, 1, 28, 28]``, all labelled ``NO_CLASS``.
    """
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: draw(SIGNS[rng.integers(len(SIGNS))], rng),
        lambda: draw(_scribble(rng), rng),
        lambda: _pair(digits, rng),
    )
    images = np.stack([to_mnist(kinds[i % len(kinds)]()) for i in range(count)])
    return Labelled(torch.from_numpy(images)[:, None], torch.full((count,), NO_CLASS), digits.classes)


def _scribble(rng: np.random.Generator) -> list[Stroke]:
    """A line that wanders, a zigzag, or a coil."""
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


def _pair(digits: Labelled, rng: np.random.Generator) -> np.ndarray:
    """Two digits side by side, as near as in a number or a little apart."""
    left, right = (digits.images[int(i), 0].numpy() for i in rng.integers(len(digits), size=2))
    gap, drop = int(rng.integers(1, 8)), int(rng.integers(0, 5))
    left, right = (image[:, np.flatnonzero(image.max(0) > 60)] for image in (left, right))
    paper = np.zeros((28 + drop, left.shape[1] + gap + right.shape[1]), np.uint8)
    paper[:28, : left.shape[1]] = left
    paper[drop:, -right.shape[1] :] = right
    return np.pad(paper, 4)


def _two(first: int, rng: np.random.Generator) -> list[Stroke]:
    """A drawn digit and another one to its right."""
    left, right = SHAPES[first % len(SHAPES)][1], SHAPES[int(rng.integers(len(SHAPES)))][1]
    beside = [[(x / 2, y) for x, y in stroke] for stroke in left]
    return beside + [[(0.5 + x / 2, y) for x, y in stroke] for stroke in right]
