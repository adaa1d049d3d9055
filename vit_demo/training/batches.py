"""Training batches: which images and which patch size, augmentation, mixing, and the patches that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_demo.training.augment import augment_digits, augment_photos, mix_up_or_cut_mix
from vit_demo.training.data import ImageDataset
from vit_demo.training.parallel import rank, world_size
from vit_demo.training.predictions import normalise
from vit_demo.training.recipes import Recipe
from vit_demo.weights.preset import Preset

MakeTargets = Callable[[Tensor], Tensor]
"""Labels ``[B]`` -> targets ``[B, D]`` before any mixing; see ``vit_demo.training.objectives``."""


@dataclass(frozen=True)
class Batch:
    """What one process trains on in one step.

    Attributes:
        images: ``[B, C, height, width]``, augmented, mixed and normalised.
        teacher_images: The same images in [0, 1], at the resolution of a pretrained teacher if there is one.
        labels: int64 ``[B]``: the labels of the images before mixing.
        targets: ``[B, D]``, mixed like the images.
        patch_size: In pixels.
        kept_patches: int64 ``[B, K]``: the patches to train on; None for all.
    """

    images: Tensor
    teacher_images: Tensor
    labels: Tensor
    targets: Tensor
    patch_size: int
    kept_patches: Tensor | None

    @property
    def patch_options(self) -> dict[str, Any]:
        """Keyword arguments for the network; networks without patch dropout take the patch size only."""
        return {"patch_size": self.patch_size} | (
            {"kept_patches": self.kept_patches} if self.kept_patches is not None else {}
        )


class BatchLoader:
    """Makes the batches of a run. All processes of a run make the same batch, and each keeps its own part.

    Args:
        data: The training set.
        preset: Provides the image size and the normalisation.
        recipe: Provides everything else.
        make_targets: Turns labels into targets.
        device: Where batches are made.
        seed: Seed of the run.
        epochs: Length of the run.
    """

    def __init__(
        self,
        data: ImageDataset,
        preset: Preset,
        recipe: Recipe,
        make_targets: MakeTargets,
        *,
        device: torch.device,
        seed: int,
        epochs: int,
    ) -> None:
        self.data, self.preset, self.recipe = data, preset, recipe
        self.make_targets, self.device, self.seed = make_targets, device, seed
        self.steps_per_epoch = data.epoch_size // recipe.batch_size
        self.first_full_epoch = (1 - recipe.full_sequence_fraction) * epochs
        self.mix = mix_up_or_cut_mix(recipe.mix_probability)
        self.image_size = max(preset.image_size, recipe.teacher_image_size)

    def seed_epoch(self, epoch: int) -> None:
        """Seeds all random choices that follow, those of the network included."""
        torch.manual_seed(self._epoch_seed(epoch))

    def plan_epoch(self, epoch: int) -> list[tuple[Tensor, int]]:
        """The image indices ``[batch_size]`` and the patch size of every step of an epoch."""
        generator = torch.Generator().manual_seed(self._epoch_seed(epoch))
        steps, size = self.steps_per_epoch, self.recipe.batch_size
        batches = self.data.sample_epoch(generator)[: steps * size].split(size)
        weights = torch.tensor(list(self.recipe.patch_size_weights.values()))
        choices = torch.multinomial(weights, steps, replacement=True, generator=generator).tolist()
        return [(batch, self.recipe.patch_sizes[i]) for batch, i in zip(batches, choices, strict=True)]

    def load(self, epoch: int, indices: Tensor, patch_size: int) -> Batch:
        """Makes the batch of one step, with the next random numbers."""
        labels = self.data.labels[indices].to(self.device)
        images, targets = self._augment(indices), self.make_targets(labels)
        if self.recipe.mix_probability:
            images, targets = self.mix(images, targets)
        kept_patches = self._random_patches(epoch, patch_size, len(images))
        own = slice(rank(), None, world_size())
        teacher_images = images = images[own]
        if self.preset.image_size < self.image_size:
            images = F.interpolate(images, size=self.preset.image_size, mode="bilinear", antialias=True)
        return Batch(
            normalise(images, self.preset),
            teacher_images,
            labels[own],
            targets[own],
            patch_size,
            kept_patches[own] if kept_patches is not None else None,
        )

    def _augment(self, indices: Tensor) -> Tensor:
        images = self.data.images[indices].to(self.device).float() / 255
        if not self.recipe.augment:
            return images
        if self.preset.task == "digits":
            return augment_digits(images, self.recipe.min_augment_strength)
        aspect_ratios = None if self.data.aspect_ratios is None else self.data.aspect_ratios[indices]
        return augment_photos(images, aspect_ratios, self.image_size)

    def _random_patches(self, epoch: int, patch_size: int, count: int) -> Tensor | None:
        """The random patches to keep of each of ``count`` images, ``[count, K]``; None for all."""
        rate = self.recipe.patch_keep_rates.get(patch_size)
        if rate is None or epoch >= self.first_full_epoch:
            return None
        patches = (self.preset.image_size // patch_size) ** 2
        return torch.rand(count, patches, device=self.device).argsort(1)[:, : round(rate * patches)]

    def _epoch_seed(self, epoch: int) -> int:
        return self.seed * 100_003 + epoch
