"""Weights that others made, as a network of ours: safetensors only, since opening a pickle can run a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.weights.convert import Untold, convert
from vit_demo.weights.hub import Progress, fetch
from vit_demo.weights.preset import Preset

WEIGHTS = "model.safetensors"
FLOATS = {"F64", "F32", "F16", "BF16"}
"""What may be read as it stands; anything shorter is quantised, and needs scales that are kept elsewhere."""


def fetch_weights(preset: Preset, progress: Progress | None = None) -> Path:
    """The file of a preset's weights, fetched if it is not there yet.

    Raises:
        CheckpointError: If it cannot be had.
    """
    if preset.source == "folder":
        return Path(preset.repo) / WEIGHTS
    return fetch(preset.repo, WEIGHTS, preset.revision, progress)


def load_foreign(preset: Preset, progress: Progress | None = None) -> ViT:
    """A network with fetched weights, in eval mode and float32, on the CPU.

    Raises:
        CheckpointError: If the weights cannot be had, are damaged, or are another network's.
    """
    path = fetch_weights(preset, progress)
    wanted = preset.config
    untold = Untold(
        wanted.num_heads,
        wanted.image_size,
        wanted.norm_eps,
        "cls" if wanted.pool == "cls+next" else wanted.pool,  # type: ignore[arg-type]
    )
    config, tensors = convert(_read(path, shapes_only=False), untold)
    # How large the layer scale was at first makes no difference to trained weights.
    if replace(config, layer_scale=None) != replace(wanted, layer_scale=None) or (
        (config.layer_scale is None) != (wanted.layer_scale is None)
    ):
        raise CheckpointError(f"{path.name} of {preset.repo} holds another network than {preset.name}: name another.")
    model = ViT(config)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.eval().requires_grad_(False)


def read_shapes(path: Path) -> dict[str, Tensor]:
    """The tensors of a file on the meta device: names and shapes, no values.

    Raises:
        CheckpointError: If it is not a file of safetensors.
    """
    return _read(path, shapes_only=True)


def _read(path: Path, *, shapes_only: bool) -> dict[str, Tensor]:
    try:
        with safe_open(path, "pt") as file:
            names = list(file.keys())
            kinds = {file.get_slice(n).get_dtype() for n in names} - FLOATS
            if kinds:
                raise CheckpointError(f"{path.name} holds {', '.join(sorted(kinds))}: save it as float32 or float16.")
            if shapes_only:
                return {n: torch.empty(file.get_slice(n).get_shape(), device="meta") for n in names}
            return {n: file.get_tensor(n) for n in names}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"The weights {path.name} are missing or damaged ({error}): fetch them again.") from error
