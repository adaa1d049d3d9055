"""Any model on a folder of labelled pictures with a subfolder for each class, as for torchvision's ``ImageFolder``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vit_demo.checks import composed, did_you_mean
from vit_demo.errors import InputError, LabelError
from vit_demo.folders import pictures_by_class
from vit_demo.training.predictions import Predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vit_demo.inference.explainer import Explainer
    from vit_demo.inference.inputs import Source

MOST_ERRORS = 10  # how many kinds of errors, and of unreadable files, a report names


def labelled_pictures(folder: Path, labels: Sequence[str]) -> list[tuple[Path, int]]:
    """The pictures of a folder, each with the index of its class, in the order of their names.

    The folder has a subfolder for each class, named by its label, its number, or its WordNet id in ImageNet.
    ``InputError`` if there are no such pictures, ``LabelError`` if a subfolder names no class, or no single one.
    """
    found = {name: files for name, files in labelled_folders(folder).items() if files}
    classes = folder_classes(list(found), labels)
    return [(file, classes[name]) for name, files in found.items() for file in files]


def labelled_folders(folder: Path) -> dict[str, list[Path]]:
    """The pictures of each subfolder of a folder, by its name; ``InputError`` if there are none."""
    found = {name: files for name, files in pictures_by_class(folder).items() if name}
    if not any(found.values()):
        raise InputError(f"{folder} holds no labelled pictures: give a folder with a subfolder for each class.")
    return found


def folder_classes(folders: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """The class of each folder: by its exact label, its number where no label is one, its WordNet id, or its letters.

    ``LabelError`` if a folder names none or several, or two name the same.
    """
    exact, alike = {composed(label): index for index, label in enumerate(labels)}, dict[str, list[int]]()
    for index, label in enumerate(labels):
        alike.setdefault(plain(label), []).append(index)
    numbers = {str(index): index for index in range(len(labels))}
    if not numbers.keys() >= set(folders) or any(re.fullmatch(r"[+-]?\d+", label) for label in labels):
        numbers = {}
    if len(labels) == 1000:
        from timm.data import ImageNetInfo  # here, because importing it takes long

        numbers |= {wordnet: index for index, wordnet in enumerate(ImageNetInfo().label_names())}
    found = dict[int, str]()
    for folder in folders:
        own = exact.get(composed(folder), numbers.get(folder))
        indices = alike.get(plain(folder), []) if own is None else [own]
        if not indices:
            raise LabelError(f"The model has no class {folder!r}{did_you_mean(folder, labels)}: rename the folder.")
        if len(indices) > 1:
            several = " and ".join(repr(labels[index]) for index in indices)
            raise LabelError(f"The model has the classes {several}: name the folder {folder!r} exactly as one of them.")
        if (other := found.setdefault(indices[0], folder)) != folder:
            raise LabelError(
                f"The folders {other!r} and {folder!r} name one class, {labels[indices[0]]!r}: merge them."
            )
    return {folder: index for index, folder in found.items()}


def plain(label: str) -> str:
    """A class's name without case and signs, for comparisons."""
    return composed(label).strip().replace("_", " ").replace("-", " ").casefold()


def evaluate_pictures(
    explainer: Explainer, pictures: Sequence[tuple[Path, int]], progress: Callable[[int], Any]
) -> dict[str, Any]:
    """Accuracy and calibration of a model on labelled pictures; ``InputError`` if none of them can be used.

    Args:
        explainer: The model.
        pictures: Files and the indices of their classes.
        progress: Called with 1 after each picture.

    Returns:
        ``"model"``, ``"patch_size"``, ``"pictures"``, ``"accuracy"`` and ``"accuracy_top5"`` in [0, 1],
        ``"accuracy_by_class"``, ``"most_frequent_errors"`` as (label, prediction, count), ``"unreadable"`` with
        messages; for softmax scores ``"calibration_error"`` and ``"calibration_error_of_perfect_calibration"``, the
        error that so few pictures would show even then.
    """
    results: list[NDArray[np.float32]] = []  # [classes] each
    targets, unreadable = list[int](), list[str]()
    classes, first = {os.fspath(path): target for path, target in pictures}, None

    def skip(path: Source, error: InputError) -> None:
        unreadable.append(f"{path}: {error}")
        progress(1)

    for result in explainer.batch([path for path, _ in pictures], on_error=skip):
        first = first or result
        results.append(result.logits)
        targets.append(classes[str(result.source)])
        progress(1)
    if first is None:
        raise InputError(f"None of the pictures can be used. {unreadable[0]}")
    found = Predictions(torch.from_numpy(np.stack(results)), torch.tensor(targets))
    best = found.logits.topk(min(5, found.logits.shape[1]), dim=1).indices  # [N, 5]
    right, count = Counter(found.labels[found.correct].tolist()), Counter(targets)
    wrong = Counter((t, int(b)) for t, b in zip(targets, best[:, 0], strict=True) if t != int(b))
    names = first.labels
    report: dict[str, Any] = {
        "model": first.preset.name,
        "patch_size": first.patch_size,
        "pictures": len(targets),
        "accuracy": found.accuracy,
        "accuracy_top5": (best == found.labels[:, None]).any(1).float().mean().item(),
    }
    if first.preset.scores == "softmax":
        report["calibration_error"] = found.calibration_error()
        report["calibration_error_of_perfect_calibration"] = found.sampling_error()
    return report | {
        "accuracy_by_class": {names[index]: right[index] / count[index] for index in sorted(count)},
        "most_frequent_errors": [(names[t], names[b], times) for (t, b), times in wrong.most_common(MOST_ERRORS)],
        "unreadable": unreadable,
    }


def format_pictures_report(report: dict[str, Any]) -> str:
    """A report as text, in per cent."""
    shares = ("accuracy", "accuracy_top5", "calibration_error", "calibration_error_of_perfect_calibration")
    lines = [f"{report['model']}, patches of {report['patch_size']} px, {report['pictures']} pictures"]
    lines += [f"  {name.replace('_', ' ')}, %{100 * report[name]:10.2f}" for name in shares if name in report]
    lines += ["accuracy by class, %"]
    lines += [f"  {label:40} {100 * share:6.1f}" for label, share in report["accuracy_by_class"].items()]
    if report["most_frequent_errors"]:
        lines.append("most frequent errors")
        lines += [f"  {label} predicted as {other}: {times}" for label, other, times in report["most_frequent_errors"]]
    unreadable = report["unreadable"]
    if unreadable:
        lines += [f"{len(unreadable)} pictures left out", *(f"  {line}" for line in unreadable[:MOST_ERRORS])]
    return "\n".join(lines)
