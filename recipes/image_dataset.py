"""Labelled images in memory, and how they are read from the files of a data folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from vit_demo.errors import InputError

Split = Literal["train", "validation", "test"]

OUTLIER, UNLABELLED = -1, -2
"""Labels of an image that shows none of the classes, and of one whose target comes from a teacher alone."""


@dataclass(frozen=True)
class ImageDataset:
    """Images, uint8 ``[N, C, side, side]`` or N photos of any proportions for training, with labels int64 ``[N]``.

    Labels are ``OUTLIER`` or ``UNLABELLED`` for images without a class. ``weights`` say how often each image is drawn
    in an epoch of training, on average, or how much it counts in validation; None for once each.
    """

    images: Tensor | list[Tensor]
    labels: Tensor
    classes: tuple[str, ...]
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: Tensor) -> ImageDataset:
        """The images at ``indices``, int64 ``[M]``."""
        images = self.images
        chosen = images[indices] if isinstance(images, Tensor) else [images[i] for i in indices.tolist()]
        weights = None if self.weights is None else self.weights[indices]
        return replace(self, images=chosen, labels=self.labels[indices], weights=weights)

    def evenly_spaced(self, count: int) -> ImageDataset:
        """At most ``count`` images, evenly spaced over all."""
        return self.subset(torch.linspace(0, len(self) - 1, min(count, len(self))).long())

    @property
    def epoch_size(self) -> int:
        """Number of images drawn in an epoch."""
        return len(self) if self.weights is None else int(self.weights.double().sum())

    def sample_epoch(self) -> Tensor:
        """Random indices of the images of one epoch, int64 ``[epoch_size]``: each once, or drawn by their weights."""
        if self.weights is None:
            return torch.randperm(len(self))
        return torch.multinomial(self.weights, self.epoch_size, replacement=True)


def concat_datasets(datasets: Sequence[ImageDataset]) -> ImageDataset:
    """All images of several datasets, with the classes of the first. Either all have weights or none has."""
    images = [image for data in datasets for image in data.images]
    weights = [data.weights for data in datasets if data.weights is not None]
    return replace(
        datasets[0],
        images=torch.stack(images) if isinstance(datasets[0].images, Tensor) else images,
        labels=torch.cat([data.labels for data in datasets]),
        weights=torch.cat(weights) if weights else None,
    )


@contextmanager
def open_arrays(path: Path) -> Iterator[Any]:
    """Opens an ``.npz`` file; ``InputError`` if it is damaged, or lacks an array that is asked for."""
    try:
        with np.load(path) as file:
            yield file
    except InputError:
        raise
    except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} is damaged or holds other arrays than expected: see docs/training.md.") from error


def find_file(folder: Path, name: str, subfolder: str | None = None) -> Path | None:
    """``folder/name`` or ``folder/subfolder/name``, whichever exists; the subfolder defaults to the name's stem."""
    for path in (folder / name, folder / (subfolder or Path(name).stem) / name):
        if path.is_file():
            return path
    return None
