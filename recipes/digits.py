"""The digits: MNIST from an ``.npz`` file or as torchvision downloads it, and further sets for evaluation."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from recipes.image_dataset import ImageDataset, Split, find_file, open_arrays
from vit_demo.errors import InputError
from vit_demo.images import to_mnist

DIGITS = tuple("0123456789")
VALIDATION_DIGITS = 5000
"""Number of digits at the end of MNIST's training set that form the validation split."""


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
