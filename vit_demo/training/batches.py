"""Training batches: which images and which patch size, augmentation, mixing, and the patches that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vit_demo.training.augment import MixUpOrCutMix, augment_digits, augment_photos
from vit_demo.training.data import ImageDataset
from vit_demo.training.parallel import rank, world_size
from vit_demo.training.predictions import normalise
from vit_demo.training.recipes import Recipe
from vit_demo.training.student import resample_patch_features
from vit_demo.weights.preset import Preset


class Targets(NamedTuple):
    """The training targets of some images, before any mixing.

    Attributes:
        vectors: ``[B, D]``: class probabilities, and the teacher's features if there are any.
        crops: ``[B, 4]``: the crops that the targets were computed for; None if any random crop will do.
        patch_features: ``[B, D, rows, cols]``: the teacher's features of each part of the image, if there are any.
    """

    vectors: Tensor
    crops: Tensor | None = None
    patch_features: Tensor | None = None


MakeTargets = Callable[[Tensor, Tensor, int], Targets]
"""(labels ``[B]``, indices ``[B]``, epoch) -> targets; see ``vit_demo.training.objectives``."""


@dataclass(frozen=True)
class Batch:
    """What one process trains on in one step.

    Attributes:
        images: ``[B, C, height, width]``, augmented, mixed and normalised.
        labels: int64 ``[B]``: the labels of the images before mixing.
        targets: ``[B, D]``: ``Targets.vectors``, mixed like the images.
        patch_targets: ``[B, K, D]``: the teacher's features at the patches of the images, if there are any.
        patch_size: In pixels.
        kept_patches: int64 ``[B, K]``: the patches to train on; None for all.
    """

    images: Tensor
    labels: Tensor
    targets: Tensor
    patch_targets: Tensor | None
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
        make_targets: Returns the targets of some images.
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
        self.mix = MixUpOrCutMix(recipe.mix_probability)

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
        labels = self.data.labels[indices]
        vectors, crops, patch_features = self.make_targets(labels, indices, epoch)
        targets = vectors.to(self.device)
        images = self._augment(self.data.images[indices].to(self.device).float() / 255, crops)
        images = normalise(images, self.preset)
        mix_weights = torch.zeros_like(images[0, :1])  # [1, height, width]
        if self.recipe.mix_probability:
            images, targets, mix_weights = self.mix(images, targets)
        kept_patches = self._random_patches(epoch, patch_size, images)
        own = slice(rank(), None, world_size())
        patch_targets = None
        if patch_features is not None:
            patch_features = patch_features.to(self.device)
            patch_targets = resample_patch_features(patch_features, mix_weights, patch_size, kept_patches)[own]
        kept_patches = kept_patches[own] if kept_patches is not None else None
        return Batch(images[own], labels.to(self.device)[own], targets[own], patch_targets, patch_size, kept_patches)

    def _augment(self, images: Tensor, crops: Tensor | None) -> Tensor:
        if not self.recipe.augment:
            return images
        if self.preset.task == "digits":
            return augment_digits(images, self.recipe.min_augment_strength)
        return augment_photos(images, crops, self.preset.image_size)

    def _random_patches(self, epoch: int, patch_size: int, images: Tensor) -> Tensor | None:
        """The random patches to keep of each image, ``[B, K]``; None for all."""
        rate = self.recipe.patch_keep_rates.get(patch_size)
        if rate is None or epoch >= self.first_full_epoch:
            return None
        patches = images.shape[2] // patch_size * (images.shape[3] // patch_size)
        return torch.rand(len(images), patches, device=self.device).argsort(1)[:, : round(rate * patches)]

    def _epoch_seed(self, epoch: int) -> int:
        return self.seed * 100_003 + epoch
