"""Networks of digits in folders, as ``train_small`` and Build write them, and the presets of those trained here."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from vit_demo.checks import writing
from vit_demo.errors import CheckpointError
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights.limits import check_network
from vit_demo.weights.preset import Kind, Preset
from vit_demo.weights.presets import PRESETS
from vit_demo.weights.safetensors_io import read_metadata

FILE = "model.safetensors"
FORMAT = "vit_demo digits"


def digits_preset(name: str, title: str, config: ViTConfig, source: Kind, **fields: Any) -> Preset:
    """A preset for digits, with one patch size."""
    like = replace(PRESETS["digits-notebook"], name=name, title=title, config=config, source=source, note="", **fields)
    return replace(like, patch_sizes=(config.patch_size,), default_patch_size=config.patch_size)


def config_in(header: dict[str, str], path: Path, remedy: str) -> ViTConfig:
    """The shape of a network in the header of its file; ``CheckpointError`` with a remedy if there is none in it."""
    try:
        config = ViTConfig(**json.loads(header["config"]))
        check_network(config)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"The header of {path.name} holds no valid config: {remedy}.") from error
    return config


def folder_preset(name: str, folder: Path, revision: str) -> Preset | None:
    """The preset of a folder that ``save_digits`` wrote, None for any other; ``CheckpointError`` if it is damaged."""
    path = folder / FILE
    header = read_metadata(path) if path.is_file() else {}
    if header.get("format") != FORMAT:
        return None
    config = config_in(header, path, "train the network again")
    return digits_preset(name, folder.name, config, "folder", repo=str(folder), revision=revision)


def save_digits(folder: Path, model: ViT, history: Any) -> Path:
    """Writes a network of digits, with config and ``history``, as a folder for ``explore``; returns its file's path."""
    path = folder / FILE
    header = {"format": FORMAT, "config": json.dumps(model.config.to_dict()), "history": json.dumps(asdict(history))}
    tensors = {
        name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in model.state_dict().items()
    }
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        save_file(tensors, path, header)
    return path
