"""Labelled images in memory, and the digits: MNIST from an ``.npz`` file or as torchvision downloads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.images import to_mnist

Split = Literal["train", "validation", "test"]

DIGITS = tuple("0123456789")
VALIDATION_DIGITS = 5000
"""Number of digits at the end of MNIST's training set that form the validation split."""

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


def load_digits(folder: Path, split: Split) -> ImageDataset:
    """MNIST from ``mnist.npz``, or as torchvision downloads it: 55,000, 5,000 and 10,000 digits."""
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
    return ImageDataset(digits, torch.from_numpy(labels.astype(np.int64)), DIGITS)


def load_other_digits(folder: Path) -> dict[str, ImageDataset]:
    """Further sets of handwritten digits by name, for evaluation only, preprocessed as the page does it.

    ``digits_other.npz``, which may be missing, holds pairs of arrays ``NAME_images`` (grey, of any size) and
    ``NAME_labels``.
    """
    path = find_file(folder, "digits_other.npz")
    if path is None:
        return {}
    datasets = {}
    with open_arrays(path) as file:
        for name in (key.removesuffix("_images") for key in file.files if key.endswith("_images")):
            digits = np.stack([to_mnist(image) for image in file[f"{name}_images"]])
            labels = torch.from_numpy(file[f"{name}_labels"].astype(np.int64))
            datasets[name] = ImageDataset(torch.from_numpy(digits)[:, None], labels, DIGITS)
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
