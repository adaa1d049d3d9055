"""Photos: from a picture to the input tensor of a model, as timm's evaluation transform makes it."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from vit_demo.defaults import CropMode, Fit
from vit_demo.errors import ImageError, PresetError
from vit_demo.images.geometry import Box, FittedBy, Geometry
from vit_demo.images.rgb import MAX_SIDE

MIN_PHOTO_SIDE = 16  # shortest side of a photo, in pixels: about one patch of most models
MOST_CROP = 4.0  # the largest crop fraction: above 1, black bars surround the photo

PLAIN_DEVIATION = 0.02  # standard deviation of normalised pixels below which a picture is one plain colour


def check_photo(image: Image.Image) -> None:
    """Refuses a picture with too few pixels to show anything, by an `ImageError`.

    A side may have fewer than `MIN_PHOTO_SIDE` only because the other was so long that the whole had to be reduced.
    """
    if min(image.size) >= MIN_PHOTO_SIDE:
        return
    if max(image.size) >= MAX_SIDE:
        most = MAX_SIDE // MIN_PHOTO_SIDE
        raise ImageError(f"The picture is too narrow: choose one that is at most {most} times as long as wide.")
    width, height = image.size
    least = f"choose one with at least {MIN_PHOTO_SIDE} pixels on each side"
    raise ImageError(f"The picture is too small, {width} x {height} pixels: {least}.")


def is_plain(pixels: torch.Tensor) -> bool:
    """Whether a model's input `[1, C, H, W]`, normalised, is one plain colour, so that its prediction means nothing."""
    return bool(pixels.std((2, 3)).max() < PLAIN_DEVIATION)


def preprocess(
    image: Image.Image,
    *,
    image_size: int,
    patch_size: int,
    mean: Sequence[float],
    std: Sequence[float],
    mode: Fit = "crop",
    crop_fraction: float = 1.0,
    crop_mode: CropMode = "center",
    interpolation: str = "bicubic",
) -> tuple[torch.Tensor, Geometry]:
    """Fits an RGB picture, upright, to a model's input and normalizes it; for the other arguments see `Preset`.

    "crop" is timm's evaluation transform to the pixel. By the crop mode "center" the shorter side is resized to
    `image_size / crop_fraction`, by "squash" both sides are, by "border" the longer one; then the central square is
    cropped. Bars fill what is missing: of the mean colour by "border", otherwise black. "squash" resizes the whole
    picture to the square. "keep" resizes the whole picture to a rectangle of whole patches, at most as many as the
    square has, that comes closest to its aspect ratio and size.

    Returns:
        The tensor [1, 3, H, W], float32, and its geometry.

    Raises:
        PresetError: The patch size does not divide the input, or a choice is unknown.
    """
    if not 1 <= patch_size <= image_size or (mode != "keep" and image_size % patch_size):
        raise PresetError(f"Patches of {patch_size} px do not tile {image_size} px: choose a divisor of {image_size}.")
    if not 0 < crop_fraction <= MOST_CROP:
        raise PresetError(f"The crop fraction must be above 0 and at most {MOST_CROP:g}, not {crop_fraction}.")
    try:
        resampling = Image.Resampling[interpolation.upper()]
    except KeyError as error:
        raise PresetError(f"Interpolation {interpolation!r} is unknown: choose bicubic or bilinear.") from error

    image = image.convert("RGB")
    box: Box = (0.0, 0.0, float(image.width), float(image.height))
    input_size = (image_size, image_size)
    shown: FittedBy = mode
    if mode == "crop":
        shown = (
            "border" if crop_fraction > 1 or crop_mode == "border" else "squash" if crop_mode == "squash" else "crop"
        )
        fill = [round(255 * value) for value in mean]
        fitted, box = _crop(image, image_size, math.floor(image_size / crop_fraction), crop_mode, resampling, fill)
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
    return tensor, Geometry(image.size, box, input_size, shown)


def _crop(
    image: Image.Image, image_size: int, target: int, mode: CropMode, resampling: Image.Resampling, fill: Sequence[int]
) -> tuple[Image.Image, Box]:
    """Resizes and crops like timm and torchvision, rounding included; also returns the cropped box."""
    width = height = target
    if mode in ("center", "floor"):
        width, height = (int(target * side / min(image.size)) for side in image.size)
    elif mode == "border":
        width, height = (max(1, round(side / (max(image.size) / target))) for side in image.size)
    rounded = int if mode == "floor" else round
    left, top = (rounded(d / 2) if d > 0 else int(d / 2) for d in (width - image_size, height - image_size))
    right, bottom = left + image_size, top + image_size
    x, y = image.width / width, image.height / height
    box = (left * x, top * y, right * x, bottom * y)
    if mode == "border" or target < image_size:
        fitted = Image.new("RGB", (image_size, image_size), tuple(fill) if mode == "border" else 0)
        fitted.paste(image.resize((width, height), resampling), (-left, -top))
        return fitted, box
    box = (*box[:2], min(box[2], image.width), min(box[3], image.height))
    if max(width, height) > 16 * image_size:
        # A very narrow picture would become enormous, so only the box is resampled. The result is the same up to
        # rounding: Pillow keeps a box in single precision, which changes a few pixels in a thousand by one level.
        return image.resize((image_size, image_size), resampling, box=box), box
    return image.resize((width, height), resampling).crop((left, top, right, bottom)), box


def _nearest_grid(size: tuple[int, int], side: int) -> tuple[int, int]:
    """The (rows, cols) with at most side * side patches that comes closest to the picture's aspect ratio and size."""
    aspect, budget = size[0] / size[1], side * side

    def loss(grid: tuple[int, int]) -> float:
        rows, cols = grid
        # A distorted aspect ratio is more visible than a few patches less; the factor 4 was chosen by eye.
        return 4 * abs(math.log(cols / rows / aspect)) + math.log(budget / (rows * cols))

    nearest = ((rows, int(rows * aspect) + extra) for rows in range(1, budget + 1) for extra in (0, 1))
    return min(((rows, min(max(cols, 1), budget // rows)) for rows, cols in nearest), key=loss)
