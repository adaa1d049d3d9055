"""Trains a preset: loads the data, trains or loads its teacher, trains the network and writes the checkpoints."""

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from recipes.datasets import DATA_NOTES, load_split, training_dataset
from recipes.distillation import ConvNet, load_pretrained_vit
from recipes.image_dataset import ImageDataset
from recipes.predictions import fit_temperature, predict
from recipes.recipes import RECIPES, Recipe
from recipes.trainer import Trainer
from vit_demo.errors import InputError
from vit_demo.model import ViT
from vit_demo.weights import Preset
from vit_demo.weights.checkpoints import load_model, read_record, save_checkpoint

MONITORED_IMAGES = 1000
"""Number of validation images that are evaluated after each epoch."""


def train_preset(
    preset: Preset,
    data: Path,
    out: Path,
    *,
    device: torch.device,
    seed: int = 0,
    epochs: int | None = None,
    resume: bool = False,
    start: Path | None = None,
) -> list[Path]:
    """Trains every checkpoint of a preset, evaluates each once on the test split, and returns their paths.

    ``out`` gets the checkpoints, and the states and logs from which ``resume`` continues. ``epochs`` overrides the
    recipe's. ``start`` is a folder of earlier checkpoints of the preset to start from, instead of random weights.

    Raises:
        CheckpointError: If ``start`` does not hold the preset's checkpoints.
        InputError: If data is missing, ``out`` is a file, ``seed`` or ``epochs`` is out of range, or ``resume`` finds
            the state of a run with other settings.
    """
    if epochs is not None and epochs < 1:
        raise InputError(f"The number of epochs must be at least 1, not {epochs}.")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"The seed must be from 0 to {(1 << 32) - 1}, not {seed}.")
    if any(path.exists() and not path.is_dir() for path in (out, *out.parents)):
        raise InputError(f"The folder {out} cannot be made, because it is a file: choose another one.")
    training, test, validation = (load_split(preset, data, split) for split in ("train", "test", "validation"))
    monitored = validation.evenly_spaced(MONITORED_IMAGES)
    paths = []
    for name in dict.fromkeys(preset.checkpoint_name(p) for p in preset.patch_sizes):
        recipe = replace(RECIPES[name], epochs=epochs or RECIPES[name].epochs)
        dataset = training_dataset(training, recipe, seed)
        teacher = load_teacher(preset, recipe, dataset, data, out, device=device, seed=seed)
        torch.manual_seed(seed)
        network = ViT(preset.config_at(recipe.patch_sizes[0]))
        if start is not None:
            network.load_state_dict(load_model(preset, recipe.patch_sizes[0], start).module.state_dict())
        trainer = Trainer(
            preset, recipe, network, dataset, out / f"{name}.state.pt",
            device=device, teacher=teacher, seed=seed,
        )  # fmt: skip
        if resume:
            trainer.resume()
        trainer.run(monitored)
        command = f"python -m recipes train {preset.name} --data PATH --seed {seed} --epochs {recipe.epochs}"
        record = {
            "command": command if start is None else f"{command} --start DIR",
            "recipe": asdict(recipe),
            "seed": seed,
            "epochs": recipe.epochs,
            "seconds": round(trainer.seconds),
            "data": DATA_NOTES[preset.task],
            "images_per_epoch": dataset.epoch_size,
        }
        if start is not None:
            record["start"] = read_record(preset, recipe.patch_sizes[0], start)
        paths.append(out / f"{name}.safetensors")
        trained = cast(ViT, trainer.trained_network)
        export_checkpoint(
            paths[-1], trained, preset, recipe.patch_sizes, validation=validation, test=test, record=record
        )
    return paths


def load_teacher(
    preset: Preset, recipe: Recipe, dataset: ImageDataset, data: Path, out: Path, *, device: torch.device, seed: int
) -> ViT | ConvNet | None:
    """The teacher of a recipe: the convolutional one is trained first, unless ``out`` holds it, the ViT is loaded."""
    if recipe.teacher == "vit":
        return load_pretrained_vit(data)
    if recipe.teacher is None:
        return None
    torch.manual_seed(seed)
    network, path = ConvNet(preset.config.num_classes), out / f"{recipe.teacher}.state.pt"
    trainer = Trainer(preset, RECIPES[recipe.teacher], network, dataset, path, device=device, seed=seed)
    with suppress(InputError):  # a teacher of other data or another recipe is trained anew
        trainer.resume()
    trainer.run()
    return cast(ConvNet, trainer.trained_network)


def export_checkpoint(
    path: Path,
    network: ViT,
    preset: Preset,
    patch_sizes: tuple[int, ...],
    *,
    validation: ImageDataset,
    test: ImageDataset,
    record: dict[str, Any],
) -> None:
    """Calibrates a network on the validation split, evaluates it on the test split and writes it in half precision.

    Its head is scaled, and its weights are rounded to half precision, in place. The temperature and the accuracies are
    added to the record.
    """
    predictions = {p: predict(network, validation, preset, p) for p in patch_sizes}
    temperature = fit_temperature(list(predictions.values()))
    with torch.no_grad():
        for parameter in cast(nn.Linear, network.head).parameters():
            parameter.div_(temperature)
    network.half().float()  # the test is of the weights as stored
    results = {
        "temperature": temperature,
        "validation_accuracy": {str(p): found.accuracy for p, found in predictions.items()},
        "test_accuracy": {str(p): predict(network, test, preset, p).accuracy for p in patch_sizes},
    }
    save_checkpoint(path, network, record | results)
