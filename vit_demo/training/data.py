"""Labelled images in memory, and the digits: MNIST from an ``.npz`` file or as torchvision downloads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.images import to_mnist

Split = Literal["train", "validation", "test"]

VALIDATION_DIGITS = 5000
"""Number of digits at the end of MNIST's training set that form the validation split."""

OUTLIER = -1
"""Label of an image that shows none of the classes."""

UNLABELLED = -2
"""Label of a training image without a label: its target comes from a teacher alone."""


@dataclass(frozen=True)
class ImageDataset:
    """Images of one size with their labels.

    Attributes:
        images: uint8 ``[N, C, side, side]``.
        labels: int64 ``[N]``; ``OUTLIER`` or ``UNLABELLED`` for images without a class.
        classes: The class names, in the order of the labels.
        aspect_ratios: ``[N]``: width divided by height of each photo before it was squeezed into a square; None for
            datasets that were never squeezed.
        repeat_factors: ``[N]``: how often each image is drawn in an epoch, on average; None for once each.
        sources: int64 ``[N]``: which of several concatenated datasets each image comes from, counted from 0; None for a
            dataset of one source.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    aspect_ratios: Tensor | None = None
    repeat_factors: Tensor | None = None
    sources: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, indices: Tensor) -> ImageDataset:
        """The images at ``indices``, int64 ``[M]``, which may repeat."""
        optional = (self.aspect_ratios, self.repeat_factors, self.sources)
        aspect_ratios, repeat_factors, sources = (None if t is None else t[indices] for t in optional)
        return ImageDataset(
            self.images[indices], self.labels[indices], self.classes, aspect_ratios, repeat_factors, sources
        )

    @property
    def epoch_size(self) -> int:
        """Number of images drawn in an epoch."""
        return len(self) if self.repeat_factors is None else int(self.repeat_factors.double().sum())

    def sample_epoch(self, generator: torch.Generator) -> Tensor:
        """Indices of the images of one epoch in random order, int64 ``[epoch_size]``.

        Each image is drawn as often as its repeat factor says, rounded up or down at random.
        """
        order = torch.randperm(len(self), generator=generator)
        if self.repeat_factors is None:
            return order
        # Systematic sampling: points one apart on a line on which each image takes up its repeat factor.
        ends = self.repeat_factors.double()[order].cumsum(0)
        points = torch.arange(self.epoch_size) + torch.rand((), generator=generator, dtype=torch.float64)
        indices = order[torch.searchsorted(ends, points, right=True).clamp(max=len(self) - 1)]
        return indices[torch.randperm(len(indices), generator=generator)]

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that depend on images, labels and aspect ratios."""
        digest = hashlib.sha256()
        for tensor in (self.images, self.labels, self.aspect_ratios):
            if tensor is not None:
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()[:16]


def concat_datasets(datasets: list[ImageDataset]) -> ImageDataset:
    """Concatenates datasets and numbers their sources.

    Args:
        datasets: At least one. Either all have aspect ratios or none has; the same holds for repeat factors.

    Returns:
        All images, with the classes of the first dataset. A dataset of several sources keeps them apart.
    """
    if len(datasets) == 1:
        return datasets[0]
    aspect_ratios = [data.aspect_ratios for data in datasets if data.aspect_ratios is not None]
    repeat_factors = [data.repeat_factors for data in datasets if data.repeat_factors is not None]
    sources, count = [], 0
    for data in datasets:
        own = torch.zeros(len(data), dtype=torch.int64) if data.sources is None else data.sources
        sources.append(own + count)
        count += int(own.max()) + 1 if len(own) else 0
    return replace(
        datasets[0],
        images=torch.cat([data.images for data in datasets]),
        labels=torch.cat([data.labels for data in datasets]),
        aspect_ratios=torch.cat(aspect_ratios) if aspect_ratios else None,
        repeat_factors=torch.cat(repeat_factors) if repeat_factors else None,
        sources=torch.cat(sources) if count > 1 else None,
    )


def load_digits(folder: Path, split: Split) -> ImageDataset:
    """MNIST: 55,000 digits for training, 5,000 for validation and 10,000 for the test.

    Args:
        folder: Holds ``mnist.npz``, directly or in ``mnist/``; otherwise torchvision downloads MNIST into it.
        split: Which split to load.

    Raises:
        InputError: If the file is missing and MNIST cannot be downloaded.
    """
    key = "test" if split == "test" else "train"
    path = find_file(folder, "mnist.npz")
    if path is not None:
        with open_arrays(path) as file:
            images, labels = file[f"{key}_images"], file[f"{key}_labels"]
    else:
        images, labels = _download_mnist(folder, train=key == "train")
    if key == "train":
        rows = slice(-VALIDATION_DIGITS, None) if split == "validation" else slice(-VALIDATION_DIGITS)
        images, labels = images[rows], labels[rows]
    digits = torch.from_numpy(np.ascontiguousarray(images))[:, None]  # [N, 28, 28] -> [N, 1, 28, 28]
    return ImageDataset(digits, torch.from_numpy(labels.astype(np.int64)), tuple("0123456789"))


def load_other_digits(folder: Path) -> dict[str, ImageDataset]:
    """Further sets of handwritten digits, for evaluation only, preprocessed as the page does it.

    Args:
        folder: May hold ``digits_other.npz`` with pairs of arrays ``NAME_images`` (grey, of any size) and
            ``NAME_labels``.

    Returns:
        The sets by name; empty without that file.
    """
    path = find_file(folder, "digits_other.npz")
    if path is None:
        return {}
    datasets = {}
    with open_arrays(path) as file:
        for name in (key.removesuffix("_images") for key in file.files if key.endswith("_images")):
            digits = np.stack([to_mnist(image) for image in file[f"{name}_images"]])
            labels = torch.from_numpy(file[f"{name}_labels"].astype(np.int64))
            datasets[name] = ImageDataset(torch.from_numpy(digits)[:, None], labels, tuple("0123456789"))
    return datasets


def _download_mnist(folder: Path, *, train: bool) -> tuple[np.ndarray, np.ndarray]:
    from torchvision.datasets import MNIST

    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}: pass the folder of the data with --data.")
    try:
        data = MNIST(folder, train=train, download=True)
    except (RuntimeError, OSError) as error:
        with suppress(OSError):  # the empty folders that the download has made
            (folder / "MNIST" / "raw").rmdir()
            (folder / "MNIST").rmdir()
        raise InputError(
            f"There is no mnist.npz in {folder}, and MNIST could not be downloaded: pass the folder that holds it with "
            "--data."
        ) from error
    return data.data.numpy(), data.targets.numpy()


@contextmanager
def open_arrays(path: Path) -> Iterator[Any]:
    """Opens an ``.npz`` file.

    Raises:
        InputError: If it is damaged, or an array is asked for that it does not hold.
    """
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
