"""The photos of ``photos-tiny``: two labelled sets, and further photos of whole scenes if the data folder holds them.

Tiny ImageNet's photos are small and blurred, Imagenette's are sharp. A network trained on these two alone tends to
classify any sharp photo as one of Imagenette's ten classes. Labelled everyday photos, and unlabelled ones of which most
show none of the classes, correct this.
"""

from __future__ import annotations

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.images.photo_preprocess import preprocess
from vit_demo.training.data import OUTLIER, UNLABELLED, ImageDataset, Split, concat_datasets, find_file, open_arrays

PHOTO_SETS = ("tiny_imagenet40", "imagenette160")
"""The required sets of ``photos-tiny``, in the order of its labels."""

REAL_PHOTOS, PHOTO_POOL = "real_photos50_train", "photo_pool"
"""Optional sets of whole scenes: one with labels of the classes of ``PHOTO_SETS``, one without labels."""

TEST_PHOTOS = "real_photos50"
"""Whole scenes that serve as a test set only."""

STORED_SIDE = 160
"""Side in pixels at which training photos are kept: larger than the network's input, so that crops stay sharp."""

VALIDATION_EVERY = {"tiny_imagenet40": 20, "imagenette160": 20, "real_photos50_train": 10, "photo_pool": 20}
"""Of each set, one training photo in this many belongs to the validation split."""

REPEAT_FACTORS = {"tiny_imagenet40": 0.6, "imagenette160": 1.3, "real_photos50_train": 1.2, "photo_pool": 0.8}
"""How often a training photo of each set is drawn in an epoch, on average."""

PHOTOS_PER_CLASS, MAX_REPEATS = 200, 8
"""Real photos are repeated until each class has about this many, but none more often than the second number."""

MAX_HASH_DISTANCE = 6
"""Photos whose difference hashes differ in at most this many of 64 bits are considered duplicates."""


def load_photos(folder: Path, split: Split, side: int) -> ImageDataset:
    """One split of the data of ``photos-tiny``, with 50 classes.

    The test split consists of the official validation sets of ``PHOTO_SETS``. The validation split is taken from their
    training sets and, if ``folder`` holds them, from the real photos. The training split is the rest, with the real
    photos repeated to balance their classes, and the photo pool; near-duplicates of validation photos are removed from
    both.

    Args:
        folder: Holds the ``.npz`` files, each directly or in a subfolder of the file's name.
        split: Which split to load.
        side: Side in pixels; see ``load_photo_set``. Training photos are squeezed into the square.

    Raises:
        InputError: If a file of ``PHOTO_SETS`` is missing.
    """
    squeeze = split == "train"
    tiny, nette = (load_photo_set(folder, name, split, side, squeeze=squeeze) for name in PHOTO_SETS)
    datasets = [tiny, replace(nette, labels=nette.labels + len(tiny.classes))]
    optional = [name for name in (REAL_PHOTOS, PHOTO_POOL) if find_file(folder, f"{name}.npz")]
    if split == "validation" and REAL_PHOTOS in optional:
        datasets.append(load_photo_set(folder, REAL_PHOTOS, split, side))
    if split == "train" and optional:
        names = (*PHOTO_SETS, *optional)
        held_out = [load_photo_set(folder, name, "validation", side, squeeze=True) for name in names]
        hashes = torch.cat([difference_hash(data.images) for data in held_out])
        for name in optional:
            data = load_photo_set(folder, name, split, side, squeeze=True)
            data = data.subset((~is_duplicate(difference_hash(data.images), hashes)).nonzero()[:, 0])
            datasets.append(data.subset(balanced_indices(data.labels)) if name == REAL_PHOTOS else data)
    return replace(concat_datasets(datasets), classes=tiny.classes + nette.classes)


def load_photo_set(folder: Path, name: str, split: Split, side: int, *, squeeze: bool = False) -> ImageDataset:
    """One split of one set, with its own labels, counted from 0; those of the photo pool are ``UNLABELLED``.

    Args:
        folder: As in ``load_photos``.
        name: One of ``VALIDATION_EVERY``, or ``TEST_PHOTOS``, which has a test split only.
        split: Which split to load.
        side: Side in pixels.
        squeeze: Whether each whole photo is squeezed into the square. Otherwise its central square is cropped, as on
            the page.

    Raises:
        InputError: If the set's file is missing.
    """
    path = _find_photo_set(folder, name)
    key = {"train": "train", "validation": "train", "test": "test" if name == TEST_PHOTOS else "val"}[split]
    with open_arrays(path) as file:
        blob, offsets = file[f"{key}_blob"], file[f"{key}_offsets"]
        labels, classes = file[f"{key}_labels"].astype(np.int64), file["class_names"]
    if name == PHOTO_POOL:
        labels = np.full_like(labels, UNLABELLED)  # its few labels were never checked
    indices = np.arange(len(labels))
    if split != "test":
        every = VALIDATION_EVERY[name]
        indices = indices[(indices % every == every - 1) == (split == "validation")]

    def decode(i: int) -> tuple[np.ndarray, float]:
        image = Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB")
        return fit_square(image, side, squeeze), image.width / image.height

    with ThreadPoolExecutor() as pool:
        images, aspect_ratios = zip(*pool.map(decode, indices, chunksize=64), strict=True)
    tensor = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)  # [N, side, side, 3] -> [N, 3, side, side]
    names = tuple(str(label) for label in classes)
    repeat_factors = torch.full((len(indices),), REPEAT_FACTORS.get(name, 1.0))
    labels_of_split = torch.from_numpy(labels[indices])
    return ImageDataset(tensor.contiguous(), labels_of_split, names, torch.tensor(aspect_ratios), repeat_factors)


def load_other_photos(folder: Path, side: int) -> ImageDataset | None:
    """Photos of other things for evaluation: one of each ImageNet class that is not among the 50.

    Args:
        folder: As in ``load_photos``; may hold a folder ``imagenet_samples`` with its ``index.csv``.
        side: Side in pixels.

    Returns:
        uint8 ``[N, 3, side, side]``, all labelled ``OUTLIER``; None without that folder.
    """
    table = folder / "imagenet_samples" / "index.csv"
    if not table.is_file():
        return None
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    classes = {wnid for name in PHOTO_SETS for wnid in load_wnids(folder, name)}
    files = [table.parent / "images" / row["file"] for row in rows if row["wnid"] not in classes]
    images = torch.from_numpy(np.stack([fit_square(Image.open(file).convert("RGB"), side) for file in files]))
    images = images.permute(0, 3, 1, 2).contiguous()  # [N, side, side, 3] -> [N, 3, side, side]
    return ImageDataset(images, torch.full((len(images),), OUTLIER), ())


def load_wnids(folder: Path, name: str) -> list[str]:
    """The WordNet identifiers of the classes of one of ``PHOTO_SETS``.

    Raises:
        InputError: If the set's file is missing.
    """
    with open_arrays(_find_photo_set(folder, name)) as file:
        return [str(wnid) for wnid in file["wnids"]]


def _find_photo_set(folder: Path, name: str) -> Path:
    path = find_file(folder, f"{name}.npz")
    if path is None:
        raise InputError(f"No {name}.npz in {folder}: pass the folder that holds it with --data.")
    return path


def fit_square(image: Image.Image, side: int, squeeze: bool = False) -> np.ndarray:
    """The whole photo (``squeeze``) or its central square, resized to uint8 ``[side, side, 3]``."""
    if squeeze:
        return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))
    x, _ = preprocess(image, image_size=side, patch_size=side, mean=(0.0,) * 3, std=(1.0,) * 3)
    return (x[0].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()


def difference_hash(images: Tensor) -> Tensor:
    """Perceptual hashes (dHash): whether each cell of an 8 x 8 grid is brighter than its right neighbour.

    Args:
        images: uint8 ``[N, C, side, side]``.

    Returns:
        bool ``[N, 64]``.
    """
    small = [F.interpolate(chunk.float().mean(1, keepdim=True), (8, 9), mode="area") for chunk in images.split(1000)]
    return torch.cat([(chunk[..., :-1] > chunk[..., 1:]).flatten(1) for chunk in small])


def is_duplicate(hashes: Tensor, others: Tensor) -> Tensor:
    """Which ``hashes`` ``[N, 64]`` are within ``MAX_HASH_DISTANCE`` of one of ``others`` ``[M, 64]``: bool ``[N]``."""
    a, b = hashes.float(), others.float()
    return torch.cat([(torch.cdist(chunk, b, p=1) <= MAX_HASH_DISTANCE).any(1) for chunk in a.split(1000)])


def balanced_indices(labels: Tensor) -> Tensor:
    """Indices that repeat the images of small classes, up to about ``PHOTOS_PER_CLASS`` each.

    Args:
        labels: int64 ``[N]``, from 0.

    Returns:
        int64 ``[M]``, ascending, with each index once to ``MAX_REPEATS`` times.
    """
    repeats = (PHOTOS_PER_CLASS / labels.bincount()[labels]).round().long().clamp(1, MAX_REPEATS)
    return torch.arange(len(labels)).repeat_interleave(repeats)
