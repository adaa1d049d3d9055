"""Synthetic digits in styles that are rare in MNIST: 1s with a long upstroke, crossed 7s, looped 2s and others.

MNIST was written in the United States. These strokes were designed for this project after how people elsewhere write.
"""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageDraw

from vit_demo.images import to_mnist
from vit_demo.training.data import ImageDataset

Stroke = list[tuple[float, float]]

# fmt: off
DIGIT_STROKES: list[tuple[int, list[Stroke]]] = [
    (1, [[(0.15, 0.45), (0.58, 0.08), (0.56, 0.95)]]),  # a long upstroke
    (1, [[(0.06, 0.6), (0.58, 0.06), (0.57, 0.95)]]),
    (1, [[(0.12, 0.52), (0.62, 0.05), (0.5, 0.95)]]),  # and a slanted leg
    (1, [[(0.22, 0.4), (0.6, 0.07), (0.62, 0.95)]]),
    (1, [[(0.3, 0.3), (0.55, 0.08), (0.55, 0.95)]]),
    (1, [[(0.25, 0.32), (0.52, 0.08), (0.52, 0.95)], [(0.25, 0.95), (0.8, 0.95)]]),  # and a foot
    (7, [[(0.2, 0.1), (0.8, 0.1), (0.42, 0.95)], [(0.35, 0.52), (0.75, 0.48)]]),  # crossed
    (7, [[(0.18, 0.28), (0.2, 0.1), (0.8, 0.08), (0.4, 0.95)]]),  # with a serif
    (7, [[(0.16, 0.2), (0.22, 0.1), (0.8, 0.1), (0.5, 0.95)], [(0.32, 0.5), (0.78, 0.5)]]),
    (7, [[(0.22, 0.12), (0.5, 0.16), (0.78, 0.08), (0.55, 0.5), (0.46, 0.95)]]),  # a wave on top
    (2, [[(0.58, 0.42), (0.36, 0.44), (0.22, 0.26), (0.4, 0.08), (0.64, 0.1), (0.72, 0.28), (0.58, 0.52), (0.22, 0.92)],
         [(0.22, 0.92), (0.8, 0.94)]]),  # a closed head
    (2, [[(0.3, 0.4), (0.22, 0.2), (0.45, 0.06), (0.7, 0.16), (0.64, 0.46), (0.2, 0.93)],
         [(0.2, 0.93), (0.82, 0.95)]]),
    (2, [[(0.22, 0.28), (0.4, 0.08), (0.7, 0.12), (0.7, 0.42), (0.36, 0.82), (0.2, 0.88), (0.24, 0.74), (0.44, 0.8),
          (0.84, 0.94)]]),  # a loop at the foot
    (3, [[(0.24, 0.2), (0.46, 0.06), (0.7, 0.18), (0.66, 0.4), (0.4, 0.47), (0.72, 0.6), (0.7, 0.84), (0.44, 0.95),
          (0.2, 0.84)]]),
    (3, [[(0.2, 0.1), (0.72, 0.1), (0.42, 0.42), (0.72, 0.62), (0.6, 0.9), (0.2, 0.88)]]),  # a flat top
    (4, [[(0.25, 0.08), (0.2, 0.58), (0.82, 0.58)], [(0.66, 0.1), (0.64, 0.95)]]),  # open
    (4, [[(0.6, 0.08), (0.16, 0.64), (0.86, 0.64)], [(0.62, 0.35), (0.6, 0.95)]]),
    (5, [[(0.32, 0.1), (0.28, 0.46), (0.56, 0.4), (0.76, 0.62), (0.6, 0.9), (0.22, 0.88)],
         [(0.32, 0.1), (0.76, 0.08)]]),
    (5, [[(0.76, 0.09), (0.3, 0.1), (0.27, 0.42), (0.55, 0.38), (0.78, 0.62), (0.62, 0.9), (0.22, 0.9)]]),  # one stroke
    (6, [[(0.6, 0.05), (0.3, 0.5), (0.28, 0.86), (0.56, 0.95), (0.72, 0.76), (0.56, 0.58), (0.3, 0.74)]]),
    (6, [[(0.66, 0.06), (0.34, 0.34), (0.24, 0.7), (0.42, 0.94), (0.7, 0.8), (0.62, 0.56), (0.3, 0.64)]]),
    (6, [[(0.62, 0.06), (0.36, 0.3), (0.26, 0.62), (0.34, 0.9), (0.58, 0.93), (0.72, 0.74), (0.58, 0.6),
          (0.44, 0.66)]]),  # open
    (6, [[(0.52, 0.05), (0.3, 0.4), (0.26, 0.74), (0.44, 0.95), (0.7, 0.85), (0.7, 0.64), (0.56, 0.58)]]),
    (6, [[(0.7, 0.1), (0.42, 0.16), (0.28, 0.5), (0.3, 0.85), (0.56, 0.94), (0.74, 0.76), (0.6, 0.6), (0.46, 0.62)]]),
    (8, [[(0.5, 0.48), (0.26, 0.28), (0.48, 0.06), (0.72, 0.26), (0.5, 0.48), (0.24, 0.72), (0.5, 0.94), (0.76, 0.72),
          (0.5, 0.48)]]),
    (8, [[(0.68, 0.14), (0.42, 0.06), (0.3, 0.26), (0.66, 0.66), (0.56, 0.93), (0.28, 0.84), (0.36, 0.56),
          (0.7, 0.14)]]),
    (9, [[(0.72, 0.22), (0.46, 0.06), (0.24, 0.26), (0.42, 0.48), (0.7, 0.3), (0.72, 0.2), (0.7, 0.72), (0.52, 0.94),
          (0.24, 0.86)]]),  # a bent leg
    (9, [[(0.68, 0.22), (0.44, 0.08), (0.26, 0.28), (0.46, 0.46), (0.68, 0.24), (0.64, 0.95)]]),
    (0, [[(0.4, 0.1), (0.16, 0.4), (0.22, 0.8), (0.5, 0.93), (0.8, 0.74), (0.84, 0.34), (0.62, 0.08), (0.36, 0.12)]]),
    (4, [[(0.36, 0.06), (0.2, 0.5), (0.8, 0.52)], [(0.7, 0.06), (0.58, 0.95)]]),
    (4, [[(0.7, 0.95), (0.7, 0.06), (0.15, 0.66), (0.9, 0.66)]]),  # one stroke, closed
    (0, [[(0.5, 0.06), (0.24, 0.3), (0.26, 0.74), (0.52, 0.94), (0.76, 0.7), (0.72, 0.26), (0.5, 0.06)]]),
]
# fmt: on
"""Pairs of a digit and its strokes, x and y in [0, 1], y downwards."""

CANVAS_SIDE = 112
"""In pixels."""


def make_synthetic_digits(count: int, seed: int) -> ImageDataset:
    """Draws digits, each shape equally often, with random deformations and pens.

    Args:
        count: Number of digits.
        seed: Seed of all random choices.

    Returns:
        uint8 ``[count, 1, 28, 28]``, preprocessed as the page does it.
    """
    rng = np.random.default_rng(seed)
    shapes = [DIGIT_STROKES[i % len(DIGIT_STROKES)] for i in range(count)]
    images = np.stack([to_mnist(draw_strokes(strokes, rng)) for _, strokes in shapes])
    labels = torch.tensor([digit for digit, _ in shapes])
    return ImageDataset(torch.from_numpy(images)[:, None], labels, tuple("0123456789"))


def draw_strokes(strokes: list[Stroke], rng: np.random.Generator) -> np.ndarray:
    """Draws strokes in white on black with random slant, width, stretching, rounding and displaced points.

    Args:
        strokes: Polylines with x and y in [0, 1], y downwards.
        rng: Source of random numbers.

    Returns:
        uint8 ``[side, side]``: 112 pixels, or 20 to 32 for three drawings of ten, whose lines then look coarse.
    """
    is_coarse = rng.random() < 0.3
    side = int(rng.integers(20, 33)) if is_coarse else CANVAS_SIDE
    picture = Image.new("L", (side, side))
    pen = ImageDraw.Draw(picture)
    width = max(1, round(rng.uniform(0.04, 0.14) * side))
    slant, stretch, rounds = rng.uniform(-0.2, 0.2), np.exp(rng.uniform(-0.4, 0.4)), rng.integers(0, 4)
    for stroke in strokes:
        points = np.array(stroke) + rng.normal(0, 0.03, (len(stroke), 2))
        for _ in range(rounds):
            points = _round_corners(points)
        x = 0.5 + (points[:, 0] - 0.5) * stretch + (0.5 - points[:, 1]) * slant
        path = np.stack([0.15 + 0.7 * x, 0.15 + 0.7 * points[:, 1]], axis=1) * side
        pen.line([tuple(p) for p in path], fill=255, width=width, joint="curve")
        for px, py in path[[0, -1]] if width > 2 else ():  # round ends
            pen.ellipse((px - width / 2, py - width / 2, px + width / 2, py + width / 2), fill=255)
    return np.asarray(picture)


def _round_corners(points: np.ndarray) -> np.ndarray:
    """Cuts the corners of a polyline ``[n, 2]`` and keeps its ends (Chaikin, 1974)."""
    near, far = 0.75 * points[:-1] + 0.25 * points[1:], 0.25 * points[:-1] + 0.75 * points[1:]
    inner = np.stack([near, far], axis=1).reshape(-1, 2)
    return np.concatenate([points[:1], inner[1:-1], points[-1:]])
