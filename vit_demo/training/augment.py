"""Random changes of the training images, and the batches of changed images that a run is fed with."""

import os
import sys
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from vit_demo.training.image_dataset import ImageDataset

GROUPS = 16
"""Number of parts of a batch that share random parameters: a transform draws them once a call, and calls cost time."""


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

COLOUR_TRANSFORM = v2.Compose(
    [
        v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.6),
        v2.RandomChoice([v2.Identity(), v2.GaussianBlur(5, (0.5, 2.0)), v2.RandomAdjustSharpness(2.0, p=1.0)]),
    ]
)


def change_digits(images: Tensor) -> Tensor:
    """Turns, shears, stretches and bends digits uint8 ``[B, 1, 28, 28]``; the same shape, in [0, 1]."""
    return _change_groups(images, DIGIT_TRANSFORM)


def change_colours(images: Tensor) -> Tensor:
    """Makes photos uint8 ``[B, 3, side, side]`` brighter, paler, blurred or sharper; the same shape, in [0, 1]."""
    return _change_groups(images, COLOUR_TRANSFORM)


def _change_groups(images: Tensor, transform: v2.Transform) -> Tensor:
    return torch.cat([transform(group) for group in (images.float() / 255).chunk(GROUPS)]).clamp(0, 1)


def crop_photos(images: list[Tensor], side: int) -> Tensor:
    """Crops photos uint8 ``[3, height, width]`` at random, and flips half of them: uint8 ``[B, 3, side, side]``.

    Most crops cover 20 to 100 % of the area. One in seven is the central square, as the page crops it, and one in ten
    the whole photo, squashed.
    """
    centre = v2.Compose([v2.Resize(side), v2.CenterCrop(side)])
    crops = [v2.RandomResizedCrop(side, scale=(0.2, 1.0)), centre, v2.Resize((side, side))]
    crop = v2.Compose([v2.RandomChoice(crops, p=[0.75, 0.15, 0.1]), v2.RandomHorizontalFlip()])
    return torch.stack([crop(image) for image in images])


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
