"""From a picture to the tensor a model sees, and back from a patch to the pixels it came from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from PIL import Image

from vit_demo.errors import PresetError

Mode: TypeAlias = Literal["crop", "squash", "keep"]
Box: TypeAlias = tuple[float, float, float, float]

MNIST_MEAN = 0.1307
MNIST_STD = 0.3081


@dataclass(frozen=True)
class Geometry:
    """Which part of a picture became the tensor.

    Attributes:
        source_size: (width, height) of the upright picture, in pixels.
        box: (left, top, right, bottom) of the part that the model saw, in pixels of the picture.
        input_size: (width, height) of the tensor.
        mode: how the picture was fitted; see `preprocess`.
    """

    source_size: tuple[int, int]
    box: Box
    input_size: tuple[int, int]
    mode: Mode


def preprocess(
    image: Image.Image,
    *,
    image_size: int,
    patch_size: int,
    mean: Sequence[float],
    std: Sequence[float],
    mode: Mode = "crop",
    crop_fraction: float = 1.0,
    interpolation: str = "bicubic",
) -> tuple[torch.Tensor, Geometry]:
    """Fits a picture to a model's input and normalises it.

    Args:
        image: an upright RGB picture.
        image_size: side of the square input the model was made for, in pixels.
        patch_size: side of a patch, in pixels.
        mean: mean of each channel, in the range 0 to 1.
        std: standard deviation of each channel, in the same unit.
        mode: "crop" resizes the shorter side to `image_size / crop_fraction` and cuts the square in the middle, pixel
            for pixel as timm's evaluation does; "squash" resizes all of it to the square; "keep" shows all of it in a
            rectangle of whole patches, at most as many as the square has, that is nearest to its shape and size.
        crop_fraction: share of the shorter side that "crop" keeps, above 0 and at most 1.
        interpolation: "bicubic", "bilinear", "lanczos" or "nearest", antialiased.

    Returns:
        The tensor [1, 3, H, W], float32, and where it came from.

    Raises:
        PresetError: the sizes do not fit each other, or a choice is unknown.
    """
    if not 1 <= patch_size <= image_size or (mode != "keep" and image_size % patch_size):
        raise PresetError(f"Patches of {patch_size} px do not tile {image_size} px: choose a divisor of {image_size}.")
    if not 0 < crop_fraction <= 1:
        raise PresetError(f"The crop fraction must be above 0 and at most 1, so {crop_fraction} cannot be used.")
    try:
        resampling = Image.Resampling[interpolation.upper()]
    except KeyError as error:
        raise PresetError(f"Interpolation {interpolation!r} is unknown: choose bicubic or bilinear.") from error

    image = image.convert("RGB")
    box: Box = (0.0, 0.0, float(image.width), float(image.height))
    input_size = (image_size, image_size)
    if mode == "crop":
        fitted, box = _crop(image, image_size, crop_fraction, resampling)
    elif mode == "squash":
        fitted = image.resize(input_size, resampling)
    elif mode == "keep":
        rows, cols = _nearest_grid(image.size, image_size // patch_size)
        input_size = (cols * patch_size, rows * patch_size)
        fitted = image.resize(input_size, resampling)
    else:
        raise PresetError(f"Mode {mode!r} is unknown: choose crop, squash or keep.")

    pixels = np.asarray(fitted, dtype=np.float32) / 255
    pixels = (pixels - np.asarray(mean, dtype=np.float32)) / np.asarray(std, dtype=np.float32)
    tensor = torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0).contiguous()  # [1, 3, H, W]
    return tensor, Geometry(image.size, box, input_size, mode)


def to_tensor_digit(digit: np.ndarray) -> tuple[torch.Tensor, Geometry]:
    """Normalises a digit by the mean and standard deviation of MNIST.

    Args:
        digit: uint8 [28, 28], white ink on black.

    Returns:
        The tensor [1, 1, 28, 28], float32, and the geometry of all of it.
    """
    height, width = digit.shape
    tensor = (torch.from_numpy(digit.astype(np.float32)) / 255 - MNIST_MEAN) / MNIST_STD
    box = (0.0, 0.0, float(width), float(height))
    return tensor[None, None], Geometry((width, height), box, (width, height), "keep")


def seen(image: Image.Image, geometry: Geometry, display_size: int) -> Image.Image:
    """Shows the part of a picture that the model saw, at the resolution of the picture and in the model's shape.

    Args:
        image: the picture that was given to `preprocess`.
        geometry: what `preprocess` gave back.
        display_size: longest side of the result, in pixels.
    """
    scale = display_size / max(geometry.input_size)
    width, height = (max(1, round(side * scale)) for side in geometry.input_size)
    return image.resize((width, height), Image.Resampling.LANCZOS, box=geometry.box)


def _crop(
    image: Image.Image, image_size: int, crop_fraction: float, resampling: Image.Resampling
) -> tuple[Image.Image, Box]:
    """Does what torchvision's Resize and CenterCrop do, with their roundings, and tells which box was kept."""
    shorter = math.floor(image_size / crop_fraction)
    width, height = (int(shorter * side / min(image.size)) for side in image.size)
    left, top = round((width - image_size) / 2), round((height - image_size) / 2)
    right, bottom = left + image_size, top + image_size
    x, y = image.width / width, image.height / height
    box = (left * x, top * y, min(right * x, image.width), min(bottom * y, image.height))
    if max(width, height) > 16 * image_size:
        # A thread of a picture would grow enormous, so resample the box alone. It comes to the same but for rounding:
        # Pillow keeps a box in single precision, which turns a few pixels in a thousand by one level.
        return image.resize((image_size, image_size), resampling, box=box), box
    return image.resize((width, height), resampling).crop((left, top, right, bottom)), box


def _nearest_grid(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Chooses (rows, cols) with at most side * side patches and nearly the shape of the picture."""
    aspect, budget = size[0] / size[1], side * side

    def loss(grid: tuple[int, int]) -> float:
        rows, cols = grid
        # Eyes mind a stretched picture more than slightly fewer patches; the 4 is a matter of taste.
        return 4 * abs(math.log(cols / rows / aspect)) + math.log(budget / (rows * cols))

    nearest = ((rows, int(rows * aspect) + extra) for rows in range(1, budget + 1) for extra in (0, 1))
    return min(((rows, min(max(cols, 1), budget // rows)) for rows, cols in nearest), key=loss)
