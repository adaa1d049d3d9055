"""From a preset's name to its files of weights: data in, training, test, checkpoint out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from vit_demo.errors import CheckpointError, InputError
from vit_demo.model import ViT
from vit_demo.training.answers import ask, load_teacher
from vit_demo.training.data import Labelled, Part, find_file, join, load_digits
from vit_demo.training.loop import Trainer
from vit_demo.training.not_digits import not_digits
from vit_demo.training.not_photos import not_photos
from vit_demo.training.parallel import joined, rank
from vit_demo.training.photos import POOL, REAL_PHOTOS, STORED_SIDE, load_photos
from vit_demo.training.recipes import RECIPES, Recipe
from vit_demo.training.scoring import Score, best_temperature, score
from vit_demo.training.strokes import drawn_digits
from vit_demo.training.teacher import ConvNet
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint, save_checkpoint

DATA_NOTES = {
    "digits": "MNIST (Y. LeCun, C. Cortes, C. Burges), 55,000 training digits; CC BY-SA 3.0",
    "photos": "40 classes of Tiny ImageNet and Imagenette, training parts; ImageNet's terms: non-commercial research",
}
MORE_NOTES = {
    REAL_PHOTOS: "labelled photos from public repositories, mostly without a stated licence, used to train on only",
    POOL: "unlabelled photos from public repositories, mostly without a stated licence, used to train on only",
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
        data: Folder of the data; see ``vit_demo.training.data``.
        out: Folder for weights, states and logs.
        device: Where to train.
        seed: Of everything random.
        epochs: Instead of the recipe's.
        learning_rate: Instead of the recipe's.
        resume: Go on from the state that an earlier run left in ``out``.
        start: Weights of the same network to begin with, from an earlier training; random ones for None.

    Returns:
        The files written.

    Raises:
        FileNotFoundError: If data is missing.
        CheckpointError: If ``start`` cannot be read, or holds another network.
        InputError: If the epochs or the learning rate make no sense, or ``resume`` finds the state of another run.
    """
    if epochs is not None and epochs < 1:
        raise InputError(f"A training takes at least 1 epoch, not {epochs}.")
    if learning_rate is not None and not 0 < learning_rate < float("inf"):
        raise InputError(f"The learning rate must be above 0 and finite, not {learning_rate}.")
    begin, before = _read_start(start, preset) if start is not None else (None, None)
    training, test = load_part(preset, data, "train"), load_part(preset, data, "test")
    validation = load_part(preset, data, "validation")
    watched = some(validation, WATCHED)
    paths = []
    with joined(device) as device:
        for name in weight_names(preset):
            recipe = RECIPES[name]
            used = with_drawings(training, recipe, seed)
            teacher, teacher_seconds, answers = None, 0.0, None
            if recipe.teacher is not None:
                # Its state stays there, so that a second student of the same seed and data need not train it again.
                place = out / f"teacher-{seed}"
                lesson = Trainer(preset, recipe.teacher, used, place, device=device, seed=seed, network=ConvNet())
                with suppress(InputError):  # a teacher of other data or by another recipe is of no use: begin anew
                    lesson.resume()
                lesson.run(watched)
                teacher, teacher_seconds = lesson.shipped, lesson.seconds
            if recipe.views:
                answers = ask(load_teacher(data), used, recipe.views, seed, out / f"answers-{seed}", device)
            trainer = Trainer(
                preset,
                name,
                used,
                out,
                device=device,
                seed=seed,
                epochs=epochs,
                learning_rate=learning_rate,
                teacher=teacher,
                answers=answers,
                start=begin,
            )
            if resume:
                trainer.resume()
            trainer.run(watched)
            if rank() > 0:
                continue
            model = cast(ViT, trainer.shipped)
            record = {
                "command": f"python -m vit_demo train {preset.name} --data PATH --seed {seed} --epochs {trainer.epochs}"
                + (f" --learning-rate {learning_rate}" if learning_rate is not None else "")
                + (f" --start {start.name}" if start is not None else ""),
                "recipe": asdict(recipe),
                "seed": seed,
                "epochs": trainer.epochs,
                "seconds": round(trainer.seconds),
                "teacher_seconds": round(teacher_seconds),
                "data": _data_note(preset, data, recipe),
                "data_digest": used.digest,
                "images_an_epoch": used.epoch_length,
            }
            if before is not None:
                record["start"] = before
            scores = {p: score(model, validation, preset, p) for p in trainer.patch_sizes}
            record["temperature"] = cool(model, list(scores.values()))
            record["validation_accuracy"] = {str(p): s.accuracy for p, s in scores.items()}
            model.half().float()  # what is tested is what is stored
            record["test_accuracy"] = {str(p): score(model, test, preset, p).accuracy for p in trainer.patch_sizes}
            path = out / f"{name}.safetensors"
            save_checkpoint(path, model, record)
            paths.append(path)
    return paths


def _read_start(path: Path, preset: Preset) -> tuple[ViT, dict[str, Any]]:
    """Weights to begin a preset's training with, and the record of how they were made."""
    model, record = load_checkpoint(path)
    # Only the size of the image may differ: positions and kernels are resampled for any.
    if not preset.flexible or replace(model.config, image_size=preset.image_size) != preset.config:
        raise CheckpointError(f"{path.name} holds another network than that of {preset.name}: begin with one like it.")
    return model, record


def some(data: Labelled, count: int) -> Labelled:
    """At most so many images of a set, evenly spread over it."""
    return data.rows(torch.linspace(0, len(data) - 1, min(count, len(data))).long())


def with_drawings(data: Labelled, recipe: Recipe, seed: int) -> Labelled:
    """Training data and the drawings of our own making that a recipe adds to it."""
    parts = [data]
    if recipe.drawn:
        parts.append(drawn_digits(recipe.drawn, seed))
    if recipe.not_digits:
        parts.append(not_digits(recipe.not_digits, seed, data))
    if recipe.not_photos:
        parts.append(not_photos(recipe.not_photos, seed, data.images.shape[2]))
    return join(parts)


def cool(model: ViT, scores: list[Score]) -> float:
    """Scales the head so that its confidence fits what ``scores`` found, and returns the temperature it divided by."""
    temperature, head = best_temperature(scores), cast(nn.Linear, model.head)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.div_(temperature)
    return temperature


def _data_note(preset: Preset, folder: Path, recipe: Recipe) -> str:
    """What a preset is trained on, and on which terms."""
    notes = [DATA_NOTES[preset.task]]
    if preset.task == "photos":
        notes += [note for name, note in MORE_NOTES.items() if find_file(folder, f"{name}.npz")]
    if recipe.drawn:
        notes.append(f"{recipe.drawn} digits and {recipe.not_digits} other drawings of our own making")
    if recipe.not_photos:
        notes.append(f"{recipe.not_photos} pictures of nothing of our own making")
    return "; ".join(notes)


def weight_names(preset: Preset) -> list[str]:
    """Stems of the files of weights that a preset needs: one, or one a patch size."""
    return list(dict.fromkeys(preset.checkpoint_name(p) for p in preset.patch_sizes))


def load_part(preset: Preset, data: Path, part: Part) -> Labelled:
    """The part of the data that a preset is trained or tested on."""
    if preset.task == "digits":
        return load_digits(data, part)
    return load_photos(data, part, STORED_SIDE if part == "train" else preset.image_size)
