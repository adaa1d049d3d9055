"""Weights in and out: safetensors whose header says what they are and how they were made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT, ViTConfig
from vit_demo.weights.hf_weights import load_foreign
from vit_demo.weights.hub import Progress
from vit_demo.weights.preset import Preset

BUNDLED = Path(__file__).resolve().parents[2] / "checkpoints"
"""The folder of the weights that ship with the repository."""


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
        CheckpointError: If the file is missing, damaged, not one of ours, or does not fit the network that it names.
    """
    if not path.is_file():
        raise CheckpointError(f"The weights {path.name} are missing: train them with `python -m vit_demo train`.")
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"The weights {path.name} are damaged ({error}): fetch them again.") from error
    if header.get("format") != "vit_demo":
        raise CheckpointError(f"{path.name} was not written by vit_demo: name a file from `python -m vit_demo train`.")
    if header["digest"] != _digest(tensors):
        raise CheckpointError(f"The weights {path.name} were changed after training: fetch them again.")
    model = ViT(ViTConfig(**json.loads(header["config"])))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise CheckpointError(f"The weights {path.name} do not fit their own header: fetch them again.") from error
    return model.eval().requires_grad_(False), json.loads(header["record"])


def read_record(preset: Preset, patch_size: int, folder: Path = BUNDLED) -> dict[str, Any]:
    """How the weights of a preset were made and what they are worth, without loading them; empty where unknown."""
    path = folder / f"{preset.weights_name(patch_size)}.safetensors"
    try:
        with safe_open(path, "pt") as file:
            return json.loads((file.metadata() or {}).get("record", "{}"))
    except (SafetensorError, OSError):
        return {}


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
    path = folder / f"{preset.weights_name(patch_size)}.safetensors"
    model, _ = load_checkpoint(path)
    if model.config != preset.config_at(patch_size):
        raise CheckpointError(f"{path.name} holds another network than {preset.name}: fetch or train it again.")
    model.patch_size = patch_size
    return model


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and bytes, so that a flipped bit is noticed."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
