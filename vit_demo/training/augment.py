"""Data augmentation of whole batches: each image gets random parameters of its own, in a single resampling."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms import v2


def augment_digits(images: Tensor, min_strength: float = 1.0) -> Tensor:
    """Randomly rotates, shears, stretches, shifts and bends digits, and varies the width and softness of their strokes.

    The elastic distortion follows Simard et al., "Best practices for convolutional neural networks", 2003.

    Args:
        images: ``[B, 1, 28, 28]`` in [0, 1].
        min_strength: All changes of an image are scaled by a factor drawn from between this and 1; with 0 some images
            hardly change.

    Returns:
        The same shape and range.
    """
    batch, device = len(images), images.device
    strength = torch.empty(batch, device=device).uniform_(min_strength, 1.0)

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high) * strength

    angle = uniform(-0.22, 0.22)  # radians, 12.6 degrees
    shear = uniform(-0.3, 0.3)
    scale_x, scale_y = (_random_stretch(images, dim).pow(strength) for dim in (3, 2))
    cos, sin = angle.cos(), angle.sin()
    # The two rows of the inverse map, from output pixels to source pixels.
    row_x = torch.stack([cos / scale_x, (sin + shear) / scale_x, uniform(-0.1, 0.1)], dim=1)
    row_y = torch.stack([-sin / scale_y, cos / scale_y, uniform(-0.1, 0.1)], dim=1)
    grid = F.affine_grid(torch.stack([row_x, row_y], dim=1), list(images.shape), align_corners=False)
    bend = torch.randn(batch, 2, 5, 5, device=device) * uniform(0.0, 0.09)[:, None, None, None]
    bend = F.interpolate(bend, size=images.shape[2:], mode="bicubic", align_corners=False)
    grid = grid + bend.permute(0, 2, 3, 1)  # [B, 28, 28, 2]
    images = F.grid_sample(images, grid, align_corners=False)
    images = _blur_or_sharpen(_dilate_or_erode(images, uniform(-0.6, 1.0)), uniform(-0.6, 0.6))
    return images / images.amax((1, 2, 3), keepdim=True).clamp(min=0.3)  # strokes reach full intensity again


def _random_stretch(images: Tensor, dim: int) -> Tensor:
    """Random factors ``[B]`` by which to stretch digits along ``dim``.

    The largest factor makes the strokes 20 pixels long, which is the size of MNIST's box, but it is at most 2. Narrow
    digits may so become wide, as some people write them.
    """
    extent = (images > 0.3).any(dim=5 - dim).sum(2)[:, 0]  # [B], pixels between 1 and 28
    high = (20 / extent.clamp(min=1)).clamp(1.1, 2.0).log()
    low = math.log(0.8)
    return (low + torch.rand_like(high) * (high - low)).exp()


def _blur_or_sharpen(images: Tensor, amount: Tensor) -> Tensor:
    """Moves towards the blurred image (amount > 0) or away from it (amount < 0); ``amount`` ``[B]`` in [-1, 1]."""
    blurred = F.avg_pool2d(images, 3, stride=1, padding=1)
    return (images + amount[:, None, None, None] * (blurred - images)).clamp(0, 1)


def _dilate_or_erode(images: Tensor, amount: Tensor) -> Tensor:
    """Moves towards the dilated image (amount > 0) or the eroded one (amount < 0); ``amount`` ``[B]`` in [-1, 1]."""
    amount = amount[:, None, None, None]
    dilated = F.max_pool2d(images, 3, stride=1, padding=1)
    eroded = -F.max_pool2d(-images, 3, stride=1, padding=1)
    changed = images + amount.clamp(min=0) * (dilated - images)
    return changed + amount.clamp(max=0).neg() * (eroded - images)


CENTER_CROP_PROBABILITY, SQUASH_PROBABILITY = 0.15, 0.1
"""Probability of the central square of a photo, as the page crops it, and of the whole photo squashed into a square."""


def random_crops(count: int, aspect_ratios: Tensor | None = None) -> Tensor:
    """Random resized crops of 20 to 100 % of a photo's area with aspect ratios between 3:4 and 4:3.

    Half of them are flipped. Some are the central square or the whole photo instead; see ``CENTER_CROP_PROBABILITY``.

    Args:
        count: Number of crops.
        aspect_ratios: ``[count]``: width divided by height of the photo that was squeezed into each square; 1 for None.

    Returns:
        ``[count, 4]``: width, height, x and y of the centre, in units in which the image spans [-1, 1] and a width of 1
        is the whole image, as in ``affine_grid``; a negative width flips the crop horizontally.
    """
    area, ratio, x, y, kind, flip = torch.rand(6, count)
    aspects = torch.ones(count) if aspect_ratios is None else aspect_ratios
    side = ((0.2 + 0.8 * area) * aspects).sqrt()  # of a square of that area; the photo's height is 1
    stretch = ((2 * ratio - 1) * math.log(4 / 3) / 2).exp()
    # The photo is `aspects` wide, so a width w takes up w / aspects of the squeezed image.
    width, height = (side * stretch / aspects).clamp(max=1), (side / stretch).clamp(max=1)
    x, y = (2 * x - 1) * (1 - width), (2 * y - 1) * (1 - height)
    crops = torch.stack([width, height, x, y], dim=1)
    zero = torch.zeros(count)
    central = torch.stack([(1 / aspects).clamp(max=1), aspects.clamp(max=1), zero, zero], dim=1)
    whole = torch.tensor([1.0, 1.0, 0.0, 0.0])
    crops = torch.where((kind < CENTER_CROP_PROBABILITY + SQUASH_PROBABILITY)[:, None], whole, crops)
    crops = torch.where((kind < CENTER_CROP_PROBABILITY)[:, None], central, crops)
    return torch.where((flip < 0.5)[:, None], crops * torch.tensor([-1.0, 1.0, 1.0, 1.0]), crops)


def crop_and_resize(images: Tensor, crops: Tensor, size: int | None = None) -> Tensor:
    """Cuts one crop out of each image and resizes it to a square, bilinearly.

    Args:
        images: ``[B, C, side, side]``.
        crops: ``[B, 4]``, as ``random_crops`` returns them.
        size: Side of the result in pixels; the images' own side by default.

    Returns:
        ``[B, C, size, size]``.
    """
    shape = [*images.shape[:2], *([size, size] if size else images.shape[2:])]
    width, height, x, y = crops.unbind(1)
    zero = torch.zeros_like(x)
    affine = torch.stack([torch.stack([width, zero, x], dim=1), torch.stack([zero, height, y], dim=1)], dim=1)
    grid = F.affine_grid(affine, shape, align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def augment_photos(images: Tensor, aspect_ratios: Tensor | None = None, size: int | None = None) -> Tensor:
    """Crops photos at random and changes their brightness, contrast, saturation and sharpness.

    Args:
        images: ``[B, 3, side, side]`` in [0, 1].
        aspect_ratios: ``[B]``, as in ``random_crops``.
        size: As in ``crop_and_resize``.

    Returns:
        ``[B, 3, size, size]`` in [0, 1].
    """
    batch, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high)

    images = crop_and_resize(images, random_crops(batch, aspect_ratios).to(device), size)
    chosen = (uniform(0, 1) < 0.5).nonzero()[:, 0]
    images[chosen] = _adjust_sharpness(images[chosen], uniform(-1.0, 1.0)[chosen])
    return _adjust_colour(images, uniform(0.6, 1.4), uniform(0.6, 1.4), uniform(0.4, 1.6))


def _adjust_sharpness(images: Tensor, amount: Tensor) -> Tensor:
    """Moves towards the image at half its resolution (amount > 0) or away from it; ``amount`` ``[B]`` in [-1, 1]."""
    height, width = images.shape[2:]
    small = F.interpolate(images, (height // 2, width // 2), mode="bilinear", antialias=True)
    blurred = F.interpolate(small, (height, width), mode="bilinear")
    return torch.lerp(images, blurred, amount[:, None, None, None]).clamp_(0, 1)


def _adjust_colour(images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    """Multiplies brightness, contrast and saturation by factors ``[B]``."""
    # Saturation moves each pixel away from its grey value, contrast from the image's mean, which saturation does not
    # change. Together they are one 3 x 3 matrix and one offset per image.
    grey = (1 - saturation)[:, None, None] / 3 + saturation[:, None, None] * torch.eye(3, device=images.device)
    mean = images.mean((1, 2, 3))
    shift = (mean * (brightness - contrast))[:, None, None]
    changed = torch.baddbmm(shift, contrast[:, None, None] * grey, images.flatten(2))  # [B, 3, side * side]
    return changed.clamp_(0, 1).view_as(images)


def mix_up_or_cut_mix(p: float) -> v2.Transform:
    """MixUp or CutMix of some of the batches, each image and target being mixed with the one before it.

    After Zhang et al., 2017, https://arxiv.org/abs/1710.09412, and Yun et al., 2019, https://arxiv.org/abs/1905.04899.

    Args:
        p: Probability that a batch is mixed.

    Returns:
        A function of images ``[B, C, height, width]`` and targets ``[B, D]`` that returns both.
    """
    return v2.RandomApply([v2.RandomChoice([v2.MixUp(alpha=0.8), v2.CutMix(alpha=1.0)])], p=p)
