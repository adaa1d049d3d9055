"""Weights in and out: safetensors whose header says what they are and how they were made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT, ViTConfig
from vit_demo.resources import resource_folder
from vit_demo.weights.hf_weights import load_foreign
from vit_demo.weights.hub import Progress
from vit_demo.weights.limits import check_network
from vit_demo.weights.preset import Preset
from vit_demo.weights.tensors import as_finite_floats, read_metadata, read_tensors

BUNDLED = resource_folder("checkpoints")
"""The folder of the weights that ship with the package."""


def save_checkpoint(path: Path, model: ViT, record: dict[str, Any]) -> None:
    """Writes a network's weights, half precision, with a header that describes them.

    Args:
        path: The file to write; replaced whole or not at all.
        model: The trained network.
        record: How it was made (command, seed, data, accuracy, ...), as plain values.
    """
    tensors = {name: tensor.detach().half().contiguous().cpu() for name, tensor in model.state_dict().items()}
    config = replace(model.config, drop_path=0.0, dropout=0.0)  # nothing of the training but its result
    header = {
        "format": "vit_demo",
        "config": json.dumps(config.to_dict()),
        "record": json.dumps(record),
        "digest": _digest(tensors),
    }
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, header)
    partial.replace(path)


def load_checkpoint(path: Path) -> tuple[ViT, dict[str, Any]]:
    """Reads a network back, in float32 and eval mode, and the record of how it was made.

    Raises:
        CheckpointError: If the file is missing, damaged, not one of ours, not finite, or does not fit the network that
            it names.
    """
    if not path.is_file():
        raise CheckpointError(f"The weights {path.name} are missing: train them with `python -m vit_demo train`.")
    header, tensors = read_metadata(path), read_tensors(path)
    if header.get("format") != "vit_demo":
        raise CheckpointError(f"{path.name} was not written by vit_demo: name a file from `python -m vit_demo train`.")
    if header.get("digest") != _digest(tensors):
        raise CheckpointError(f"The weights {path.name} were changed after training: fetch them again.")
    config, record = _read_config(path, header), _read_record(header)
    if record is None:
        raise CheckpointError(f"The header of {path.name} holds no record: fetch it again.")
    floats = as_finite_floats(tensors, path.name)
    with torch.device("meta"):
        model = ViT(config)
    try:
        model.load_state_dict(floats, assign=True)
    except RuntimeError as error:
        raise CheckpointError(f"The weights {path.name} do not fit their own header: fetch them again.") from error
    return model.eval().requires_grad_(False), record


def read_record(preset: Preset, patch_size: int, folder: Path = BUNDLED) -> dict[str, Any]:
    """How the weights of a preset were made and what they are worth, without loading them; empty where unknown."""
    if preset.source != "bundled":
        return {}
    try:
        header = read_metadata(folder / f"{preset.checkpoint_name(patch_size)}.safetensors")
    except CheckpointError:
        return {}
    return _read_record(header) or {}


def load_model(
    preset: Preset, patch_size: int | None = None, folder: Path = BUNDLED, progress: Progress | None = None
) -> ViT:
    """The trained network of a preset, in eval mode on the CPU, cutting patches of the size asked for.

    Args:
        preset: Which.
        patch_size: In pixels; the preset's default for None.
        folder: Where bundled weights are.
        progress: Told how far it is where weights are fetched; a bar on stderr for None.

    Raises:
        PresetError: If the preset does not know the patch size.
        CheckpointError: If the weights cannot be fetched or used, or are another network's.
    """
    patch_size = preset.check_patch_size(patch_size)
    if preset.source != "bundled":
        model = load_foreign(preset, progress)
        model.patch_size = patch_size
        return model
    path = folder / f"{preset.checkpoint_name(patch_size)}.safetensors"
    model, _ = load_checkpoint(path)
    if model.config != preset.config_at(patch_size):
        raise CheckpointError(f"{path.name} holds another network than {preset.name}: fetch or train it again.")
    model.patch_size = patch_size
    return model


def _read_config(path: Path, header: dict[str, str]) -> ViTConfig:
    try:
        config = ViTConfig(**json.loads(header["config"]))
        check_network(config)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"The header of {path.name} does not say what network it is: fetch it again.") from error
    return config


def _read_record(header: dict[str, str]) -> dict[str, Any] | None:
    """The record in a header; None where there is none that can be read."""
    try:
        record = json.loads(header.get("record", ""))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and bytes, so that a flipped bit is noticed."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
