"""The photos of ``photos-tiny``: two labelled sets of squares, and whole scenes where the data folder has them.

The photos of Tiny ImageNet are small and soft, those of Imagenette sharp. Who knows only these two takes whatever is
sharp for one of Imagenette's ten classes. So a network also learns from labelled photos as people take them, and from
others without labels, most of which show none of the classes.
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

from vit_demo.images.preprocess import preprocess
from vit_demo.training.data import NO_CLASS, UNLABELLED, Labelled, Part, find_file, join

PHOTO_SETS = ("tiny_imagenet40", "imagenette160")
"""The sets of ``photos-tiny``, in the order of its labels; both are needed."""

REAL_PHOTOS, POOL = "real_photos50_train", "photo_pool"
"""Whole scenes, used where they are there: photos labelled as ``PHOTO_SETS`` are, and photos without labels."""

TEST_PHOTOS = "real_photos50"
"""Whole scenes to test with alone."""

STORED_SIDE = 160
"""Pixels at which training photos are kept: more than the network sees, so that a crop may be as sharp as the whole."""

HELD_BACK = {"tiny_imagenet40": 20, "imagenette160": 20, "real_photos50_train": 10, "photo_pool": 20}
"""Every how manyth training photo of a set is held back, to choose recipes by."""

PASSES = {"tiny_imagenet40": 0.6, "imagenette160": 1.3, "real_photos50_train": 1.2, "photo_pool": 0.8}
"""How often a training photo of a set comes up in an epoch: those that are small and soft, or show no class, less."""

PER_CLASS, MOST_REPEATS = 200, 8
"""Real photos are repeated until a class has as many as the former, each photo at most as often as the latter."""

ALIKE = 6
"""Photos whose difference hashes differ in at most this many of 64 bits are taken for the same photo."""


def load_photos(folder: Path, part: Part, side: int) -> Labelled:
    """What ``photos-tiny`` is trained on, chosen by, or tested on: 50 classes.

    Both of ``PHOTO_SETS`` come with a training and a validation part. The latter is this project's test part; its
    validation part is a twentieth of the former. Where ``folder`` has real photos, a tenth of them joins the validation
    part, and the others join the training part, repeated to balance their classes, and so does the pool. What resembles
    a photo held back is left out.

    Args:
        folder: Holds the ``.npz`` files, here or in a folder of each one's name.
        part: Which part.
        side: Pixels of a side; see ``load_photo_set``. Training photos are squeezed.

    Raises:
        FileNotFoundError: If a file of ``PHOTO_SETS`` is missing.
    """
    squeeze = part == "train"
    tiny, nette = (load_photo_set(folder, name, part, side, squeeze=squeeze) for name in PHOTO_SETS)
    parts = [tiny, replace(nette, labels=nette.labels + len(tiny.classes))]
    there = [name for name in (REAL_PHOTOS, POOL) if find_file(folder, f"{name}.npz")]
    if part == "validation" and REAL_PHOTOS in there:
        parts.append(load_photo_set(folder, REAL_PHOTOS, part, side))
    if part == "train" and there:
        held_back = [load_photo_set(folder, name, "validation", side, squeeze=True) for name in (*PHOTO_SETS, *there)]
        known = torch.cat([difference_hash(found.images) for found in held_back])
        for name in there:
            found = load_photo_set(folder, name, part, side, squeeze=True)
            found = found.rows((~resemble(difference_hash(found.images), known)).nonzero()[:, 0])
            parts.append(found.rows(balanced_rows(found.labels)) if name == REAL_PHOTOS else found)
    return replace(join(parts), classes=tiny.classes + nette.classes)


def load_photo_set(folder: Path, name: str, part: Part, side: int, *, squeeze: bool = False) -> Labelled:
    """One set, with its own labels from 0; those of the pool are ``UNLABELLED``.

    Args:
        folder: As in ``load_photos``.
        name: One of ``HELD_BACK``, or ``TEST_PHOTOS``, which has a test part alone.
        part: Which part.
        side: Pixels of a side.
        squeeze: Whether the whole of a photo is squeezed into the square. Otherwise it is the square in its middle, as
            the page shows it to a network.

    Raises:
        FileNotFoundError: If its file is missing.
    """
    path = _path(folder, name)
    key = {"train": "train", "validation": "train", "test": "test" if name == TEST_PHOTOS else "val"}[part]
    with np.load(path) as file:
        blob, offsets = file[f"{key}_blob"], file[f"{key}_offsets"]
        labels, classes = file[f"{key}_labels"].astype(np.int64), file["class_names"]
    if name == POOL:
        labels = np.full_like(labels, UNLABELLED)  # it has a few, which nobody checked
    wanted = np.arange(len(labels))
    if part != "test":
        every = HELD_BACK[name]
        wanted = wanted[(wanted % every == every - 1) == (part == "validation")]

    def decode(i: int) -> tuple[np.ndarray, float]:
        image = Image.open(io.BytesIO(blob[offsets[i] : offsets[i + 1]].tobytes())).convert("RGB")
        return fit_square(image, side, squeeze), image.width / image.height

    with ThreadPoolExecutor() as pool:
        images, aspects = zip(*pool.map(decode, wanted, chunksize=64), strict=True)
    tensor = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)  # [N, side, side, 3] -> [N, 3, side, side]
    names = tuple(str(label) for label in classes)
    passes = torch.full((len(wanted),), PASSES.get(name, 1.0))
    return Labelled(tensor.contiguous(), torch.from_numpy(labels[wanted]), names, torch.tensor(aspects), passes)


def load_other_photos(folder: Path, side: int) -> Labelled | None:
    """Photos of things that are none of the classes, one of each of ImageNet's others, to measure doubt with.

    Args:
        folder: As in ``load_photos``; may hold a folder ``imagenet_samples`` with its ``index.csv``.
        side: Pixels of a side.

    Returns:
        uint8 ``[N, 3, side, side]``, all labelled ``NO_CLASS``; None where there are none.
    """
    table = folder / "imagenet_samples" / "index.csv"
    if not table.is_file():
        return None
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    known = {wnid for name in PHOTO_SETS for wnid in wnids(folder, name)}
    files = [table.parent / "images" / row["file"] for row in rows if row["wnid"] not in known]
    images = torch.from_numpy(np.stack([fit_square(Image.open(file).convert("RGB"), side) for file in files]))
    images = images.permute(0, 3, 1, 2).contiguous()  # [N, side, side, 3] -> [N, 3, side, side]
    return Labelled(images, torch.full((len(images),), NO_CLASS), ())


def wnids(folder: Path, name: str) -> list[str]:
    """What WordNet calls the classes of one of ``PHOTO_SETS``.

    Raises:
        FileNotFoundError: If its file is missing.
    """
    with np.load(_path(folder, name)) as file:
        return [str(wnid) for wnid in file["wnids"]]


def _path(folder: Path, name: str) -> Path:
    path = find_file(folder, f"{name}.npz")
    if path is None:
        raise FileNotFoundError(f"No {name}.npz in {folder}: name the folder that holds it with --data.")
    return path


def fit_square(image: Image.Image, side: int, squeeze: bool = False) -> np.ndarray:
    """The whole of a photo, or the square in its middle, as uint8 ``[side, side, 3]``."""
    if squeeze:
        return np.asarray(image.resize((side, side), Image.Resampling.BICUBIC))
    x, _ = preprocess(image, image_size=side, patch_size=side, mean=(0.0,) * 3, std=(1.0,) * 3)
    return (x[0].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()


def difference_hash(images: Tensor) -> Tensor:
    """Which of 8 x 8 places is brighter than its right neighbour: bool ``[N, 64]``, of uint8 ``[N, C, side, side]``."""
    small = [F.interpolate(part.float().mean(1, keepdim=True), (8, 9), mode="area") for part in images.split(1000)]
    return torch.cat([(part[..., :-1] > part[..., 1:]).flatten(1) for part in small])


def resemble(hashes: Tensor, others: Tensor) -> Tensor:
    """``[N]``: which of ``hashes`` ``[N, 64]`` differ from one of ``others`` ``[M, 64]`` in at most ``ALIKE`` bits."""
    a, b = hashes.float(), others.float()
    return torch.cat([(torch.cdist(part, b, p=1) <= ALIKE).any(1) for part in a.split(1000)])


def balanced_rows(labels: Tensor) -> Tensor:
    """Rows to take so that every class comes near ``PER_CLASS``, none of them more than ``MOST_REPEATS`` times.

    Args:
        labels: ``[N]`` int64, from 0.

    Returns:
        int64 ``[M]``, ascending; each row is there at least once.
    """
    repeats = (PER_CLASS / labels.bincount()[labels]).round().long().clamp(1, MOST_REPEATS)
    return torch.arange(len(labels)).repeat_interleave(repeats)
