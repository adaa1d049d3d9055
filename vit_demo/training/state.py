"""The state file of a run: written atomically, and resumed only by a run with the same settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.model import ViTConfig
from vit_demo.training.data import ImageDataset
from vit_demo.training.recipes import Recipe

Settings = dict[str, Any]


def run_settings(
    recipe: Recipe, config: ViTConfig, data: ImageDataset, *, seed: int, epochs: int, learning_rate: float
) -> Settings:
    """Everything that determines the weights of a run, as plain values."""
    return {
        "seed": seed,
        "epochs": epochs,
        "learning rate": learning_rate,
        "recipe": asdict(recipe),
        "network": config.to_dict(),
        "data": data.digest,
        "images per epoch": data.epoch_size,
    }


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Writes a state to a temporary file and then renames it, so that a crash leaves the previous state intact."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def load_state(path: Path, settings: Settings, device: torch.device) -> dict[str, Any]:
    """Reads the state of an interrupted run.

    Args:
        path: The state file.
        settings: Those of the run that is to continue it.
        device: Where to put the tensors.

    Raises:
        InputError: If the state is damaged, or belongs to a run with other settings.
    """
    try:
        settings_of_state = torch.load(path, map_location="cpu", weights_only=True)["settings"]
        differences = describe_differences(settings_of_state, settings)
    except (RuntimeError, UnpicklingError, EOFError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: train without --resume.") from error
    if differences:
        raise InputError(
            f"{path} belongs to a run with {differences}: resume it with the same settings, or train without --resume."
        )
    return torch.load(path, map_location=device, weights_only=True)


def describe_differences(old: Settings, new: Settings) -> str:
    """Which settings of an earlier run differ, e.g. ``"seed 0, not 5"``; empty if none does."""
    names = [name for name in new if old.get(name) != new[name]]
    return " and ".join(_describe_difference(name, old.get(name), new[name]) for name in names)


def _describe_difference(name: str, old: object, new: object) -> str:
    if isinstance(new, dict) and isinstance(old, dict):
        fields = ", ".join(key for key, value in new.items() if old.get(key) != value)
        return f"another {name} ({fields})"
    return f"other {name}" if name == "data" else f"{name} {old}, not {new}"


def get_random_state(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's random number generators on the CPU and, with CUDA, on a device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Restores what ``get_random_state`` returned."""
    torch.set_rng_state(state["cpu"].cpu())
    if "cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
