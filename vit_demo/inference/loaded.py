"""Results that ``Exploration.save`` wrote, read again."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from torch import nn

from vit_demo.errors import InputError
from vit_demo.images import Geometry
from vit_demo.inference.explainer import Explainer
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.forward import forward_with_trace
from vit_demo.inference.saved import FORMAT
from vit_demo.methods import attention_from
from vit_demo.model import ViTConfig
from vit_demo.trace import Output, Trace
from vit_demo.weights import Preset
from vit_demo.weights.taught import Taught

ROUNDING = 0.05
"""By which share of the largest logit the network of a result may differ in another precision or on another device."""
NOT_SAVED = "{} is not a result that Exploration.save wrote: give the path of one."
OTHER_NETWORK = "This network gives other numbers for this result's input: pass the one that made it, as model=."
NO_NETWORK = "This result was loaded without its network: pass that to load_result as model=."


def load_result(
    path: str | os.PathLike[str],
    model: str | os.PathLike[str] | nn.Module | Taught | None = None,
    *,
    output: Output | None = None,
) -> Exploration:
    """Reads a result that ``Exploration.save`` wrote; nothing in the file is run.

    Args:
        path: The file.
        model: The network, named or in memory, for maps that need another pass; for None a preset's own, which is
            loaded when it is needed.
        output: Where the logits of a network in memory are, as in ``vit_demo.explore``.

    Raises:
        InputError: If the file is missing, damaged, or no such result, or the given model did not make it.
        PresetError: If the model is unknown or cannot be traced.
    """
    try:
        with safe_open(os.fspath(path), framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError
            about = json.loads(metadata["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        preset, patch_size = _preset(about["preset"]), int(about["patch_size"])
        grid = (int(about["grid"][0]), int(about["grid"][1]))
        q, k, v = ([tensors[f"{kind}.{index}"] for index in range(preset.config.depth)] for kind in "qkv")
        trace = Trace((), grid, int(about["num_prefix_tokens"]), q, k, v)
        trace.kept_patches, trace.pooling = tensors.get("kept_patches"), tensors.get("pooling")
        ex = Exploration(
            preset=preset,
            patch_size=patch_size,
            fit=about["fit"],
            grid=grid,
            logits=tensors["logits"].numpy(),
            trace=trace,
            image=Image.fromarray(tensors["image"].numpy()),
            photo=Image.fromarray(tensors["photo"].numpy()) if "photo" in tensors else None,
            geometry=Geometry(**{name: _tuple(value) for name, value in about["geometry"].items()}),
            pixels=tensors["pixels"],
            seconds=float(about["seconds"]),
            device=str(about["device"]),
            source=about.get("source"),  # which results of earlier versions lack
            dropped=tuple((int(row), int(col)) for row, col in about["dropped"]),
            run_on_model=_no_network,
        )
        _check_shapes(ex)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(NOT_SAVED.format(repr(Path(path).name))) from error
    is_given = model is not None
    if model is None and preset.source in ("bundled", "hub"):
        model = preset.name
    if model is None:
        return ex
    has_words = preset.takes_words and isinstance(model, str | os.PathLike)
    how: dict[str, Any] = {"labels": preset.labels, "template": preset.template} if has_words else {}
    how |= {"patch_size": patch_size, "output": output, "scores": preset.scores if len(ex.logits) else "auto"}
    ex = replace(ex, run_on_model=Explainer(model, **how).runner(ex.pixels))
    if is_given:
        logits, trace, _ = ex.run(forward_with_trace)
        both = [torch.tensor(ex.logits), logits]
        if not len(ex.logits):  # the mean attention of the last block, without classes
            both = [attention_from(one, -1, None).mean(1) for one in (ex.trace, trace)]
        expected, found = (x.float().cpu() for x in both)
        if expected.shape != found.shape or (expected - found).abs().max() > ROUNDING * expected.abs().max():
            raise InputError(OTHER_NETWORK)
    return ex


def _check_shapes(ex: Exploration) -> None:
    """``ValueError`` unless the parts of a file are those of one result."""
    config, (rows, cols), t = ex.preset.config, ex.grid, ex.trace
    tokens = t.num_prefix_tokens + (rows * cols if t.kept_patches is None else t.kept_patches.shape[1])
    parts = [*t.q, *t.k, *t.v]
    is_whole = all(x.dim() == 4 and x.shape[0] == 1 and x.shape[2] == tokens for x in parts)
    if not is_whole or ex.pixels.dim() != 4 or len(ex.dropped) >= rows * cols:
        raise ValueError
    if ex.logits.shape != (config.num_classes,) or len(ex.labels) != config.num_classes:
        raise ValueError


def _preset(fields: dict[str, Any]) -> Preset:
    config = ViTConfig(**fields.pop("config"))
    return Preset(config=config, **{name: _tuple(value) for name, value in fields.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _no_network(*_: Any, **__: Any) -> NoReturn:
    raise InputError(NO_NETWORK)
