"""The photos of ``photos-tiny``: two labelled sets, and further photos of whole scenes if the data folder holds them.

Tiny ImageNet's photos are small and blurred, Imagenette's are sharp. A network trained on these two alone tends to
classify any sharp photo as one of Imagenette's ten classes. Labelled everyday photos, and unlabelled
photos that mostly show none of the classes, correct this.
"""

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
from torchvision.transforms.v2.functional import pil_to_tensor

from recipes.image_dataset import (
    OUTLIER,
    UNLABELLED,
    ImageDataset,
    Split,
    concat_datasets,
    find_file,
    open_arrays,
)
from vit_demo.errors import InputError
from vit_demo.images.photo_preprocess import preprocess

PHOTO_SETS = ("tiny_imagenet40", "imagenette160")
"""The required sets of ``photos-tiny``, in the order of its labels."""

REAL_PHOTOS, PHOTO_POOL = "real_photos50_train", "photo_pool"
"""Optional sets of whole scenes: one with labels of the classes of ``PHOTO_SETS``, one without labels."""

TEST_PHOTOS = "real_photos50"
"""Whole scenes that serve as a test set only."""

VALIDATION_EVERY = {"tiny_imagenet40": 20, "imagenette160": 20, "real_photos50_train": 10, "photo_pool": 20}
"""In each set one training photo in this many belongs to the validation split."""

DRAWS_PER_EPOCH = {"tiny_imagenet40": 0.6, "imagenette160": 1.3, "real_photos50_train": 1.2, "photo_pool": 0.8}
"""How often a training photo of each set is drawn in an epoch, on average."""

PHOTOS_PER_CLASS, MAX_REPEATS = 200, 8
"""Real photos of rarer classes are drawn as if there were this many, but none more often than the second number."""

MAX_HASH_DISTANCE = 6
"""Photos whose difference hashes differ in at most this many of 64 bits are considered duplicates."""


def load_photos(folder: Path, split: Split, side: int) -> ImageDataset:
    """One split of the data of ``photos-tiny``, with 50 classes; training photos keep their size.

    The test split consists of the official validation sets of ``PHOTO_SETS``. The validation split is taken from their
    training sets and, if ``folder`` holds them, from the labelled real photos; each set has the same total weight. The
    training split is the rest and the photo pool, without near-duplicates of validation photos.
    """
    names = [*PHOTO_SETS]
    if split != "test":
        candidates = (REAL_PHOTOS, PHOTO_POOL) if split == "train" else (REAL_PHOTOS,)
        names += [name for name in candidates if find_file(folder, f"{name}.npz")]
    sets = {name: load_photo_set(folder, name, split, None if split == "train" else side) for name in names}
    tiny, nette = (sets[name] for name in PHOTO_SETS)
    sets[PHOTO_SETS[1]] = replace(nette, labels=nette.labels + len(tiny.classes))
    if split == "train":
        held_out = [load_photo_set(folder, name, "validation", None) for name in names]
        hashes = torch.cat([difference_hash(data.images) for data in held_out])
        for name, data in sets.items():
            if name not in PHOTO_SETS:
                data = data.subset((~is_duplicate(difference_hash(data.images), hashes)).nonzero()[:, 0])
            sets[name] = replace(data, weights=_draws(name, data.labels))
    elif split == "validation":
        sets = {name: replace(data, weights=torch.full((len(data),), 1 / len(data))) for name, data in sets.items()}
    return replace(concat_datasets(list(sets.values())), classes=tiny.classes + nette.classes)


def load_photo_set(folder: Path, name: str, split: Split, side: int | None) -> ImageDataset:
    """One split of one set, with its own labels, counted from 0; those of the photo pool are ``UNLABELLED``.

    The photos are central squares, cropped as on the page, or whole where ``side`` is None. ``TEST_PHOTOS`` has a test
    split only.
    """
    key = {"train": "train", "validation": "train", "test": "test" if name == TEST_PHOTOS else "val"}[split]
    with open_arrays(_find_photo_set(folder, name)) as file:
        blob, offsets = file[f"{key}_blob"], file[f"{key}_offsets"]
        labels, classes = file[f"{key}_labels"].astype(np.int64), file["class_names"]
    if name == PHOTO_POOL:
        labels = np.full_like(labels, UNLABELLED)  # its few labels were never checked
    indices = np.arange(len(labels))
    if split != "test":
        every = VALIDATION_EVERY[name]
        indices = indices[(indices % every == every - 1) == (split == "validation")]

    def decode(i: int) -> Tensor:
        image = Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB")
        return pil_to_tensor(image) if side is None else fit_square(image, side)

    with ThreadPoolExecutor() as pool:
        images = list(pool.map(decode, indices, chunksize=64))
    names = tuple(str(label) for label in classes)
    return ImageDataset(images if side is None else torch.stack(images), torch.from_numpy(labels[indices]), names)


def load_other_photos(folder: Path, side: int) -> ImageDataset | None:
    """Photos of other things for evaluation: one of each ImageNet class that is not among the 50, labelled ``OUTLIER``.

    None without the folder ``imagenet_samples`` and its ``index.csv``.
    """
    table = folder / "imagenet_samples" / "index.csv"
    if not table.is_file():
        return None
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    classes = {wnid for name in PHOTO_SETS for wnid in load_wnids(folder, name)}
    files = [table.parent / "images" / row["file"] for row in rows if row["wnid"] not in classes]
    images = torch.stack([fit_square(Image.open(file).convert("RGB"), side) for file in files])
    return ImageDataset(images, torch.full((len(images),), OUTLIER), ())


def load_wnids(folder: Path, name: str) -> list[str]:
    """The WordNet identifiers of the classes of one of ``PHOTO_SETS``."""
    with open_arrays(_find_photo_set(folder, name)) as file:
        return [str(wnid) for wnid in file["wnids"]]


def _find_photo_set(folder: Path, name: str) -> Path:
    path = find_file(folder, f"{name}.npz")
    if path is None:
        raise InputError(f"No {name}.npz in {folder}: pass the folder that holds it with --data.")
    return path


def _draws(name: str, labels: Tensor) -> Tensor:
    """How often each training photo of a set is drawn in an epoch, ``[N]``; the real photos' classes are balanced."""
    draws = torch.full((len(labels),), DRAWS_PER_EPOCH[name])
    if name != REAL_PHOTOS:
        return draws
    return draws * (PHOTOS_PER_CLASS / labels.bincount()[labels]).clamp(1, MAX_REPEATS)


def fit_square(image: Image.Image, side: int) -> Tensor:
    """The central square of a photo as the page crops it, uint8 ``[3, side, side]``."""
    x, _ = preprocess(image, image_size=side, patch_size=side, mean=(0.0,) * 3, std=(1.0,) * 3)
    return (x[0] * 255).round().to(torch.uint8)


def difference_hash(images: list[Tensor] | Tensor) -> Tensor:
    """Perceptual hashes (dHash) ``[N, 64]``: is each cell of an 8 x 8 grid brighter than its right neighbour?"""
    small = torch.cat([F.interpolate(image.float().mean(0)[None, None], (8, 9), mode="area") for image in images])
    return (small[..., :-1] > small[..., 1:]).flatten(1)  # [N, 1, 8, 9] -> [N, 64]


def is_duplicate(hashes: Tensor, others: Tensor) -> Tensor:
    """Which ``hashes`` ``[N, 64]`` are within ``MAX_HASH_DISTANCE`` of one of ``others`` ``[M, 64]``: bool ``[N]``."""
    a, b = hashes.float(), others.float()
    return torch.cat([(torch.cdist(chunk, b, p=1) <= MAX_HASH_DISTANCE).any(1) for chunk in a.split(1000)])
