"""Random changes to a batch of training images: each its own, in one resampling, and one mixed with another."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms import v2


def augment_digits(images: Tensor, least: float = 1.0) -> Tensor:
    """Another hand and another pen: slant, turn, stretch, shift, elastic bending, thickness, blur.

    Elastic bending after Simard et al., "Best practices for convolutional neural networks", 2003.

    Args:
        images: ``[B, 1, 28, 28]`` in [0, 1].
        least: All changes of an image are scaled by one number between this and 1; 0 leaves some images nearly alone.

    Returns:
        The same shape and range.
    """
    batch, device = len(images), images.device
    strength = torch.empty(batch, device=device).uniform_(least, 1.0)

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high) * strength

    angle = uniform(-0.22, 0.22)  # radians, 12.6 degrees
    shear = uniform(-0.3, 0.3)
    scale_x, scale_y = (_stretch(images, dim).pow(strength) for dim in (3, 2))
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


def _stretch(images: Tensor, dim: int) -> Tensor:
    """By how much to stretch each digit along ``dim``, at random: from 0.8 to what makes its ink 20 pixels long, or 2.

    A narrow digit may become a wide one, as some hands write it, but none grows beyond MNIST's box.
    """
    extent = (images > 0.3).any(dim=5 - dim).sum(2)[:, 0]  # [B], pixels between 1 and 28
    most = (20 / extent.clamp(min=1)).clamp(1.1, 2.0).log()
    least = math.log(0.8)
    return (least + torch.rand_like(most) * (most - least)).exp()


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


WHOLE, SQUASHED = 0.15, 0.1
"""Share of the crops that are the square in the middle of a photo, and that are all of it, squashed to a square."""


def draw_crops(count: int, generator: torch.Generator | None = None, aspects: Tensor | None = None) -> Tensor:
    """Random crops of 20 to 100 % of the area, their proportions changed by up to 4:3; some as a page would fit them.

    Args:
        count: How many.
        generator: Of the random numbers; torch's own by default.
        aspects: ``[count]``: width over height of what was squeezed into each square image; 1 by default.

    Returns:
        ``[count, 4]``: width, height, and the centre's x and y, all as shares of half the image's side.
    """
    area, ratio, x, y, kind = torch.rand(5, count, generator=generator)
    aspects = torch.ones(count) if aspects is None else aspects
    side = ((0.2 + 0.8 * area) * aspects).sqrt()  # of a square of that area, in heights of the photo
    stretch = ((2 * ratio - 1) * math.log(4 / 3) / 2).exp()
    # A photo is `aspects` wide and 1 high: what is w wide there is w / aspects of the squeezed image.
    width, height = (side * stretch / aspects).clamp(max=1), (side / stretch).clamp(max=1)
    x, y = (2 * x - 1) * (1 - width), (2 * y - 1) * (1 - height)
    crops = torch.stack([width, height, x, y], dim=1)
    none = torch.zeros(count)
    middle = torch.stack([(1 / aspects).clamp(max=1), aspects.clamp(max=1), none, none], dim=1)
    crops = torch.where((kind < WHOLE + SQUASHED)[:, None], torch.tensor([1.0, 1.0, 0.0, 0.0]), crops)
    return torch.where((kind < WHOLE)[:, None], middle, crops)


def mirror(crops: Tensor, which: Tensor) -> Tensor:
    """Crops ``[B, 4]``, those of ``which`` ``[B]`` left for right."""
    return torch.where(which[:, None], crops * crops.new_tensor([-1.0, 1.0, 1.0, 1.0]), crops)


def cut(images: Tensor, crops: Tensor, size: int | None = None) -> Tensor:
    """The crops of images, resized to squares.

    Args:
        images: ``[B, C, side, side]``.
        crops: ``[B, 4]``, as ``draw_crops`` makes them; a negative width mirrors.
        size: Pixels of a square's side; the images' own by default.

    Returns:
        ``[B, C, size, size]``.
    """
    shape = [*images.shape[:2], *([size, size] if size else images.shape[2:])]
    width, height, x, y = crops.unbind(1)
    zero = torch.zeros_like(x)
    where = torch.stack([torch.stack([width, zero, x], dim=1), torch.stack([zero, height, y], dim=1)], dim=1)
    grid = F.affine_grid(where, shape, align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def augment_photos(images: Tensor, crops: Tensor | None = None, size: int | None = None) -> Tensor:
    """A crop in another light and colour, softer or sharper.

    Args:
        images: ``[B, 3, side, side]`` in [0, 1].
        crops: ``[B, 4]``, as for ``cut``; by default drawn at random, and half of them mirrored.
        size: As for ``cut``.

    Returns:
        ``[B, 3, size, size]`` in [0, 1].
    """
    batch, device = len(images), images.device

    def uniform(low: float, high: float) -> Tensor:
        return torch.empty(batch, device=device).uniform_(low, high)

    if crops is None:
        crops = mirror(draw_crops(batch), torch.rand(batch) < 0.5)
    images = cut(images, crops.to(device), size)
    chosen = (uniform(0, 1) < 0.5).nonzero()[:, 0]
    images[chosen] = _sharpness(images[chosen], uniform(-1.0, 1.0)[chosen])
    return _light_and_colour(images, uniform(0.6, 1.4), uniform(0.6, 1.4), uniform(0.4, 1.6))


def _sharpness(images: Tensor, amount: Tensor) -> Tensor:
    """Blends towards what is left of images at half their size (amount > 0), or away; ``amount`` ``[B]`` in [-1, 1]."""
    height, width = images.shape[2:]
    small = F.interpolate(images, (height // 2, width // 2), mode="bilinear", antialias=True)
    soft = F.interpolate(small, (height, width), mode="bilinear")
    return torch.lerp(images, soft, amount[:, None, None, None]).clamp_(0, 1)


def _light_and_colour(images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    """Each factor ``[B]``; 1 changes nothing."""
    # Saturation moves each colour away from its grey, contrast from the image's mean, which saturation leaves alone:
    # together one 3 x 3 matrix and one shift an image.
    grey = (1 - saturation)[:, None, None] / 3 + saturation[:, None, None] * torch.eye(3, device=images.device)
    mean = images.mean((1, 2, 3))
    shift = (mean * (brightness - contrast))[:, None, None]
    changed = torch.baddbmm(shift, contrast[:, None, None] * grey, images.flatten(2))  # [B, 3, side * side]
    return changed.clamp_(0, 1).view_as(images)


class Mix:
    """MixUp or CutMix of some batches: each image gets something of its neighbour, the one before it.

    After Zhang et al., 2017, https://arxiv.org/abs/1710.09412, and Yun et al., 2019, https://arxiv.org/abs/1905.04899.

    Args:
        p: Probability that a batch is mixed.
    """

    def __init__(self, p: float) -> None:
        self.change = v2.RandomApply([v2.RandomChoice([v2.MixUp(alpha=0.8), v2.CutMix(alpha=1.0)])], p=p)

    def __call__(self, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mixes images ``[B, C, height, width]`` and what is to be learned of them ``[B, D]``.

        Returns:
            Both, and how much of its neighbour each pixel of an image has got, ``[1, height, width]`` in [0, 1].
        """
        # A further channel, 1 in the last image alone, which is the first one's neighbour: it shows what was done.
        last = torch.zeros_like(images[:, :1])
        last[-1] = 1.0
        mixed, targets = self.change(torch.cat([images, last], dim=1), targets)
        return mixed[:, :-1], targets, mixed[0, -1:]
