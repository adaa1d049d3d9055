"""Drawn training and test images: digits in styles that are rare in MNIST, and drawings that show no digit.

MNIST was written in the United States; the digits here follow how people elsewhere write: 1s with a long upstroke,
crossed 7s, looped 2s. The other drawings (letters, symbols, scribbles, pairs of digits) have the uniform distribution
as their target, so that the network learns to be unsure of them (Hendrycks et al., 2018,
https://arxiv.org/abs/1812.04606). All shapes are in ``strokes.json``.
"""

import json
from importlib.resources import files

import numpy as np
import torch
from PIL import Image, ImageDraw

from recipes.digits import DIGITS
from recipes.image_dataset import OUTLIER, ImageDataset
from vit_demo.images import to_mnist

Stroke = list[tuple[float, float]]

_SHAPES = json.loads(files(__package__).joinpath("strokes.json").read_text())

DIGIT_STROKES: list[tuple[int, list[Stroke]]] = [(shape["digit"], shape["strokes"]) for shape in _SHAPES["digits"]]
"""Pairs of a digit and its strokes, x and y in [0, 1], y downwards."""

TRAINING_SYMBOLS: list[list[Stroke]] = list(_SHAPES["training symbols"].values())
"""Letters and symbols that do not resemble digits."""

EVALUATION_SYMBOLS: dict[str, dict[str, list[Stroke]]] = {
    kind: _SHAPES[kind] for kind in ("letters", "symbols", "scribbles")
}
"""Other letters, symbols and scribbles, by kind and name: for evaluation only, never trained on."""

EVALUATION_KINDS = (*EVALUATION_SYMBOLS, "two digits")
DRAWINGS_PER_SYMBOL = 5
"""How often each symbol is drawn for evaluation, each time with other random deformations and another pen."""

CANVAS_SIDE = 112
"""In pixels."""


def make_synthetic_digits(count: int, seed: int) -> ImageDataset:
    """Draws digits for training, each shape equally often; ``[count, 1, 28, 28]``, preprocessed as the page does it."""
    rng = np.random.default_rng(seed)
    shapes = [DIGIT_STROKES[i % len(DIGIT_STROKES)] for i in range(count)]
    return _dataset([draw_strokes(strokes, rng) for _, strokes in shapes], [digit for digit, _ in shapes])


def make_digit_outliers(count: int, seed: int, digits: ImageDataset) -> ImageDataset:
    """Symbols, scribbles and pairs of training digits, a third of each: ``[count, 1, 28, 28]``, all ``OUTLIER``."""
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: draw_strokes(TRAINING_SYMBOLS[rng.integers(len(TRAINING_SYMBOLS))], rng),
        lambda: draw_strokes(_scribble(rng), rng),
        lambda: _pair(digits, rng),
    )
    return _dataset([kinds[i % len(kinds)]() for i in range(count)], [OUTLIER] * count)


def evaluation_digit_outliers(kind: str) -> ImageDataset:
    """Outliers for evaluation, always the same; ``kind`` is one of ``EVALUATION_KINDS``."""
    rng = np.random.default_rng(2026)
    if kind in EVALUATION_SYMBOLS:
        symbols = list(EVALUATION_SYMBOLS[kind].values())
    else:
        symbols = [_two_digits(i, rng) for i in range(20)]
    drawings = [draw_strokes(strokes, rng) for strokes in symbols for _ in range(DRAWINGS_PER_SYMBOL)]
    return _dataset(drawings, [OUTLIER] * len(drawings))


def draw_strokes(strokes: list[Stroke], rng: np.random.Generator) -> np.ndarray:
    """Draws strokes in white on black with random slant, width, stretching, rounding and displaced points.

    The picture, uint8, has sides of 112 pixels, or 20 to 32 for three drawings of ten, whose lines then look coarse.
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


def _dataset(drawings: list[np.ndarray], labels: list[int]) -> ImageDataset:
    images = torch.from_numpy(np.stack([to_mnist(drawing) for drawing in drawings]))
    return ImageDataset(images[:, None], torch.tensor(labels), DIGITS)  # [N, 28, 28] -> [N, 1, 28, 28]


def _round_corners(points: np.ndarray) -> np.ndarray:
    """Cuts the corners of a polyline ``[n, 2]`` and keeps its ends (Chaikin, 1974)."""
    near, far = 0.75 * points[:-1] + 0.25 * points[1:], 0.25 * points[:-1] + 0.75 * points[1:]
    inner = np.stack([near, far], axis=1).reshape(-1, 2)
    return np.concatenate([points[:1], inner[1:-1], points[-1:]])


def _scribble(rng: np.random.Generator) -> list[Stroke]:
    """The stroke of a random polyline, a zigzag or a coil."""
    kind, n = rng.integers(3), int(rng.integers(8, 24))
    if kind == 0:
        points = rng.random((n, 2))
    elif kind == 1:
        zigzag = 0.5 + (np.arange(n) % 2 - 0.5) * rng.uniform(0.3, 1.0)
        points = rng.permutation(np.stack([np.linspace(0, 1, n), zigzag])).T
    else:
        angle = np.linspace(0, 2 * np.pi * rng.uniform(2.5, 5), 4 * n)
        circles = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.linspace(0.05, 0.5, 4 * n)[:, None]
        points = 0.5 + circles + rng.uniform(0, 0.6) * np.linspace([-0.5, 0], [0.5, 0], 4 * n)
    return [[(float(x), float(y)) for x, y in points]]


def _pair(digits: ImageDataset, rng: np.random.Generator) -> np.ndarray:
    """Two of the digits side by side, uint8 ``[height, width]``."""
    left, right = (digits.images[int(i)][0].numpy() for i in rng.integers(len(digits), size=2))
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
