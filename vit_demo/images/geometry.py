"""Which part of a picture became the input of a network, and that part for display."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from PIL import Image

Box: TypeAlias = tuple[float, float, float, float]
FittedBy = Literal["crop", "squash", "keep", "border"]


@dataclass(frozen=True)
class Geometry:
    """Which part of a picture became the input tensor.

    Sizes are (width, height); the box (left, top, right, bottom) is in pixels of the upright picture, and larger than
    it where bars were added. For the mode see `preprocess`.
    """

    source_size: tuple[int, int]
    box: Box
    input_size: tuple[int, int]
    mode: FittedBy


def model_view(
    image: Image.Image, geometry: Geometry, display_size: int, mean: Sequence[float] = (0, 0, 0)
) -> Image.Image:
    """What the model saw, in the shape of its input, at most `display_size` pixels a side; bars have a mean colour."""
    scale = display_size / max(geometry.input_size)
    width, height = (max(1, round(side * scale)) for side in geometry.input_size)
    if geometry.mode != "border":
        return image.resize((width, height), Image.Resampling.LANCZOS, box=geometry.box)
    left, top, right, bottom = geometry.box
    inside = max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height)
    x, y = width / (right - left), height / (bottom - top)
    corners = [round((side - start) * by) for side, start, by in zip(inside, (left, top) * 2, (x, y) * 2, strict=True)]
    size = max(1, corners[2] - corners[0]), max(1, corners[3] - corners[1])
    view = Image.new("RGB", (width, height), tuple(round(255 * value) for value in mean))
    view.paste(image.resize(size, Image.Resampling.LANCZOS, box=inside), (corners[0], corners[1]))
    return view
