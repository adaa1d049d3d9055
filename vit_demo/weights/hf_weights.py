"""Loads weights in the formats of the Hub: safetensors only, because opening a pickle can run arbitrary code."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from vit_demo.errors import CheckpointError
from vit_demo.model import ViT
from vit_demo.weights import visitor_cache
from vit_demo.weights.convert import ConfigHints, convert
from vit_demo.weights.hub import Progress, fetch, is_cached
from vit_demo.weights.preset import Preset
from vit_demo.weights.safetensors_io import read_tensors, to_finite_float32

WEIGHTS_FILE = "model.safetensors"


def fetch_weights(preset: Preset, progress: Progress | None = None) -> Path:
    """The path of a preset's weights, downloaded if necessary.

    Raises:
        CheckpointError: If they cannot be downloaded.
    """
    if preset.source == "folder":
        return Path(preset.repo) / WEIGHTS_FILE
    return fetch(preset.repo, WEIGHTS_FILE, preset.revision, progress, trusted=preset.trusted)


def is_on_machine(preset: Preset) -> bool:
    """Whether a preset's weights need no download; their hash is not compared here."""
    if preset.source != "hub":
        return True
    return is_cached(preset.repo, WEIGHTS_FILE, preset.revision, trusted=preset.trusted)


@torch.inference_mode(False)  # no method that needs gradients could use an inference tensor
def load_hf_model(preset: Preset, progress: Progress | None = None) -> ViT:
    """The network of a preset of the Hub or a folder, in eval mode and float32, on the CPU.

    Raises:
        CheckpointError: If the weights cannot be downloaded, are damaged or not finite, or belong to another network.
    """
    wanted = preset.config
    hints = ConfigHints(
        wanted.num_heads,
        wanted.image_size,
        wanted.norm_eps,
        "cls" if wanted.pool == "cls+next" else wanted.pool,  # type: ignore[arg-type]
    )
    with nullcontext() if preset.trusted else visitor_cache.in_use(preset.repo, preset.revision):
        path = fetch_weights(preset, progress)
        config, tensors = convert(read_tensors(path), hints)
        # The initial value of layer scale does not matter to trained weights.
        if replace(config, layer_scale=None) != replace(wanted, layer_scale=None) or (
            (config.layer_scale is None) != (wanted.layer_scale is None)
        ):
            raise CheckpointError(
                f"{path.name} of {preset.repo} holds another network than {preset.name}: choose another model."
            )
        floats = to_finite_float32(tensors, preset.name)
    with torch.device("meta"):
        model = ViT(config)
    model.load_state_dict(floats, assign=True)
    return model.eval().requires_grad_(False)
