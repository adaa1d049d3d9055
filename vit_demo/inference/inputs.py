"""From a picture to the input of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo import images
from vit_demo.defaults import FITS, Fit
from vit_demo.errors import PresetError
from vit_demo.weights import DEFAULT_PRESETS, Preset


def check_fit(fit: str) -> None:
    """Raises ``PresetError`` if there is no such way to fit a photo."""
    if fit not in FITS:
        raise PresetError(f"There is no fit {fit!r}: choose one of {', '.join(FITS)}.")


Picture = Image.Image | NDArray[np.uint8]
"""An upright RGB image of any size, or a digit as MNIST has it: uint8 ``[28, 28]``, white on black."""


def default_preset(picture: Picture) -> str:
    """The name of the preset for a picture where none is named; only a drawing is read as a digit."""
    is_digit = images.is_drawing(picture) if isinstance(picture, Image.Image) else True
    return DEFAULT_PRESETS["digits" if is_digit else "photos"]


DISPLAY_SIZE = 448
"""Longest side, in pixels, of the picture that a photo's maps are laid over."""

THUMBNAIL_SIZE = 192
"""Longest side, in pixels, of the small copy of the whole photo."""


@dataclass(frozen=True, eq=False)
class ModelInput:
    """The input of a network, float32 ``[1, C, height, width]``, normalised, and the pictures that show it.

    ``image`` is the picture as the network gets it: 28 x 28 grey for a digit, RGB at display size for a photo;
    ``photo`` a small copy of the whole photo, None for a digit.
    """

    pixels: Tensor
    geometry: images.Geometry
    image: Image.Image
    photo: Image.Image | None

    @classmethod
    def of(cls, picture: Picture, preset: Preset, patch_size: int, fit: Fit) -> ModelInput:
        """Preprocesses a picture for a preset.

        Raises:
            ImageError: If a photo is too small, or a digit is wanted and nothing is drawn (``EmptyDrawingError``).
            PresetError: If patch size and image size do not fit.
        """
        if preset.task == "digits":
            digit = images.to_mnist(picture) if isinstance(picture, Image.Image) else picture
            pixels, geometry = images.digit_to_tensor(digit)
            return cls(pixels, geometry, Image.fromarray(digit), None)
        photo = picture if isinstance(picture, Image.Image) else Image.fromarray(picture).convert("RGB")
        images.check_photo(photo)
        pixels, geometry = images.preprocess(
            photo,
            image_size=preset.image_size,
            patch_size=patch_size,
            mean=preset.mean,
            std=preset.std,
            mode=fit,
            crop_fraction=preset.crop_fraction,
            crop_mode=preset.crop_mode,
            interpolation=preset.interpolation,
        )
        small = photo.copy()
        small.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS)
        return cls(pixels, geometry, images.model_view(photo, geometry, DISPLAY_SIZE, preset.mean), small)
