"""From a picture to a network's input, and how a picture is named so that it can be read again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vit_demo import images
from vit_demo.errors import PresetError
from vit_demo.weights import Preset

Fit = Literal["crop", "squash", "keep"]
FITS: tuple[Fit, ...] = ("crop", "squash", "keep")


def check_fit(fit: str) -> None:
    """Refuses a way to fit a photo that there is not.

    Raises:
        PresetError: If it is none of ``FITS``.
    """
    if fit not in FITS:
        raise PresetError(f"There is no fit {fit!r}: choose one of {', '.join(FITS)}.")


Picture = Image.Image | NDArray[np.uint8]
"""An upright RGB image of any size, or a digit as MNIST has it: uint8 ``[28, 28]``, white on black."""

DISPLAY_SIZE = 448
"""Longest side, in pixels, of the picture that a photo's maps are laid over."""

THUMBNAIL_SIZE = 192
"""Longest side, in pixels, of the small copy of the whole photo."""


@dataclass(frozen=True, eq=False)
class Source:
    """A picture that can be read again, should its result be needed once more.

    Attributes:
        identity: Equal identities mean equal pictures.
        read: Reads it.
        reference: By what the one who sent it may name it again; empty where that is not possible.
    """

    identity: Hashable
    read: Callable[[], Picture]
    reference: str = ""

    @classmethod
    def of(cls, image: images.ImageSource) -> Source:
        """A picture that is read at once.

        Raises:
            ImageError: If it cannot be.
        """
        picture = images.read_image(image)
        digest = hashlib.sha256(picture.tobytes()).digest()
        return cls((picture.size, digest), lambda: picture)


@dataclass(frozen=True, eq=False)
class ModelInput:
    """What goes into the network, and what a person is shown of it.

    Attributes:
        pixels: float32 ``[1, C, height, width]``, normalised.
        geometry: Which part of the picture that is.
        image: The picture as the network gets it: 28 x 28 grey for a digit, RGB at display size for a photo.
        photo: The whole photo, made small; None for a digit.
    """

    pixels: Tensor
    geometry: images.Geometry
    image: Image.Image
    photo: Image.Image | None

    @classmethod
    def of(cls, picture: Picture, preset: Preset, patch_size: int, fit: Fit) -> ModelInput:
        """Fits a picture to a preset.

        Raises:
            EmptySketchError: If a digit is wanted and nothing is drawn.
            PresetError: If the sizes do not fit each other.
        """
        if preset.task == "digits":
            digit = images.to_mnist(picture) if isinstance(picture, Image.Image) else picture
            pixels, geometry = images.to_tensor_digit(digit)
            return cls(pixels, geometry, Image.fromarray(digit), None)
        photo = picture if isinstance(picture, Image.Image) else Image.fromarray(picture).convert("RGB")
        pixels, geometry = images.preprocess(
            photo,
            image_size=preset.image_size,
            patch_size=patch_size,
            mean=preset.mean,
            std=preset.std,
            mode=fit,
            crop_fraction=preset.crop_fraction,
            interpolation=preset.interpolation,
        )
        small = photo.copy()
        small.thumbnail((THUMBNAIL_SIZE, THUMBNAIL_SIZE), Image.Resampling.LANCZOS)
        return cls(pixels, geometry, images.seen(photo, geometry, DISPLAY_SIZE), small)
