"""How good the shipped weights are: accuracy, confusion, calibration, and doubt where there is no right answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.model import ViT
from vit_demo.training.data import Labelled, find_file, load_digits, load_other_digits
from vit_demo.training.not_digits import KINDS, unsure_drawings
from vit_demo.training.not_photos import unseen_not_photos
from vit_demo.training.photos import PHOTO_SETS, TEST_PHOTOS, load_other_photos, load_photo_set
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
        The scores; the first set is the test part of the preset's own data. Where the folder has photos to test with
        alone, those of Tiny ImageNet's classes and those of Imagenette's stand apart as well: they are of two kinds.

    Raises:
        CheckpointError: If the weights cannot be used.
        FileNotFoundError: If data is missing.
    """
    if preset.task == "digits":
        sets = {"mnist": load_digits(data, "test"), **load_other_digits(data)}
        return _ask(preset, weights, patch_sizes, device, sets)
    sets = {name: load_photo_set(data, name, "test", preset.image_size) for name in PHOTO_SETS}
    classes = {name: labelled.classes for name, labelled in sets.items()}
    if find_file(data, f"{TEST_PHOTOS}.npz"):
        sets[TEST_PHOTOS] = load_photo_set(data, TEST_PHOTOS, "test", preset.image_size)
    sets = {name: _with_labels_of(preset, labelled) for name, labelled in sets.items()}
    found = _ask(preset, weights, patch_sizes, device, sets)
    if TEST_PHOTOS in found:
        for name, names in classes.items():
            wanted = torch.tensor([preset.labels.index(label) for label in names])
            rows = torch.isin(sets[TEST_PHOTOS].labels, wanted)
            found[f"{TEST_PHOTOS}, {len(names)} of {name}"] = {
                p: Score(score.logits[rows], score.labels[rows]) for p, score in found[TEST_PHOTOS].items()
            }
    return found


def doubts(
    preset: Preset, weights: Path, patch_sizes: tuple[int, ...], device: torch.device, data: Path | None = None
) -> dict[str, dict[int, float]]:
    """Of pictures that show none of a preset's classes, the share of which it says that it is not sure.

    Arguments as in ``evaluate_preset``. The drawings come with the package and none was trained on; photos of other
    things are asked about where ``data`` has them.

    Returns:
        For each kind of picture, for each patch size, a share in [0, 1].
    """
    if preset.task == "digits":
        pictures = {kind: unsure_drawings(kind) for kind in KINDS}
    else:
        pictures = unseen_not_photos(preset.image_size)
        others = load_other_photos(data, preset.image_size) if data is not None else None
        if others is not None:
            pictures["photos of other things"] = others
    found = _ask(preset, weights, patch_sizes, device, pictures)
    return {
        kind: {p: (score.confidence < preset.confidence_threshold).float().mean().item() for p, score in scores.items()}
        for kind, scores in found.items()
    }


def confidence_shares(preset: Preset, found: Scores) -> dict[str, dict[str, dict[int, float]]]:
    """How the preset's threshold sorts what has a right answer.

    Returns:
        ``"wrong but sure"``: of all images the share answered wrongly with the threshold's confidence or more.
        ``"right but not sure"``: of the right answers the share below it. Each by set and patch size, in [0, 1].
    """
    return {
        "wrong but sure": {
            name: {
                p: (~s.right & (s.confidence >= preset.confidence_threshold)).float().mean().item()
                for p, s in scores.items()
            }
            for name, scores in found.items()
        },
        "right but not sure": {
            name: {
                p: (s.confidence < preset.confidence_threshold)[s.right].float().mean().item()
                for p, s in scores.items()
            }
            for name, scores in found.items()
        },
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
