"""Random changes of the training images, and the batches of changed images that a run is fed with."""

import math
import os
import sys
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import gaussian_blur, rgb_to_grayscale

from recipes.image_dataset import ImageDataset

GROUPS = 16
"""Number of parts of a batch of digits that share random parameters, which a transform draws once a call."""


def vary_strokes(images: Tensor) -> Tensor:
    """Makes the strokes of digits ``[B, 1, 28, 28]`` in [0, 1] thicker or thinner, at full intensity."""
    amount = float(torch.empty(()).uniform_(-0.6, 1.0))
    thicker, thinner = F.max_pool2d(images, 3, 1, 1), -F.max_pool2d(-images, 3, 1, 1)
    images = torch.lerp(images, thicker if amount > 0 else thinner, abs(amount))
    return images / images.amax((1, 2, 3), keepdim=True).clamp(min=0.3)


DIGIT_TRANSFORM = v2.Compose(
    [
        v2.RandomAffine(degrees=13, translate=(0.06, 0.06), scale=(0.9, 1.5), shear=(-17, 17)),
        v2.RandomPerspective(distortion_scale=0.4, p=1.0),  # stretches digits, too
        v2.RandomApply([v2.ElasticTransform(alpha=30.0, sigma=4.0)], p=0.5),
        v2.Lambda(vary_strokes),
        v2.RandomChoice([v2.Identity(), v2.GaussianBlur(3, (0.3, 1.0)), v2.RandomAdjustSharpness(2.0, p=1.0)]),
    ]
)


def change_digits(images: Tensor) -> Tensor:
    """Turns, shears, stretches and bends digits uint8 ``[B, 1, 28, 28]``; the same shape, in [0, 1]."""
    groups = (images.float() / 255).chunk(GROUPS)
    return torch.cat([DIGIT_TRANSFORM(group) for group in groups]).clamp(0, 1)


def change_colours(images: Tensor) -> Tensor:
    """Makes photos uint8 ``[B, 3, side, side]`` brighter, paler, blurred or sharper; the same shape, in [0, 1]."""

    def factors(low: float, high: float) -> Tensor:
        return torch.empty(len(images), 1, 1, 1, device=images.device).uniform_(low, high)

    photos = (images.float() / 255 * factors(0.6, 1.4)).clamp(0, 1)
    grey = rgb_to_grayscale(photos)
    photos = torch.lerp(grey.mean((2, 3), keepdim=True), photos, factors(0.6, 1.4)).clamp(0, 1)
    photos = torch.lerp(rgb_to_grayscale(photos), photos, factors(0.4, 1.6)).clamp(0, 1)
    # A factor below 0 sharpens.
    return torch.lerp(photos, gaussian_blur(photos, [5, 5], [1.2, 1.2]), factors(-1.0, 1.0)).clamp(0, 1)


def crop_photos(images: list[Tensor], side: int) -> Tensor:
    """Crops photos uint8 ``[3, height, width]`` at random, and flips half of them: uint8 ``[B, 3, side, side]``.

    Most crops cover 20 to 100 % of the area. One in seven is the central square, as the page crops it, and one in ten
    the whole photo, squashed.
    """
    sizes = torch.tensor([image.shape[1:] for image in images]).float()  # [B, 2]: height, width
    kinds = torch.multinomial(torch.tensor([0.75, 0.15, 0.1]), len(images), replacement=True)
    # Inception's crops (https://arxiv.org/abs/1409.4842), of proportions from 3:4 to 4:3.
    area = torch.empty(len(images)).uniform_(0.2, 1.0) * sizes.prod(1)
    ratio = torch.empty(len(images)).uniform_(-math.log(4 / 3), math.log(4 / 3)).exp()
    inception = torch.stack([(area / ratio).sqrt(), (area * ratio).sqrt()], 1).minimum(sizes)
    central = sizes.amin(1, keepdim=True).expand(-1, 2)
    crops = torch.stack([inception, central, sizes])[kinds, torch.arange(len(images))].round().clamp(min=1)
    positions = torch.where((kinds == 0)[:, None], torch.rand(len(images), 2), 0.5)
    corners = ((sizes - crops) * positions).floor()
    boxes = torch.cat([corners, corners + crops], 1).long().tolist()
    cropped = [
        F.interpolate(image[None, :, top:bottom, left:right], size=(side, side), mode="bilinear", antialias=True)
        for image, (top, left, bottom, right) in zip(images, boxes, strict=True)
    ]
    batch = torch.cat(cropped)
    return torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, batch.flip(-1), batch)


class Batches(Dataset[tuple[Tensor, Tensor]]):
    """Images uint8 ``[B, C, side, side]`` and labels ``[B]`` by a seed and the indices of the images.

    The crops follow from the seed alone, so it makes no difference which process makes a batch. Without ``crop_side``
    the images stay as they are.
    """

    def __init__(self, data: ImageDataset, crop_side: int | None) -> None:
        self.data, self.crop_side = data, crop_side

    def __getitem__(self, key: tuple[int, Tensor]) -> tuple[Tensor, Tensor]:
        seed, indices = key
        chosen = self.data.subset(indices)
        images = list(chosen.images)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return crop_photos(images, self.crop_side) if self.crop_side else torch.stack(images), chosen.labels


def load_batches(
    batches: Batches, keys: Iterable[tuple[int, Tensor]], device: torch.device
) -> Iterable[tuple[Tensor, Tensor]]:
    """The batches of ``keys``, which is iterated anew in each epoch.

    Where an accelerator computes, all processors but two make the next batches; otherwise they are needed themselves.
    """
    workers = 0
    if device.type == "cuda" and sys.platform == "linux":  # elsewhere processes are not forked, and would copy the data
        workers = max(1, len(os.sched_getaffinity(0)) - 2)
    ahead: dict[str, Any] = {"persistent_workers": True, "multiprocessing_context": "fork"} if workers else {}
    return DataLoader(
        batches, batch_size=None, sampler=keys, num_workers=workers, pin_memory=device.type == "cuda", **ahead
    )
