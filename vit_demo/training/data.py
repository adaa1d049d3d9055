"""Labelled images in memory: digits and photos from ``.npz`` files, or MNIST as torchvision downloads it."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vit_demo.images import to_mnist

Part = Literal["train", "validation", "test"]

VALIDATION_DIGITS = 5000
"""Digits split off the end of MNIST's training set, to choose recipes by."""

HELD_BACK = 20
"""Every how manyth training photo is held back, to choose recipes by."""

NO_DIGIT = -1
"""Label of a training image to which no answer is right."""

PHOTO_SETS = {"tiny_imagenet40": "tiny_imagenet40.npz", "imagenette160": "imagenette160.npz"}
"""The sets of ``photos-tiny``, in the order of its labels."""


@dataclass(frozen=True)
class Labelled:
    """Images with their labels.

    Attributes:
        images: uint8 ``[N, C, side, side]``.
        labels: int64 ``[N]``; ``NO_DIGIT`` where there is none.
        classes: The name of each label.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


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


def load_photos(folder: Path, part: Part, side: int) -> Labelled:
    """The 50 classes of Tiny ImageNet (40 of its classes) and Imagenette, one after the other.

    Both sets come with a training and a validation part. The latter is this project's test part; its validation part is
    a twentieth of the former.

    Args:
        folder: Holds the two ``.npz`` files, here or in a folder of each one's name.
        part: Which part.
        side: Pixels to resize every photo to.

    Raises:
        FileNotFoundError: If a file is missing.
    """
    sets = [load_photo_set(folder, name, part, side) for name in PHOTO_SETS]
    first = sets[0]
    return Labelled(
        torch.cat([s.images for s in sets]),
        torch.cat([first.labels, sets[1].labels + len(first.classes)]),
        first.classes + sets[1].classes,
    )


def load_photo_set(folder: Path, name: str, part: Part, side: int) -> Labelled:
    """One of ``PHOTO_SETS``, with its own labels from 0. Arguments as in ``load_photos``."""
    path = find_file(folder, PHOTO_SETS[name])
    if path is None:
        raise FileNotFoundError(f"No {PHOTO_SETS[name]} in {folder}: name the folder that holds it with --data.")
    key = "val" if part == "test" else "train"
    with np.load(path) as file:
        blob, offsets = file[f"{key}_blob"], file[f"{key}_offsets"]
        labels, classes = file[f"{key}_labels"], file["class_names"]
    wanted = np.arange(len(labels))
    if part != "test":
        wanted = wanted[(wanted % HELD_BACK == HELD_BACK - 1) == (part == "validation")]

    def decode(i: int) -> np.ndarray:
        image = Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB")
        return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))

    with ThreadPoolExecutor() as pool:
        images = np.stack(list(pool.map(decode, wanted, chunksize=64)))
    tensor = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()  # [N, side, side, 3] -> [N, 3, side, side]
    return Labelled(tensor, torch.from_numpy(labels[wanted].astype(np.int64)), tuple(str(c) for c in classes))


def find_file(folder: Path, name: str, subfolder: str | None = None) -> Path | None:
    """``folder/name`` or ``folder/subfolder/name``, whichever is there; the subfolder is the name's stem by default."""
    for path in (folder / name, folder / (subfolder or Path(name).stem) / name):
        if path.is_file():
            return path
    return None
