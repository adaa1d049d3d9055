"""Evaluation of a preset's checkpoints: predictions for labelled test sets, and for images of none of its classes."""

from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.model import ViT
from vit_demo.training.data import ImageDataset, find_file, load_digits, load_other_digits
from vit_demo.training.drawings import EVALUATION_KINDS, evaluation_digit_outliers
from vit_demo.training.photo_outliers import evaluation_photo_outliers
from vit_demo.training.photos import PHOTO_SETS, TEST_PHOTOS, load_other_photos, load_photo_set
from vit_demo.training.predictions import Predictions, predict
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint

Results = dict[str, dict[int, Predictions]]
"""Predictions by dataset and patch size."""


def evaluate(
    preset: Preset, datasets: dict[str, ImageDataset], weights: Path, patch_sizes: tuple[int, ...], device: torch.device
) -> Results:
    """The predictions of a preset's checkpoints for each dataset at each patch size."""
    models: dict[str, ViT] = {}
    results: Results = {name: {} for name in datasets}
    for p in patch_sizes:
        stem = preset.checkpoint_name(p)
        if stem not in models:
            models[stem] = load_checkpoint(weights / f"{stem}.safetensors")[0].to(device)
        for name, dataset in datasets.items():
            results[name][p] = predict(models[stem], dataset, preset, p)
    return results


def labelled_sets(preset: Preset, data: Path) -> dict[str, ImageDataset]:
    """All labelled datasets in the folder ``data`` that the preset was not trained on, by name.

    The first is the test split of the preset's own data. If the folder holds ``real_photos50.npz``, its photos of Tiny
    ImageNet's classes and of Imagenette's classes follow separately.
    """
    if preset.task == "digits":
        return {"mnist": load_digits(data, "test"), **load_other_digits(data)}
    side = preset.image_size
    datasets = {name: _relabel(load_photo_set(data, name, "test", side), preset) for name in PHOTO_SETS}
    if find_file(data, f"{TEST_PHOTOS}.npz"):
        real = datasets[TEST_PHOTOS] = _relabel(load_photo_set(data, TEST_PHOTOS, "test", side), preset)
        for name in PHOTO_SETS:
            known = datasets[name].labels.unique()
            rows = torch.isin(real.labels, known).nonzero()[:, 0]
            datasets[f"{TEST_PHOTOS}, {len(known)} classes of {name}"] = real.subset(rows)
    return datasets


def outlier_sets(preset: Preset, data: Path) -> dict[str, ImageDataset]:
    """Images that show none of a preset's classes, by kind: generated ones, and photos if the folder holds them."""
    if preset.task == "digits":
        return {kind: evaluation_digit_outliers(kind) for kind in EVALUATION_KINDS}
    others = load_other_photos(data, preset.image_size)
    photos = {"photos of other things": others} if others is not None else {}
    return evaluation_photo_outliers(preset.image_size) | photos


def _relabel(data: ImageDataset, preset: Preset) -> ImageDataset:
    """Replaces a dataset's own labels by those of a preset with the same class names."""
    index = torch.tensor([preset.labels.index(name) for name in data.classes])
    return replace(data, labels=index[data.labels], classes=preset.labels)
