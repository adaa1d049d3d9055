"""How good the shipped weights are: accuracy, confusion, calibration, and doubt where there is no right answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.model import ViT
from vit_demo.training.data import PHOTO_SETS, Labelled, load_digits, load_other_digits, load_photo_set
from vit_demo.training.not_digits import KINDS, unsure_drawings
from vit_demo.training.scoring import Score, score
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint

Scores = dict[str, dict[int, Score]]
"""For each set by name, what each patch size made of it."""


def evaluate_preset(
    preset: Preset, data: Path, weights: Path, patch_sizes: tuple[int, ...], device: torch.device
) -> Scores:
    """Asks a preset about everything that has a right answer and that it was never trained on.

    Args:
        preset: Which.
        data: Folder of the data.
        weights: Folder of the checkpoints.
        patch_sizes: Which of the preset's.
        device: Where to run.

    Returns:
        The scores; the first set is the test part of the preset's own data.

    Raises:
        CheckpointError: If the weights cannot be used.
        FileNotFoundError: If data is missing.
    """
    if preset.task == "digits":
        sets = {"mnist": load_digits(data, "test"), **load_other_digits(data)}
    else:
        sets = {name: load_photo_set(data, name, "test", preset.image_size) for name in PHOTO_SETS}
        sets = {name: _with_labels_of(preset, labelled) for name, labelled in sets.items()}
    return _ask(preset, weights, patch_sizes, device, sets)


def doubts(
    preset: Preset, weights: Path, patch_sizes: tuple[int, ...], device: torch.device
) -> dict[str, dict[int, float]]:
    """Of drawings that are no digit, the share for which a digits preset says that it is not sure.

    Arguments as in ``evaluate_preset``. The drawings come with the package; none was trained on.

    Returns:
        For each kind of drawing, for each patch size, a share in [0, 1].
    """
    drawings = {kind: unsure_drawings(kind) for kind in KINDS}
    found = _ask(preset, weights, patch_sizes, device, drawings)
    return {
        kind: {p: (score.confidence < preset.confidence_threshold).float().mean().item() for p, score in scores.items()}
        for kind, scores in found.items()
    }


def plot(preset: Preset, name: str, patch_size: int, found: Score, path: Path) -> None:
    """Draws the confusion matrix and the reliability diagram of one set into a PNG file."""
    from matplotlib.figure import Figure

    table, classes = found.confusion(), len(preset.labels)
    figure = Figure(figsize=(13, 6.4) if classes > 12 else (11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(f"{preset.name}, patch {patch_size}, on {name}: {100 * found.accuracy:.2f} % right")
    left.imshow((table / table.sum(1, keepdim=True).clamp(min=1)).sqrt().numpy(), cmap="Purples", vmin=0, vmax=1)
    ticks = range(classes)
    left.set(title="Confusion", xlabel="answer", ylabel="truth", xticks=ticks, yticks=ticks)
    left.set_xticklabels(preset.labels, rotation=90 if classes > 12 else 0, fontsize=6 if classes > 12 else 10)
    left.set_yticklabels(preset.labels, fontsize=6 if classes > 12 else 10)
    if classes <= 12:
        for row, column in table.nonzero().tolist():
            colour = "white" if row == column else "black"
            left.text(column, row, str(int(table[row, column])), ha="center", va="center", color=colour, fontsize=8)
    bins = found.reliability()
    right.plot([0, 1], [0, 1], color="grey", linestyle=":", label="deserved confidence")
    right.plot([sure for sure, _, _ in bins], [share for _, share, _ in bins], marker="o", label=preset.name)
    right.set(xlabel="confidence", ylabel="share right", xlim=(0, 1.02), ylim=(0, 1.02))
    right.set_title(f"Expected calibration error {100 * found.calibration_error():.2f} %")
    right.legend()
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _ask(
    preset: Preset, weights: Path, patch_sizes: tuple[int, ...], device: torch.device, sets: dict[str, Labelled]
) -> Scores:
    models: dict[str, ViT] = {}
    found: Scores = {name: {} for name in sets}
    for p in patch_sizes:
        stem = preset.checkpoint_name(p)
        if stem not in models:
            models[stem] = load_checkpoint(weights / f"{stem}.safetensors")[0].to(device)
        for name, labelled in sets.items():
            found[name][p] = score(models[stem], labelled, preset, p)
    return found


def _with_labels_of(preset: Preset, data: Labelled) -> Labelled:
    """One set's own labels, from 0, to the preset's."""
    index = torch.tensor([preset.labels.index(name) for name in data.classes])
    return replace(data, labels=index[data.labels], classes=preset.labels)
