"""From a preset's name to its files of weights: data in, training, test, checkpoint out."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import torch

from vit_demo.train.data import PHOTO_SETS, Labelled, Part, load_digits, load_other_digits, load_photo_set, load_photos
from vit_demo.train.loop import Trainer, score
from vit_demo.train.recipes import RECIPES
from vit_demo.train.strokes import drawn_digits
from vit_demo.vit import ViT
from vit_demo.zoo import Preset
from vit_demo.zoo.checkpoints import load_checkpoint, save_checkpoint

DATA_NOTES = {
    "digits": "MNIST (Y. LeCun, C. Cortes, C. Burges), 55,000 training digits; CC BY-SA 3.0",
    "photos": "40 classes of Tiny ImageNet and Imagenette, training parts; ImageNet's terms: non-commercial research",
}
WATCHED = 1000
"""Validation images scored after each epoch; enough to watch by, few enough to cost little."""


def train_preset(
    preset: Preset,
    data: Path,
    out: Path,
    *,
    device: torch.device,
    seed: int = 0,
    epochs: int | None = None,
    learning_rate: float | None = None,
    resume: bool = False,
    start: Path | None = None,
) -> list[Path]:
    """Trains every file of weights that a preset needs, and scores each once on the test part.

    Args:
        preset: Which.
        data: Folder of the data; see ``vit_demo.train.data``.
        out: Folder for weights, states and logs.
        device: Where to train.
        seed: Of everything random.
        epochs: Instead of the recipe's.
        learning_rate: Instead of the recipe's.
        resume: Go on from the state that an earlier run left in ``out``.
        start: A checkpoint to start from, instead of random weights; the new record tells its history.

    Returns:
        The files written.

    Raises:
        FileNotFoundError: If data is missing.
        CheckpointError: If the checkpoint to start from cannot be used.
    """
    training = load_part(preset, data, "train")
    watched = None
    if preset.task == "digits":
        validation = load_part(preset, data, "validation")
        watched = replace(validation, images=validation.images[:WATCHED], labels=validation.labels[:WATCHED])
    test = load_part(preset, data, "test")
    started, history = load_checkpoint(start) if start else (None, {})
    paths = []
    for name in weight_names(preset):
        recipe = RECIPES[name]
        data_used = with_drawn(training, recipe.drawn, seed) if recipe.drawn else training
        trainer = Trainer(
            preset,
            name,
            data_used,
            out,
            device=device,
            seed=seed,
            epochs=epochs,
            learning_rate=learning_rate,
            start=started,
        )
        if resume:
            trainer.resume()
        trainer.run(watched)
        record = {
            "command": f"python -m vit_demo train {preset.name} --data PATH --seed {seed} --epochs {trainer.epochs}"
            + (f" --learning-rate {learning_rate}" if learning_rate else "")
            + (f" --start {start.name}" if start else ""),
            "recipe": asdict(recipe),
            "seed": seed,
            "epochs": trainer.epochs,
            "seconds": round(trainer.seconds),
            "data": DATA_NOTES[preset.task] + (f"; {recipe.drawn} digits of our own making" if recipe.drawn else ""),
            "test_accuracy": {str(p): score(trainer.shipped, test, preset, p).accuracy for p in trainer.patch_sizes},
        }
        if history:
            record["started_from"] = history
        path = out / f"{name}.safetensors"
        save_checkpoint(path, trainer.shipped, record)
        paths.append(path)
    return paths


def with_drawn(data: Labelled, count: int, seed: int) -> Labelled:
    """Digits and as many more of our own making."""
    drawn = drawn_digits(count, seed)
    return replace(data, images=torch.cat([data.images, drawn.images]), labels=torch.cat([data.labels, drawn.labels]))


def weight_names(preset: Preset) -> list[str]:
    """Stems of the files of weights that a preset needs: one, or one a patch size."""
    return list(dict.fromkeys(preset.weights_name(p) for p in preset.patch_sizes))


def load_part(preset: Preset, data: Path, part: Part) -> Labelled:
    """The part of the data that a preset is trained or tested on."""
    return load_digits(data, part) if preset.task == "digits" else load_photos(data, part, preset.image_size)


def evaluate_preset(
    preset: Preset, data: Path, weights: Path, patch_sizes: tuple[int, ...], device: torch.device
) -> dict[str, dict[int, float]]:
    """Accuracy on the test part, never trained on: for each test set, for each patch size.

    Args:
        preset: Which.
        data: Folder of the data.
        weights: Folder of the checkpoints.
        patch_sizes: Which of the preset's.
        device: Where to run.

    Raises:
        CheckpointError: If the weights cannot be used.
        FileNotFoundError: If data is missing.
    """
    if preset.task == "digits":
        sets = {"mnist": load_digits(data, "test"), **load_other_digits(data)}
    else:
        sets = {name: load_photo_set(data, name, "test", preset.image_size) for name in PHOTO_SETS}
        sets = {name: _with_labels_of(preset, labelled) for name, labelled in sets.items()}
    models: dict[str, ViT] = {}
    found: dict[str, dict[int, float]] = {name: {} for name in sets}
    for p in patch_sizes:
        stem = preset.weights_name(p)
        if stem not in models:
            models[stem] = load_checkpoint(weights / f"{stem}.safetensors")[0].to(device)
        for name, labelled in sets.items():
            found[name][p] = score(models[stem], labelled, preset, p).accuracy
    return found


def _with_labels_of(preset: Preset, data: Labelled) -> Labelled:
    """One set's own labels, from 0, to the preset's."""
    index = torch.tensor([preset.labels.index(name) for name in data.classes])
    return replace(data, labels=index[data.labels], classes=preset.labels)
