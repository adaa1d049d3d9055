"""Baselines: what replaces a patch that a faithfulness test removes from the picture."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.defaults import BASELINES
from vit_demo.errors import InputError


def baseline_image(name: str, images: Tensor, patch_size: int, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """The normalised picture, or colour, that replaces removed patches of ``[B, C, height, width]``; it broadcasts.

    ``"mean"`` is the colour that normalization maps to 0, which is grey for a mean of 0.5; ``"blur"`` the picture
    without details smaller than four patches.

    Raises:
        InputError: If there is no baseline of that name.
    """
    if name == "mean":
        return torch.zeros(1, 1, 1, 1, dtype=images.dtype, device=images.device)
    if name == "blur":
        return blur(images, 4 * patch_size)
    if name == "black":
        black = [-m / s for m, s in zip(mean, std, strict=True)]
        return torch.tensor(black, dtype=images.dtype, device=images.device).reshape(1, -1, 1, 1)
    raise InputError(f"There is no baseline {name!r}: choose one of {', '.join(BASELINES)}.")


def blur(images: Tensor, size: int) -> Tensor:
    """The picture without detail smaller than ``size`` pixels, in the same shape."""
    height, width = images.shape[2:]
    coarse = F.adaptive_avg_pool2d(images, (max(1, height // size), max(1, width // size)))
    return F.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=False)
