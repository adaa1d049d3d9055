"""Labelled images in memory; the digits, from ``.npz`` files or as torchvision downloads them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from vit_demo.images import to_mnist

Part = Literal["train", "validation", "test"]

VALIDATION_DIGITS = 5000
"""Digits split off the end of MNIST's training set, to choose recipes by."""

NO_CLASS = -1
"""Label of a training image to which no answer is right."""

UNLABELLED = -2
"""Label of a training image of which a teacher alone says what it shows, if any of the classes."""


@dataclass(frozen=True)
class Labelled:
    """Images with their labels.

    Attributes:
        images: uint8 ``[N, C, side, side]``.
        labels: int64 ``[N]``; ``NO_CLASS`` or ``UNLABELLED`` where there is none.
        classes: The name of each label.
        aspects: ``[N]``: width over height of what was squeezed into each square; none for squares.
        passes: ``[N]``: how often each image comes up in an epoch, on average; once for None.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    aspects: Tensor | None = None
    passes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, index: Tensor) -> Labelled:
        """Some of the images, ``index`` int64 ``[M]``, as often as they are named."""
        aspects, passes = (None if t is None else t[index] for t in (self.aspects, self.passes))
        return replace(self, images=self.images[index], labels=self.labels[index], aspects=aspects, passes=passes)

    @property
    def epoch_length(self) -> int:
        """Images in an epoch."""
        return len(self) if self.passes is None else int(self.passes.double().sum())

    def epoch_rows(self, generator: torch.Generator) -> Tensor:
        """The rows of an epoch in a random order, ``[epoch_length]``.

        Each comes up as often as ``passes`` says, rounded up or down at random.
        """
        order = torch.randperm(len(self), generator=generator)
        if self.passes is None:
            return order
        ends = self.passes.double()[order].cumsum(0)
        points = torch.arange(self.epoch_length) + torch.rand((), generator=generator, dtype=torch.float64)
        rows = order[torch.searchsorted(ends, points, right=True).clamp(max=len(self) - 1)]
        return rows[torch.randperm(len(rows), generator=generator)]

    @cached_property
    def digest(self) -> str:
        """Of images, labels and aspects: 16 digits that change with any of them."""
        digest = hashlib.sha256()
        for tensor in (self.images, self.labels, self.aspects):
            if tensor is not None:
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()[:16]


def join(parts: list[Labelled]) -> Labelled:
    """One set after the other, with the classes of the first; all of them know their aspects and passes, or none."""
    aspects = [part.aspects for part in parts if part.aspects is not None]
    passes = [part.passes for part in parts if part.passes is not None]
    return replace(
        parts[0],
        images=torch.cat([part.images for part in parts]),
        labels=torch.cat([part.labels for part in parts]),
        aspects=torch.cat(aspects) if aspects else None,
        passes=torch.cat(passes) if passes else None,
    )


def load_digits(folder: Path, part: Part) -> Labelled:
    """MNIST; 55,000 digits to train on, 5,000 to choose by, 10,000 to test once.

    Args:
        folder: Holds ``mnist.npz`` (here or in ``mnist/``); otherwise torchvision downloads MNIST into it.
        part: Which part.

    Raises:
        FileNotFoundError: If the data is neither there nor to be downloaded.
    """
    key = "test" if part == "test" else "train"
    path = find_file(folder, "mnist.npz")
    if path is not None:
        with np.load(path) as file:
            images, labels = file[f"{key}_images"], file[f"{key}_labels"]
    else:
        images, labels = _download_mnist(folder, train=key == "train")
    if key == "train":
        keep = slice(-VALIDATION_DIGITS, None) if part == "validation" else slice(-VALIDATION_DIGITS)
        images, labels = images[keep], labels[keep]
    digits = torch.from_numpy(np.ascontiguousarray(images))[:, None]  # [N, 28, 28] -> [N, 1, 28, 28]
    return Labelled(digits, torch.from_numpy(labels.astype(np.int64)), tuple("0123456789"))


def load_other_digits(folder: Path) -> dict[str, Labelled]:
    """Digits of other hands and pens, to measure with only, as the page would hand them to a model.

    Args:
        folder: May hold ``digits_other.npz`` with pairs of arrays ``NAME_images`` (grey, any size) and ``NAME_labels``.

    Returns:
        Each set by its name; none where there is no such file.
    """
    path = find_file(folder, "digits_other.npz")
    if path is None:
        return {}
    sets = {}
    with np.load(path) as file:
        for name in (key.removesuffix("_images") for key in file.files if key.endswith("_images")):
            digits = np.stack([to_mnist(image) for image in file[f"{name}_images"]])
            labels = torch.from_numpy(file[f"{name}_labels"].astype(np.int64))
            sets[name] = Labelled(torch.from_numpy(digits)[:, None], labels, tuple("0123456789"))
    return sets


def _download_mnist(folder: Path, *, train: bool) -> tuple[np.ndarray, np.ndarray]:
    from torchvision.datasets import MNIST

    try:
        data = MNIST(folder, train=train, download=True)
    except (RuntimeError, OSError) as error:
        raise FileNotFoundError(f"No mnist.npz in {folder}, and MNIST could not be downloaded: {error}") from error
    return data.data.numpy(), data.targets.numpy()


def find_file(folder: Path, name: str, subfolder: str | None = None) -> Path | None:
    """``folder/name`` or ``folder/subfolder/name``, whichever is there; the subfolder is the name's stem by default."""
    for path in (folder / name, folder / (subfolder or Path(name).stem) / name):
        if path.is_file():
            return path
    return None
