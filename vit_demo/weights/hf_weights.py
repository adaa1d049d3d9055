"""Weights that others made, as a network of ours: safetensors only, since opening a pickle can run a program."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.weights import visitor_cache
from vit_demo.weights.convert import Untold, convert
from vit_demo.weights.hub import Progress, fetch
from vit_demo.weights.preset import Preset
from vit_demo.weights.tensors import as_finite_floats, read_tensors

WEIGHTS = "model.safetensors"


def fetch_weights(preset: Preset, progress: Progress | None = None) -> Path:
    """The file of a preset's weights, fetched if it is not there yet.

    Raises:
        CheckpointError: If it cannot be had.
    """
    if preset.source == "folder":
        return Path(preset.repo) / WEIGHTS
    return fetch(preset.repo, WEIGHTS, preset.revision, progress, trusted=preset.trusted)


def load_foreign(preset: Preset, progress: Progress | None = None) -> ViT:
    """A network with fetched weights, in eval mode and float32, on the CPU.

    Raises:
        CheckpointError: If the weights cannot be had, are damaged or not finite, or are another network's.
    """
    wanted = preset.config
    untold = Untold(
        wanted.num_heads,
        wanted.image_size,
        wanted.norm_eps,
        "cls" if wanted.pool == "cls+next" else wanted.pool,  # type: ignore[arg-type]
    )
    with nullcontext() if preset.trusted else visitor_cache.in_use(preset.repo, preset.revision):
        path = fetch_weights(preset, progress)
        config, tensors = convert(read_tensors(path), untold)
        # How large the layer scale was at first makes no difference to trained weights.
        if replace(config, layer_scale=None) != replace(wanted, layer_scale=None) or (
            (config.layer_scale is None) != (wanted.layer_scale is None)
        ):
            raise CheckpointError(
                f"{path.name} of {preset.repo} holds another network than {preset.name}: name another."
            )
        floats = as_finite_floats(tensors, preset.name)
    with torch.device("meta"):
        model = ViT(config)
    model.load_state_dict(floats, assign=True)
    return model.eval().requires_grad_(False)
