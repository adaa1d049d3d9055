"""Results that travel: as JSON values, as rows of a table, and as one file that needs no network.

The functions whose first argument is a result are also methods of ``Exploration``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from vit_demo import inference
from vit_demo.errors import InputError
from vit_demo.images import Geometry
from vit_demo.inference.forward import forward_with_trace
from vit_demo.methods import attention_from
from vit_demo.model import ViTConfig
from vit_demo.trace import Output, Trace
from vit_demo.weights import Preset
from vit_demo.weights.taught import Taught

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vit_demo.inference.exploration import Exploration

FORMAT = "vit_demo result 1"
ROUNDING = 0.05
"""By which share of the largest logit the network of a result may differ in another precision or on another device."""
NOT_SAVED = "{} is not a result that Exploration.save wrote: give the path of one."
OTHER_NETWORK = "This network gives other numbers for this result's input: pass the one that made it, as model=."
NO_NETWORK = "This result was loaded without its network: pass that to load_result as model=."


def to_dict(ex: Exploration, count: int = 5) -> dict[str, Any]:
    """The result as JSON values, without maps and tensors.

    Args:
        ex: The result.
        count: How many predictions, at most.

    Returns:
        ``source``, ``model``, ``patch_size``, ``fit``, ``grid`` (rows and columns), ``dropped`` patches, ``scores``
        (what ``predictions`` hold), ``predictions``, highest first, ``is_confident``, ``seconds`` and ``device``.

    Raises:
        InputError: If ``count`` is not a whole number from 0.
    """
    return {
        "source": ex.source,
        "model": ex.preset.name,
        "patch_size": ex.patch_size,
        "fit": ex.fit,
        "grid": list(ex.grid),
        "dropped": [list(patch) for patch in ex.dropped],
        "scores": ex.preset.scores,
        "predictions": [{"label": label, "score": score} for label, score in ex.top(count)],
        "is_confident": ex.is_confident,
        "seconds": ex.seconds,
        "device": ex.device,
    }


def to_html(ex: Exploration, path: str | os.PathLike[str]) -> None:
    """Writes the stage of the page with this result as one HTML file, which loads nothing from anywhere.

    Args:
        ex: The result.
        path: The file, which is overwritten.

    Raises:
        InputError: If the file cannot be written.
    """
    assert inference.result_page is not None
    try:
        Path(path).write_text(inference.result_page(ex), encoding="utf-8")
    except OSError as error:
        raise InputError(f"The page cannot be written to {os.fspath(path)!r}: {error.strerror}.") from error


def table(explorations: Iterable[Exploration] | Mapping[Any, Exploration]) -> list[dict[str, Any]]:
    """One row for each result, such as for ``pandas.DataFrame``.

    Args:
        explorations: Results, or results by the name of their picture.

    Returns:
        Rows with ``picture`` (its name, ``source`` or number), ``model``, ``patch_size``, ``rows``, ``cols``, the
        predicted ``label`` and its ``score`` (None without classes), ``is_confident``, ``seconds`` and ``device``.
    """
    rows = []
    for name, ex in _named(explorations):
        label, score = (*ex.top(1), (None, None))[0]
        row = {"picture": name, "model": ex.preset.name, "patch_size": ex.patch_size}
        row |= {"rows": ex.grid[0], "cols": ex.grid[1], "label": label, "score": score}
        rows.append(row | {"is_confident": ex.is_confident, "seconds": ex.seconds, "device": ex.device})
    return rows


def _named(explorations: Iterable[Exploration] | Mapping[Any, Exploration]) -> Iterable[tuple[Any, Exploration]]:
    if isinstance(explorations, Mapping):
        return explorations.items()
    return ((number if ex.source is None else ex.source, ex) for number, ex in enumerate(explorations))


def save(ex: Exploration, path: str | os.PathLike[str]) -> None:
    """Writes the result into one safetensors file, from which ``vit_demo.load_result`` reads it again.

    The file holds the input, the pictures, the logits and q, k, v of every block, so attention and rollout need no
    network later; but not the weights.

    Args:
        ex: The result.
        path: The file, which is overwritten.

    Raises:
        InputError: If the file cannot be written.
    """
    trace = ex.trace.to("cpu")
    tensors: dict[str, Tensor] = {"pixels": ex.pixels, "logits": torch.tensor(ex.logits)}
    for kind in ("q", "k", "v"):
        tensors |= {f"{kind}.{index}": part for index, part in enumerate(getattr(trace, kind))}
    optional = {"pooling": trace.pooling, "kept_patches": trace.kept_patches}
    tensors |= {name: value for name, value in optional.items() if value is not None}
    pictures = {"image": ex.image, "photo": ex.photo}
    tensors |= {name: torch.tensor(np.asarray(one)) for name, one in pictures.items() if one is not None}
    preset = {name: value for name, value in asdict(ex.preset).items() if name not in ("structure", "base", "head")}
    if ex.preset.base is not None:
        preset["source"] = "memory"  # nothing here names it
    about = {
        "preset": preset,
        "patch_size": ex.patch_size,
        "fit": ex.fit,
        "grid": ex.grid,
        "num_prefix_tokens": trace.num_prefix_tokens,
        "geometry": asdict(ex.geometry),
        "seconds": ex.seconds,
        "device": ex.device,
        "source": ex.source,
        "dropped": ex.dropped,
    }
    try:
        alone = {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
        save_file(alone, os.fspath(path), {"format": FORMAT, "about": json.dumps(about)})
    except (OSError, SafetensorError) as error:
        raise InputError(f"The result cannot be written to {os.fspath(path)!r}: {error}.") from error


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
    from vit_demo.inference.explainer import Explainer  # whose results have these methods
    from vit_demo.inference.exploration import Exploration

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
