"""The last step of every training: calibrate, evaluate, write the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vit_demo.model import ViT
from vit_demo.training.data import ImageDataset
from vit_demo.training.predictions import predict
from vit_demo.training.temperature import apply_temperature, fit_temperature
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import save_checkpoint


def export_checkpoint(
    path: Path,
    model: ViT,
    preset: Preset,
    patch_sizes: tuple[int, ...],
    *,
    validation: ImageDataset,
    test: ImageDataset,
    record: dict[str, Any],
) -> None:
    """Calibrates a network on the validation split, evaluates it on the test split and writes it in half precision.

    Args:
        path: The file to write.
        model: The trained network; its head is scaled and its weights are rounded to half precision in place.
        preset: What it was trained for.
        patch_sizes: The patch sizes to calibrate and evaluate at.
        validation: The validation split.
        test: The test split.
        record: How the network was made. The temperature and the accuracies are added to it.
    """
    predictions = {p: predict(model, validation, preset, p) for p in patch_sizes}
    temperature = fit_temperature(list(predictions.values()))
    apply_temperature(model, temperature)
    model.half().float()  # the test is of the weights as stored
    results = {
        "temperature": temperature,
        "validation_accuracy": {str(p): found.accuracy for p, found in predictions.items()},
        "test_accuracy": {str(p): predict(model, test, preset, p).accuracy for p in patch_sizes},
    }
    save_checkpoint(path, model, record | results)
