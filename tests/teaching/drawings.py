"""Drawings of hearts and stars, as pupils make them: the same by formulas, turned, stretched and a bit unsteady."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

SIDE = 280


def _outline(kind: str) -> np.ndarray:
    """Points ``[N, 2]`` of the outline, from -1 to 1, downwards."""
    if kind == "star":
        turns = np.arange(11) * np.pi / 5
        radius = np.where(np.arange(11) % 2, 0.42, 1)
        return np.stack([radius * np.sin(turns), -radius * np.cos(turns)], 1)
    t = np.linspace(0, 2 * np.pi, 40)
    x, y = 16 * np.sin(t) ** 3, 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return np.stack([x, -y], 1) / 17


def drawing(kind: str, seed: int, *, line: bool = False) -> Image.Image:
    """One of many drawings of a ``"heart"`` or a ``"star"``, perhaps with a line below."""
    chance = np.random.default_rng([seed, kind == "star"])
    turn = chance.uniform(-0.2, 0.2)
    matrix = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    points = _outline(kind)
    points = (points + chance.normal(0, 0.02, points.shape)) @ matrix * chance.uniform(0.8, 1, 2)
    picture = Image.new("RGB", (SIDE, SIDE), "white")
    pen = ImageDraw.Draw(picture)
    middle = np.array([SIDE / 2, SIDE * 0.44])
    pen.line([tuple(point) for point in middle + 85 * points], fill="black", width=18, joint="curve")
    if line:
        y = 240 + chance.uniform(-6, 6)
        pen.line([(70, y), (210, y + chance.uniform(-6, 6))], fill="black", width=18)
    return picture
