"""The data of each task, for training and evaluation: another data set is a loader beside this file, named here."""

from dataclasses import replace
from pathlib import Path

import torch

from recipes import digits, drawings, photo_outliers
from recipes.image_dataset import ImageDataset, Split, concat_datasets, find_file
from recipes.photos import PHOTO_SETS, TEST_PHOTOS, load_other_photos, load_photo_set, load_photos
from recipes.recipes import Recipe
from vit_demo.weights import Preset

DATA_NOTES = {
    "digits": "MNIST (Y. LeCun, C. Cortes, C. Burges), 55,000 training digits, CC BY-SA 3.0; drawings of this project",
    "photos": "40 classes of Tiny ImageNet, and Imagenette, training sets, ImageNet's terms: non-commercial research; "
    "photos from public repositories where the folder holds them, mostly without a stated licence; generated pictures",
}
"""What the record of a checkpoint says about the data of each task: its origin and its licence."""


def load_split(preset: Preset, data: Path, split: Split) -> ImageDataset:
    """One split of a preset's data."""
    is_digits = preset.task == "digits"
    return digits.load_digits(data, split) if is_digits else load_photos(data, split, preset.image_size)


def training_dataset(data: ImageDataset, recipe: Recipe, seed: int) -> ImageDataset:
    """The training data with what the recipe adds to it."""
    datasets = [data]
    if recipe.synthetic_digits:
        datasets.append(drawings.make_synthetic_digits(recipe.synthetic_digits, seed))
    if recipe.digit_outliers:
        datasets.append(drawings.make_digit_outliers(recipe.digit_outliers, seed, data))
    if recipe.photo_outliers:
        datasets.append(photo_outliers.make_photo_outliers(recipe.photo_outliers, seed, recipe.teacher_image_size))
    return concat_datasets(datasets)


def labelled_sets(preset: Preset, data: Path) -> dict[str, ImageDataset]:
    """All labelled datasets in the folder ``data`` that the preset was not trained on, by name.

    The first is the test split of the preset's own data. If the folder holds ``real_photos50.npz``, its photos of Tiny
    ImageNet's classes and of Imagenette's classes follow separately.
    """
    if preset.task == "digits":
        return {"mnist": digits.load_digits(data, "test"), **digits.load_other_digits(data)}
    side = preset.image_size
    datasets = {name: _relabel(load_photo_set(data, name, "test", side), preset) for name in PHOTO_SETS}
    if find_file(data, f"{TEST_PHOTOS}.npz"):
        real = datasets[TEST_PHOTOS] = _relabel(load_photo_set(data, TEST_PHOTOS, "test", side), preset)
        for name in PHOTO_SETS:
            labels = datasets[name].labels.unique()
            rows = torch.isin(real.labels, labels).nonzero()[:, 0]
            datasets[f"{TEST_PHOTOS}, {len(labels)} classes of {name}"] = real.subset(rows)
    return datasets


def outlier_sets(preset: Preset, data: Path) -> dict[str, ImageDataset]:
    """Images that show none of a preset's classes, by kind: generated ones, and photos if the folder holds them."""
    if preset.task == "digits":
        return {kind: drawings.evaluation_digit_outliers(kind) for kind in drawings.EVALUATION_KINDS}
    others = load_other_photos(data, preset.image_size)
    photos = {"photos of other things": others} if others is not None else {}
    return photo_outliers.evaluation_photo_outliers(preset.image_size) | photos


def _relabel(data: ImageDataset, preset: Preset) -> ImageDataset:
    """Replaces a dataset's own labels by those of a preset with the same class names."""
    index = torch.tensor([preset.labels.index(name) for name in data.classes])
    return replace(data, labels=index[data.labels], classes=preset.labels)
