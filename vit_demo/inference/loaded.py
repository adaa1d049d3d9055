"""Results that ``Exploration.save`` wrote, read again."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from torch import nn

from vit_demo.accelerator import best_device
from vit_demo.errors import InputError
from vit_demo.images import Geometry
from vit_demo.inference.explainer import Explainer
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.forward import forward_with_trace
from vit_demo.inference.inputs import check_fit
from vit_demo.inference.networks import Named
from vit_demo.inference.saved import FORMAT
from vit_demo.methods import attention_from
from vit_demo.model import ViTConfig
from vit_demo.scores import SCORES
from vit_demo.trace import Graft, Intervention, Output, Trace
from vit_demo.weights import PRESETS, Preset, find_preset
from vit_demo.weights.taught_heads import Taught

ROUNDING = 0.05  # share of the largest logit by which another precision or device may change logits
BROKEN = (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a damaged or hostile file raises."""
GEOMETRY = Geometry((1, 1), (0.0, 0.0, 1.0, 1.0), (1, 1), "crop")
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
        trace = Trace((), grid, int(about["num_prefix_tokens"]), q, k, v, together=int(about.get("together", 1)))
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
            intervention=_intervention(about.get("without"), tensors),
            run_on_model=_no_network,
        )
        _check_parts(ex)
    except BROKEN as error:
        raise InputError(NOT_SAVED.format(repr(Path(path).name))) from error
    if model is None:
        is_named = preset.is_bundled or preset.is_downloaded
        return replace(ex, run_on_model=_Later(preset, patch_size)) if is_named else ex
    has_words = preset.takes_words and isinstance(model, str | os.PathLike)
    how: dict[str, Any] = {"labels": preset.labels, "template": preset.template} if has_words else {}
    how |= {"patch_size": patch_size, "output": output, "scores": preset.scores if len(ex.logits) else "auto"}
    ex = replace(ex, run_on_model=Explainer(model, **how).runner(ex.pixels))
    logits, trace, _ = ex.run(forward_with_trace)
    both = [torch.tensor(ex.logits), logits]
    if not len(ex.logits):  # the mean attention of the last block, without classes
        both = [attention_from(one, -1, None).mean(1) for one in (ex.trace, trace)]
    expected, found = (x.float().cpu() for x in both)
    if expected.shape != found.shape or (expected - found).abs().max() > ROUNDING * expected.abs().max():
        raise InputError(OTHER_NETWORK)
    return ex


@dataclass(frozen=True)
class _Later:
    """Runs functions on the network that a file names, which is looked for when it is needed, as a visitor's is."""

    preset: Preset
    patch_size: int

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        found = find_preset(self.preset.name, trusted=False)
        if found.takes_words:
            found = found.with_words(self.preset.labels, self.preset.template)
        named = Named(found, found.check_patch_size(self.patch_size), str(best_device()))
        return named(*arguments, **options)


def _check_parts(ex: Exploration) -> None:
    """``ValueError`` unless the parts of a file are those of one result."""
    preset, (rows, cols), t, box = ex.preset, ex.grid, ex.trace, ex.geometry
    tokens, heads = t.q[0].shape[2], t.q[0].shape[1]
    if min(rows, cols, heads, ex.patch_size) < 1 or rows * cols != tokens - t.num_prefix_tokens + len(set(ex.dropped)):
        raise ValueError
    left = sorted(set(range(rows * cols)) - {row * cols + col for row, col in ex.dropped})
    kept = list(range(rows * cols)) if t.kept_patches is None else t.kept_patches[0].tolist()
    floats = [ex.pixels, torch.tensor(ex.logits), *t.q, *t.k, *t.v, *([] if t.pooling is None else [t.pooling])]
    is_whole = (
        sorted(kept) == left
        and (t.kept_patches is None or t.kept_patches.dtype == torch.int64)
        and all(x.is_floating_point() and x.isfinite().all() for x in floats)
        and all(x.dim() == 4 and x.shape[:3] == (1, heads, tokens) for x in (*t.q, *t.k, *t.v))
        and all(x.shape == t.q[0].shape for x in (*t.q, *t.k))
        and 0 == t.num_blocks % max(t.together, 1) < t.together
        and (t.pooling is None or t.pooling.shape[::2] == (1, tokens))
        and (ex.pixels.dim() == 4 and len(ex.pixels) == 1 <= ex.pixels.numel())
        and ex.intervention.fits(t.num_blocks, heads, t.num_prefix_tokens + rows * cols)
        and ex.logits.shape == (len(preset.labels),) == (preset.config.num_classes,)
        and all(_fits(getattr(preset, name), like) for name, like in vars(PRESETS["photos-tiny"]).items() if like)
        and all(_fits(getattr(box, name), like) for name, like in vars(GEOMETRY).items())
        and (preset.scores in SCORES and isinstance(ex.source, str | int | None))
        and (*map(len, (box.source_size, box.box, box.input_size)),) == (2, 4, 2)
        and min(*box.source_size, *box.input_size, *ex.image.size, *(ex.photo or ex.image).size) > 0
    )
    if not is_whole:
        raise ValueError
    check_fit(ex.fit)


def _fits(value: Any, like: Any) -> bool:
    """Whether a value has the type of another, and each part of a tuple that of its first."""
    if isinstance(like, tuple):
        return isinstance(value, tuple) and all(_fits(one, like[0]) for one in value)
    return type(value) is type(like) or (type(like) is float and type(value) is int)


def _preset(fields: dict[str, Any]) -> Preset:
    config = ViTConfig(**fields.pop("config"))
    return Preset(config=config, **{name: _tuple(value) for name, value in fields.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _intervention(about: dict[str, Any] | None, tensors: dict[str, torch.Tensor]) -> Intervention:
    """What was changed within the pass; nothing in files of earlier versions."""
    if about is None:
        return Intervention()
    given = [int(block) for block in about["tokens_before"]]
    grafts = [Graft(block, tensors[f"places.{i}"], tensors[f"tokens.{i}"]) for i, block in enumerate(given)]
    heads = tuple((int(block), int(head)) for block, head in about["heads"])
    blocks, mlps = (tuple(map(int, about[name])) for name in ("blocks", "mlps"))
    return Intervention(heads, blocks, mlps, about["replace"], tuple(grafts))


def _no_network(*_: Any, **__: Any) -> NoReturn:
    raise InputError(NO_NETWORK)
