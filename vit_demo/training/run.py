"""Trains a preset: loads the data, prepares the objective, runs the loop and writes the checkpoints."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch

from vit_demo.errors import CheckpointError, InputError
from vit_demo.model import ViT
from vit_demo.training.data import ImageDataset, Split, concat_datasets, find_file, load_digits
from vit_demo.training.digit_outliers import make_digit_outliers
from vit_demo.training.export import export_checkpoint
from vit_demo.training.loop import Trainer, training_config
from vit_demo.training.objectives import CrossEntropy, Distillation, FeatureDistillation
from vit_demo.training.parallel import process_group, rank
from vit_demo.training.photo_outliers import make_photo_outliers
from vit_demo.training.photos import PHOTO_POOL, REAL_PHOTOS, STORED_SIDE, load_photos
from vit_demo.training.pretrained_teacher import PretrainedTeacher
from vit_demo.training.recipes import RECIPES, Recipe
from vit_demo.training.synthetic_digits import make_synthetic_digits
from vit_demo.training.teachers import ConvNet, load_pretrained_teacher
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_checkpoint

DATA_NOTES = {
    "digits": "MNIST (Y. LeCun, C. Cortes, C. Burges), 55,000 training digits; CC BY-SA 3.0",
    "photos": "40 classes of Tiny ImageNet, and Imagenette, training sets; ImageNet's terms: non-commercial research",
}
OPTIONAL_DATA_NOTES = {
    REAL_PHOTOS: "labelled photos from public repositories, mostly without a stated licence, used for training only",
    PHOTO_POOL: "unlabelled photos from public repositories, mostly without a stated licence, used for training only",
}
MONITORED_IMAGES = 1000
"""Number of validation images that are evaluated after each epoch."""
STANDARDISING_PHOTOS = 2048
"""Number of training photos on which a pretrained teacher's features are standardised."""


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
    """Trains every checkpoint of a preset, and evaluates each once on the test split.

    Args:
        preset: The preset to train.
        data: Folder of the data; see ``vit_demo.training.data`` and ``vit_demo.training.photos``.
        out: Folder for checkpoints, states and logs.
        device: Where to train.
        seed: Seed of all random choices.
        epochs: Overrides the recipe's.
        learning_rate: Overrides the recipe's.
        resume: Whether to continue from the state that an earlier run left in ``out``.
        start: A checkpoint to start from, of the same network at any image size; random weights for None.

    Returns:
        The checkpoints written.

    Raises:
        InputError: If data is missing, ``out`` is a file, ``seed``, ``epochs`` or ``learning_rate`` is out of range, or
            ``resume`` finds the state of a run with other settings.
        CheckpointError: If ``start`` cannot be read or holds a network that does not fit.
    """
    if epochs is not None and epochs < 1:
        raise InputError(f"The number of epochs must be at least 1, not {epochs}.")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"The seed must be from 0 to {(1 << 32) - 1}, not {seed}.")
    if learning_rate is not None and not 0 < learning_rate < float("inf"):
        raise InputError(f"The learning rate must be positive and finite, not {learning_rate}.")
    if any(path.exists() and not path.is_dir() for path in (out, *out.parents)):
        raise InputError(f"The folder {out} cannot be made, because it is a file: choose another one.")
    start_network, start_record = _load_start(start, preset) if start is not None else (None, None)
    training, test, validation = (load_split(preset, data, split) for split in ("train", "test", "validation"))
    monitored = evenly_spaced_subset(validation, MONITORED_IMAGES)
    paths = []
    with process_group(device) as device:
        for name in checkpoint_names(preset):
            recipe = RECIPES[name]
            dataset = training_dataset(training, recipe, seed)
            objective, teacher_seconds = prepare_objective(
                preset, recipe, dataset, monitored, data, out, device=device, seed=seed
            )
            trainer = Trainer(
                preset,
                name,
                dataset,
                out,
                device=device,
                seed=seed,
                epochs=epochs,
                learning_rate=learning_rate,
                network=_build_network(preset, recipe, seed, start_network),
                objective=objective,
            )
            if resume:
                trainer.resume()
            trainer.run(monitored)
            if rank() > 0:
                continue
            record: dict[str, Any] = {
                "command": f"python -m vit_demo train {preset.name} --data PATH --seed {seed} --epochs {trainer.epochs}"
                + (f" --learning-rate {learning_rate}" if learning_rate is not None else "")
                + (f" --start {start.name}" if start is not None else ""),
                "recipe": asdict(recipe),
                "seed": seed,
                "epochs": trainer.epochs,
                "seconds": round(trainer.seconds),
                "teacher_seconds": round(teacher_seconds),
                "data": _data_note(preset, data, recipe),
                "data_digest": dataset.digest,
                "images_per_epoch": dataset.epoch_size,
            }
            if start_record is not None:
                record["start"] = start_record
            network, path = cast(ViT, trainer.trained_network), out / f"{name}.safetensors"
            export_checkpoint(
                path, network, preset, recipe.patch_sizes, validation=validation, test=test, record=record
            )
            paths.append(path)
    return paths


def prepare_objective(
    preset: Preset,
    recipe: Recipe,
    dataset: ImageDataset,
    monitored: ImageDataset,
    data: Path,
    out: Path,
    *,
    device: torch.device,
    seed: int,
) -> tuple[CrossEntropy, float]:
    """The objective of a recipe, after training or loading its teacher if it has one.

    Args:
        preset: The preset to train.
        recipe: Its recipe.
        dataset: The training data.
        monitored: Validation images for the teacher's log.
        data: Folder of the pretrained teacher.
        out: Folder whose subfolder keeps the state of a trained teacher, for further runs with this seed and data.
        device: Where the teacher runs.
        seed: Seed of all random choices.

    Returns:
        The objective, and the time in seconds that training the teacher took.
    """
    classes, smoothing = preset.config.num_classes, recipe.label_smoothing
    if recipe.teacher_recipe is not None:
        torch.manual_seed(seed)
        trainer = Trainer(
            preset, recipe.teacher_recipe, dataset, out / f"teacher-{seed}", device=device, seed=seed,
            network=ConvNet(classes),
        )  # fmt: skip
        with suppress(InputError):  # a teacher of other data or another recipe is trained anew
            trainer.resume()
        trainer.run(monitored)
        teacher = trainer.trained_network
        return Distillation(classes, teacher, recipe.distillation_weight, smoothing), trainer.seconds
    if recipe.teacher_image_size:
        photos = evenly_spaced_subset(dataset, STANDARDISING_PHOTOS).images
        objective = FeatureDistillation(
            classes,
            PretrainedTeacher(load_pretrained_teacher(data).to(device), photos),
            recipe.distillation_weight,
            feature_weight=recipe.feature_loss_weight,
            patch_weight=recipe.patch_loss_weight,
        )
        return objective, 0.0
    return CrossEntropy(classes, smoothing), 0.0


def training_dataset(data: ImageDataset, recipe: Recipe, seed: int) -> ImageDataset:
    """The training data with what the recipe adds to it."""
    datasets = [data]
    if recipe.synthetic_digits:
        datasets.append(make_synthetic_digits(recipe.synthetic_digits, seed))
    if recipe.digit_outliers:
        datasets.append(make_digit_outliers(recipe.digit_outliers, seed, data))
    if recipe.photo_outliers:
        datasets.append(make_photo_outliers(recipe.photo_outliers, seed, data.images.shape[2]))
    return concat_datasets(datasets)


def load_split(preset: Preset, data: Path, split: Split) -> ImageDataset:
    """One split of a preset's data; training photos are larger than the network's input, so that crops stay sharp."""
    if preset.task == "digits":
        return load_digits(data, split)
    return load_photos(data, split, STORED_SIDE if split == "train" else preset.image_size)


def evenly_spaced_subset(data: ImageDataset, count: int) -> ImageDataset:
    """At most ``count`` images, evenly spaced over a dataset."""
    return data.subset(torch.linspace(0, len(data) - 1, min(count, len(data))).long())


def checkpoint_names(preset: Preset) -> list[str]:
    """Stems of a preset's checkpoints: one for all patch sizes, or one for each."""
    return list(dict.fromkeys(preset.checkpoint_name(p) for p in preset.patch_sizes))


def _build_network(preset: Preset, recipe: Recipe, seed: int, start: ViT | None) -> ViT:
    """The network to train, with the weights of ``start`` or random ones."""
    torch.manual_seed(seed)
    network = ViT(training_config(preset, recipe))
    if start is not None:
        network.load_state_dict(start.state_dict())
    return network


def _load_start(path: Path, preset: Preset) -> tuple[ViT, dict[str, Any]]:
    """Loads a checkpoint to start from, and its record."""
    network, record = load_checkpoint(path)
    # The image size may differ, because kernels and positions are resampled for any size.
    if not preset.flexible or replace(network.config, image_size=preset.image_size) != preset.config:
        raise CheckpointError(
            f"{path.name} does not fit the network of {preset.name}: start from one of the same shape."
        )
    return network, record


def _data_note(preset: Preset, folder: Path, recipe: Recipe) -> str:
    """The training data and their terms of use, for the record."""
    notes = [DATA_NOTES[preset.task]]
    if preset.task == "photos":
        notes += [note for name, note in OPTIONAL_DATA_NOTES.items() if find_file(folder, f"{name}.npz")]
    if recipe.synthetic_digits:
        notes.append(
            f"{recipe.synthetic_digits} synthetic digits and {recipe.digit_outliers} other drawings of this project"
        )
    if recipe.photo_outliers:
        notes.append(f"{recipe.photo_outliers} synthetic pictures of nothing in particular")
    return "; ".join(notes)
