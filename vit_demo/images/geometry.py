"""Which part of a picture became the input of a network, and that part for display."""

from dataclasses import dataclass
from typing import TypeAlias

from PIL import Image

from vit_demo.defaults import Fit

Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True)
class Geometry:
    """Which part of a picture became the input tensor.

    Sizes are (width, height); the box (left, top, right, bottom) is in pixels of the upright picture. For the mode see
    `preprocess`.
    """

    source_size: tuple[int, int]
    box: Box
    input_size: tuple[int, int]
    mode: Fit


def model_view(image: Image.Image, geometry: Geometry, display_size: int) -> Image.Image:
    """The part of a picture that the model saw, in the shape of its input, at most `display_size` pixels a side."""
    scale = display_size / max(geometry.input_size)
    width, height = (max(1, round(side * scale)) for side in geometry.input_size)
    return image.resize((width, height), Image.Resampling.LANCZOS, box=geometry.box)
