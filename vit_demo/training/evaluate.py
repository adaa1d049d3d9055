"""Evaluation of a preset's checkpoints: predictions for labelled test sets and for outliers, and rejection rates.

A prediction is rejected if its confidence is low (``vit_demo.weights.confidence``); the page then says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.model import ViT
from vit_demo.training.data import ImageDataset, find_file, load_digits, load_other_digits
from vit_demo.training.digit_outliers import EVALUATION_KINDS, evaluation_digit_outliers
from vit_demo.training.photo_outliers import evaluation_photo_outliers
from vit_demo.training.photos import PHOTO_SETS, TEST_PHOTOS, load_other_photos, load_photo_set
from vit_demo.training.predictions import Predictions, predict
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint

Results = dict[str, dict[int, Predictions]]
"""Predictions by dataset and patch size."""

Rates = dict[str, dict[int, float]]
"""A rate in [0, 1] by dataset and patch size."""


def evaluate_preset(
    preset: Preset, data: Path, weights: Path, patch_sizes: tuple[int, ...], device: torch.device
) -> Results:
    """Predictions for all labelled datasets that the preset was not trained on.

    Args:
        preset: The preset to evaluate.
        data: Folder of the data.
        weights: Folder of the checkpoints.
        patch_sizes: Which of the preset's.
        device: Where to run.

    Returns:
        The predictions; the first dataset is the test split of the preset's own data. If the folder holds
        ``real_photos50.npz``, its photos of Tiny ImageNet's classes and of Imagenette's classes follow separately.

    Raises:
        CheckpointError: If the checkpoints cannot be used.
        InputError: If data is missing.
    """
    if preset.task == "digits":
        datasets = {"mnist": load_digits(data, "test"), **load_other_digits(data)}
        return _predict_all(preset, weights, patch_sizes, device, datasets)
    datasets = {name: load_photo_set(data, name, "test", preset.image_size) for name in PHOTO_SETS}
    classes = {name: dataset.classes for name, dataset in datasets.items()}
    if find_file(data, f"{TEST_PHOTOS}.npz"):
        datasets[TEST_PHOTOS] = load_photo_set(data, TEST_PHOTOS, "test", preset.image_size)
    datasets = {name: _relabel(dataset, preset) for name, dataset in datasets.items()}
    results = _predict_all(preset, weights, patch_sizes, device, datasets)
    if TEST_PHOTOS in results:
        for name, labels in classes.items():
            indices = torch.tensor([preset.labels.index(label) for label in labels])
            rows = torch.isin(datasets[TEST_PHOTOS].labels, indices)
            results[f"{TEST_PHOTOS}, {len(labels)} classes of {name}"] = {
                p: predictions.subset(rows) for p, predictions in results[TEST_PHOTOS].items()
            }
    return results


def evaluate_outliers(
    preset: Preset, weights: Path, patch_sizes: tuple[int, ...], device: torch.device, data: Path | None = None
) -> Results:
    """Predictions for images that show none of a preset's classes.

    Arguments as in ``evaluate_preset``. The generated outliers need no data; photos of other things are included if
    ``data`` holds them.

    Returns:
        The predictions by kind of outlier and patch size.
    """
    if preset.task == "digits":
        datasets = {kind: evaluation_digit_outliers(kind) for kind in EVALUATION_KINDS}
    else:
        datasets = evaluation_photo_outliers(preset.image_size)
        others = load_other_photos(data, preset.image_size) if data is not None else None
        if others is not None:
            datasets["photos of other things"] = others
    return _predict_all(preset, weights, patch_sizes, device, datasets)


def rejection_rate(results: Results, preset: Preset) -> Rates:
    """Fraction of all predictions whose confidence is low. Of outliers, the higher the better."""
    return _rates(results, lambda p: (~p.confident(preset)).float().mean().item())


def wrong_but_confident(results: Results, preset: Preset) -> Rates:
    """Fraction of all predictions that are wrong although their confidence is not low."""
    return _rates(results, lambda p: (~p.correct & p.confident(preset)).float().mean().item())


def correct_but_rejected(results: Results, preset: Preset) -> Rates:
    """Fraction of the correct predictions whose confidence is low; 0 if none is correct."""
    return _rates(results, lambda p: (~p.confident(preset) & p.correct).sum().item() / max(1, int(p.correct.sum())))


def _rates(results: Results, rate: Callable[[Predictions], float]) -> Rates:
    return {name: {p: rate(predictions) for p, predictions in sizes.items()} for name, sizes in results.items()}


def _predict_all(
    preset: Preset,
    weights: Path,
    patch_sizes: tuple[int, ...],
    device: torch.device,
    datasets: dict[str, ImageDataset],
) -> Results:
    models: dict[str, ViT] = {}
    results: Results = {name: {} for name in datasets}
    for p in patch_sizes:
        stem = preset.checkpoint_name(p)
        if stem not in models:
            models[stem] = load_checkpoint(weights / f"{stem}.safetensors")[0].to(device)
        for name, dataset in datasets.items():
            results[name][p] = predict(models[stem], dataset, preset, p)
    return results


def _relabel(data: ImageDataset, preset: Preset) -> ImageDataset:
    """Replaces a dataset's own labels by those of a preset with the same class names."""
    index = torch.tensor([preset.labels.index(name) for name in data.classes])
    return replace(data, labels=index[data.labels], classes=preset.labels)
