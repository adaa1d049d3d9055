"""Random changes to a batch of training images, each image its own, in one resampling."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def augment_digits(images: Tensor) -> Tensor:
    """Another hand and another pen: slant, turn, stretch, shift, elastic bending, thickness, blur.

    Elastic bending after Simard et al., "Best practices for convolutional neural networks", 2003.

    Args:
        images: ``[B, 1, 28, 28]`` in [0, 1].

    Returns:
        The same shape and range.
    """
    batch, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high)

    angle = uniform(-0.22, 0.22)  # radians, 12.6 degrees
    shear = uniform(-0.3, 0.3)
    scale_x, scale_y = (_stretch(images, dim, uniform(0.0, 1.0)) for dim in (3, 2))
    cos, sin = angle.cos(), angle.sin()
    # Rows of the inverse map: where in the source does each output pixel look?
    row_x = torch.stack([cos / scale_x, (sin + shear) / scale_x, uniform(-0.1, 0.1)], dim=1)
    row_y = torch.stack([-sin / scale_y, cos / scale_y, uniform(-0.1, 0.1)], dim=1)
    grid = F.affine_grid(torch.stack([row_x, row_y], dim=1), list(images.shape), align_corners=False)
    bend = torch.randn(batch, 2, 5, 5, device=device) * uniform(0.0, 0.09)[:, None, None, None]
    bend = F.interpolate(bend, size=images.shape[2:], mode="bicubic", align_corners=False)
    grid = grid + bend.permute(0, 2, 3, 1)  # [B, 28, 28, 2]
    images = F.grid_sample(images, grid, align_corners=False)
    images = _soften(_thicken(images, uniform(-0.6, 1.0)), uniform(-0.6, 0.6))
    return images / images.amax((1, 2, 3), keepdim=True).clamp(min=0.3)  # ink is as white as before


def _stretch(images: Tensor, dim: int, choice: Tensor) -> Tensor:
    """By how much to stretch each digit along ``dim``: from 0.8 to what makes its ink 20 pixels long, at most twice.

    A narrow digit may become a wide one, as some hands write it, but none grows beyond MNIST's box.
    """
    extent = (images > 0.3).any(dim=5 - dim).sum(2)[:, 0]  # [B], pixels between 1 and 28
    most = (20 / extent.clamp(min=1)).clamp(1.1, 2.0).log()
    least = math.log(0.8)
    return (least + choice * (most - least)).exp()


def _soften(images: Tensor, amount: Tensor) -> Tensor:
    """Blends towards the blurred image (amount > 0) or away from it (amount < 0); ``amount`` ``[B]`` in [-1, 1]."""
    blurred = F.avg_pool2d(images, 3, stride=1, padding=1)
    return (images + amount[:, None, None, None] * (blurred - images)).clamp(0, 1)


def _thicken(images: Tensor, amount: Tensor) -> Tensor:
    """Blends towards the dilated image (amount > 0) or the eroded one (amount < 0); ``amount`` ``[B]`` in [-1, 1]."""
    amount = amount[:, None, None, None]
    dilated = F.max_pool2d(images, 3, stride=1, padding=1)
    eroded = -F.max_pool2d(-images, 3, stride=1, padding=1)
    thicker = images + amount.clamp(min=0) * (dilated - images)
    return thicker + amount.clamp(max=0).neg() * (eroded - images)


def augment_photos(images: Tensor) -> Tensor:
    """Random crop of 25 to 100 % of the area with its aspect changed by up to 4:3, mirror, and light and colour.

    Args:
        images: ``[B, 3, side, side]`` in [0, 1].

    Returns:
        The same shape and range.
    """
    batch, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high)

    side = uniform(0.25, 1.0).sqrt()
    aspect = (uniform(-1.0, 1.0) * math.log(4 / 3) / 2).exp()
    width, height = (side * aspect).clamp(max=1), (side / aspect).clamp(max=1)
    mirror = torch.where(uniform(0.0, 1.0) < 0.5, -1.0, 1.0)
    x, y = uniform(-1.0, 1.0) * (1 - width), uniform(-1.0, 1.0) * (1 - height)
    zero = torch.zeros_like(x)
    crop = torch.stack(
        [torch.stack([width * mirror, zero, x], dim=1), torch.stack([zero, height, y], dim=1)], dim=1
    )  # [B, 2, 3]
    images = F.grid_sample(images, F.affine_grid(crop, list(images.shape), align_corners=False), align_corners=False)
    return _light_and_colour(images, uniform(0.7, 1.3), uniform(0.7, 1.3), uniform(0.6, 1.4))


def _light_and_colour(images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    """Each factor ``[B]``; 1 changes nothing."""
    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * saturation[:, None, None, None]
    mean = images.mean((1, 2, 3), keepdim=True)
    images = mean * brightness[:, None, None, None] + (images - mean) * contrast[:, None, None, None]
    return images.clamp(0, 1)
