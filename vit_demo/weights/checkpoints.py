"""Checkpoints of this package: safetensors files whose header holds the config and the training record."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.resources import resource_folder
from vit_demo.trace import OwnViT, TracedViT
from vit_demo.weights.digit_folders import config_in
from vit_demo.weights.hub.repository import load_network, load_own, own_network
from vit_demo.weights.kept_networks import trained_network
from vit_demo.weights.preset import Preset
from vit_demo.weights.safetensors_io import read_metadata, read_tensors, to_finite_float32

BUNDLED = resource_folder("checkpoints")  # the weights that ship with the package


def save_checkpoint(path: Path, model: ViT, record: dict[str, Any]) -> None:
    """Writes a network's weights in half precision, replacing an existing file atomically.

    The header holds the network's config and the record of its training (command, seed, data, accuracy, ...), as JSON.
    """
    tensors = {name: tensor.detach().half().contiguous().cpu() for name, tensor in model.state_dict().items()}
    config = replace(model.config, drop_path=0.0, dropout=0.0)  # they matter to training only
    header = {
        "format": "vit_demo",
        "config": json.dumps(config.to_dict()),
        "record": json.dumps(record),
        "digest": _digest(tensors),
    }
    partial = path.with_suffix(".partial")
    save_file(tensors, partial, header)
    partial.replace(path)


@torch.inference_mode(False)  # no method that needs gradients could use an inference tensor
def load_checkpoint(path: Path) -> tuple[ViT, dict[str, Any]]:
    """Reads a network in float32 and eval mode, and its training record; ``CheckpointError`` if they are damaged."""
    if not path.is_file():
        raise CheckpointError(f"The weights {path.name} are missing: train them with `python -m vit_demo train`.")
    header, tensors = read_metadata(path), read_tensors(path)
    if header.get("format") != "vit_demo":
        raise CheckpointError(f"{path.name} was not written by vit_demo: use a file from `python -m vit_demo train`.")
    if header.get("digest") != _digest(tensors):
        raise CheckpointError(f"The weights {path.name} were changed after training: download them again.")
    config = config_in(header, path, "download it again")
    record = _read_record(header)
    if record is None:
        raise CheckpointError(f"The header of {path.name} holds no training record: download it again.")
    try:
        return own_network(config, to_finite_float32(tensors, path.name)), record
    except RuntimeError as error:
        raise CheckpointError(f"The weights {path.name} do not match their header: download them again.") from error


def read_record(preset: Preset, patch_size: int, folder: Path = BUNDLED) -> dict[str, Any]:
    """The training record of a preset's weights, read without loading them; empty if there is none."""
    if not preset.is_bundled:
        return {}
    try:
        header = read_metadata(folder / f"{preset.checkpoint_name(patch_size)}.safetensors")
    except CheckpointError:
        return {}
    return _read_record(header) or {}


def load_model(preset: Preset, patch_size: int | None = None, folder: Path = BUNDLED) -> TracedViT:
    """The trained network of a preset, in eval mode on the CPU, set to a patch size, the preset's default for None.

    ``taught.with_classes`` adds words and heads that were taught. ``CheckpointError`` if the weights cannot be used.
    """
    preset, patch_size = preset.own, preset.check_patch_size(patch_size)
    if preset.library:
        return load_network(preset, patch_size)
    if preset.is_bundled:
        path = folder / f"{preset.checkpoint_name(patch_size)}.safetensors"
        model, _ = load_checkpoint(path)
        if model.config != preset.config_at(patch_size):
            raise CheckpointError(f"{path.name} holds another network than {preset.name}: download or train it again.")
    elif preset.is_kept:
        model = trained_network(preset.name).model
    else:
        model = load_own(preset)
    model.patch_size = patch_size
    network = OwnViT(model)
    network.scores = preset.scores
    return network


def _read_record(header: dict[str, str]) -> dict[str, Any] | None:
    """The training record in a header; None if it is missing or unreadable."""
    try:
        record = json.loads(header.get("record", ""))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and bytes, which detects a single flipped bit."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
