"""What a run's weights follow from, and how two runs differ: a state is resumed only by the run that left it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vit_demo.model import ViTConfig
from vit_demo.training.data import Labelled
from vit_demo.training.recipes import Recipe

Settings = dict[str, Any]


def run_settings(
    recipe: Recipe, config: ViTConfig, data: Labelled, *, seed: int, epochs: int, learning_rate: float
) -> Settings:
    """Everything that decides the weights, as plain values for a state file."""
    return {
        "seed": seed,
        "epochs": epochs,
        "learning rate": learning_rate,
        "recipe": asdict(recipe),
        "network": config.to_dict(),
        "data": data.digest,
        "images an epoch": data.epoch_length,
    }


def differences(before: Settings, now: Settings) -> str:
    """What an earlier run had otherwise, for people: ``"seed 0, not 5"``; empty where nothing differs."""
    return " and ".join(_said(name, before.get(name), now[name]) for name in now if before.get(name) != now[name])


def _said(name: str, before: object, now: object) -> str:
    if isinstance(now, dict) and isinstance(before, dict):
        fields = ", ".join(key for key, value in now.items() if before.get(key) != value)
        return f"another {name} ({fields})"
    return f"other {name}" if name == "data" else f"{name} {before}, not {now}"
