"""Evaluation of a preset's checkpoints: predictions, figures as plain values, tables of text, and plots."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recipes.datasets import labelled_sets, outlier_sets
from recipes.image_dataset import ImageDataset
from recipes.predictions import Predictions, predict
from recipes.recipes import bundled_preset
from vit_demo.accelerator import best_device
from vit_demo.checks import find_device, require
from vit_demo.cli.output import make_folder
from vit_demo.model import ViT
from vit_demo.resources import resource_folder
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint

Results = dict[str, dict[int, Predictions]]
"""Predictions by dataset and patch size."""

FIGURES: dict[str, Callable[[Predictions, Preset], float]] = {
    "accuracy": lambda found, preset: found.accuracy,
    "calibration_error": lambda found, preset: found.calibration_error(),
    "calibration_error_of_perfect_calibration": lambda found, preset: found.sampling_error(),
    "wrong_but_confident": lambda found, preset: _mean(found.confident(preset) & ~found.correct),
    "correct_but_rejected": lambda found, preset: _mean(~found.confident(preset)[found.correct]),
}
"""What is computed for each labelled dataset, in [0, 1]. A prediction whose confidence is low is rejected."""

MAX_CLASSES = 12
"""With more classes than this, the most frequent errors are printed instead of the confusion matrix."""


def report_preset(
    name: str,
    data: Path,
    *,
    patch_size: int | None = None,
    device: str | None = None,
    weights: Path | None = None,
    plot: Path | None = None,
    as_json: bool = False,
) -> str:
    """Evaluates a bundled preset on all the data that a folder holds of its kind.

    Args:
        name: Of the preset.
        data: The folder, as ``docs/training.md`` lists its files.
        patch_size: In pixels; None for all sizes of the preset.
        device: As ``vit_demo.explore`` takes it.
        weights: The folder of the checkpoints; None for the bundled ones.
        plot: The folder of the plots, if any.
        as_json: Whether the result is the JSON of ``make_report``, not tables.

    Raises:
        PresetError: For a preset that is not bundled, or a patch size that does not fit.
        InputError: If data, checkpoints or a folder cannot be used.
    """
    preset, weights = bundled_preset(name), weights or resource_folder("checkpoints")
    where = find_device(device) if device else best_device()
    sizes = preset.patch_sizes if patch_size is None else (preset.check_patch_size(patch_size),)
    shown = preset.default_patch_size if preset.default_patch_size in sizes else sizes[0]
    if plot:
        make_folder(plot)
    results = evaluate(preset, labelled_sets(preset, data), weights, sizes, where)
    outliers = evaluate(preset, outlier_sets(preset, data), weights, sizes, where)
    if plot:
        for dataset, predictions in results.items():
            path = plot / f"{preset.name}-{dataset}-{shown}.png"
            plot_predictions(preset, dataset, shown, predictions[shown], path)
    report = make_report(preset, results, outliers, shown)
    return json.dumps(report) if as_json else format_report(preset, report)


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


def make_report(preset: Preset, results: Results, outliers: Results, patch_size: int) -> dict[str, Any]:
    """All figures of an evaluation, on labelled datasets and on images that show none of the classes (``outliers``).

    Returns:
        Each of ``FIGURES`` by dataset and patch size; ``"rejection_rate"`` by kind of outlier and patch size; the
        preset's ``"confidence_threshold"`` and ``"max_entropy"`` (None for no limit), which decide what is rejected;
        and ``"confusion_matrix"`` by dataset, with its ``"patch_size"``.
    """
    tables = {
        title: {name: {p: figure(found, preset) for p, found in sizes.items()} for name, sizes in results.items()}
        for title, figure in FIGURES.items()
    }
    rejected = {
        kind: {p: _mean(~found.confident(preset)) for p, found in sizes.items()} for kind, sizes in outliers.items()
    }
    matrices = {name: sizes[patch_size].confusion_matrix().tolist() for name, sizes in results.items()}
    return {
        "preset": preset.name,
        "confidence_threshold": preset.confidence_threshold,
        "max_entropy": preset.max_entropy if math.isfinite(preset.max_entropy) else None,
        **tables,
        "rejection_rate": rejected,
        "confusion_matrix": {"patch_size": patch_size, **matrices},
    }


def _mean(chosen: Tensor) -> float:
    """The fraction of true values; 0 of none."""
    return chosen.float().mean().item() if len(chosen) else 0.0


def format_report(preset: Preset, report: dict[str, Any]) -> str:
    """A report as tables in per cent, with the errors on the first dataset."""
    headings = {title: title.replace("_", " ") + ", %" for title in FIGURES}
    headings["rejection_rate"] = "rejection rate of outliers, %"
    width = 4 + max(len(text) for title, heading in headings.items() for text in (heading, *report[title]))
    lines = []
    for title, heading in headings.items():
        sizes = next(iter(report[title].values()))
        lines.append(f"{heading:{width}}" + "".join(f"patch {p:<3}" for p in sizes))
        for name, values in report[title].items():
            lines.append(f"  {name:{width - 4}}" + "".join(f"{100 * value:8.2f} " for value in values.values()))
        lines.append("")
    patch_size, name = report["confusion_matrix"]["patch_size"], next(iter(report["accuracy"]))
    matrix = report["confusion_matrix"][name]
    if len(preset.labels) <= MAX_CLASSES:
        lines.append(f"confusion matrix on {name} at patch size {patch_size}")
        lines.append("  label  prediction" + "".join(f"{label:>6}" for label in preset.labels))
        for label, row in zip(preset.labels, matrix, strict=True):
            lines.append(f"  {label:16}" + "".join(f"{count or '.':>6}" for count in row))
    else:
        lines.append(f"most frequent errors on {name} at patch size {patch_size}")
        pairs = [
            (count, preset.labels[i], preset.labels[j])
            for i, row in enumerate(matrix)
            for j, count in enumerate(row)
            if i != j and count
        ]
        for count, label, prediction in sorted(pairs, reverse=True)[:MAX_CLASSES]:
            lines.append(f"  {label} predicted as {prediction}: {count}")
    return "\n".join(lines)


def plot_predictions(preset: Preset, name: str, patch_size: int, predictions: Predictions, path: Path) -> None:
    """Draws the confusion matrix and the reliability diagram of a dataset into a PNG file."""
    require("matplotlib", "A plot")
    from matplotlib.figure import Figure

    matrix, classes = predictions.confusion_matrix(), len(preset.labels)
    is_small = classes <= MAX_CLASSES
    figure = Figure(figsize=(11, 5) if is_small else (13, 6.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(f"{preset.name}, patch size {patch_size}, {name}: accuracy {100 * predictions.accuracy:.2f} %")
    left.imshow((matrix / matrix.sum(1, keepdim=True).clamp(min=1)).sqrt().numpy(), cmap="Purples", vmin=0, vmax=1)
    ticks = range(classes)
    left.set(title="Confusion matrix", xlabel="prediction", ylabel="label", xticks=ticks, yticks=ticks)
    left.set_xticklabels(preset.labels, rotation=0 if is_small else 90, fontsize=10 if is_small else 6)
    left.set_yticklabels(preset.labels, fontsize=10 if is_small else 6)
    if is_small:
        for row, column in matrix.nonzero().tolist():
            colour = "white" if row == column else "black"
            left.text(column, row, str(int(matrix[row, column])), ha="center", va="center", color=colour, fontsize=8)
    bins = predictions.reliability()
    right.plot([0, 1], [0, 1], color="grey", linestyle=":", label="perfect calibration")
    right.plot([mean for mean, _, _ in bins], [accuracy for _, accuracy, _ in bins], marker="o", label=preset.name)
    right.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02))
    right.set_title(f"Expected calibration error {100 * predictions.calibration_error():.2f} %")
    right.legend()
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
