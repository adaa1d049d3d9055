"""Results that travel: as JSON values, as rows of a table, and as one file that needs no network.

The functions whose first argument is a result are also methods of ``Exploration``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save_file

from vit_demo import inference
from vit_demo.checks import writing
from vit_demo.defaults import NUM_CLASSES
from vit_demo.inference.result import Result

if TYPE_CHECKING:
    from torch import Tensor


FORMAT = "vit_demo result 1"


def to_dict(ex: Result, count: int = NUM_CLASSES) -> dict[str, Any]:
    """The result as JSON values, without maps and tensors.

    Args:
        ex: The result.
        count: How many predictions, at most.

    Returns:
        ``source``, ``model``, ``patch_size``, ``fit``, ``grid`` (rows and columns), ``dropped`` patches, ``without``
        (what is silent, and in ``tokens_before`` the blocks before which tokens are of another result), ``scores``
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
        "without": ex.intervention.to_dict(),
        "scores": ex.preset.scores,
        "predictions": [{"label": label, "score": score} for label, score in ex.top(count)],
        "is_confident": ex.is_confident,
        "seconds": ex.seconds,
        "device": ex.device,
    }


def to_html(ex: Result, path: str | os.PathLike[str]) -> None:
    """Writes the stage of the page with this result as one HTML file, which loads nothing from anywhere.

    Args:
        ex: The result.
        path: The file, which is overwritten.

    Raises:
        InputError: If the file cannot be written.
    """
    assert inference.result_page is not None
    with writing(path):
        Path(path).write_text(inference.result_page(ex), encoding="utf-8", errors="backslashreplace")


def table(explorations: Iterable[Result] | Mapping[Any, Result]) -> list[dict[str, Any]]:
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


def _named(explorations: Iterable[Result] | Mapping[Any, Result]) -> Iterable[tuple[Any, Result]]:
    if isinstance(explorations, Mapping):
        return explorations.items()
    return ((number if ex.source is None else ex.source, ex) for number, ex in enumerate(explorations))


def save(ex: Result, path: str | os.PathLike[str]) -> None:
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
        "together": trace.together,
        "geometry": asdict(ex.geometry),
        "seconds": ex.seconds,
        "device": ex.device,
        "source": ex.source,
        "dropped": ex.dropped,
        "without": ex.intervention.to_dict(),
    }
    for number, graft in enumerate(ex.intervention.grafts):
        tensors |= {f"places.{number}": graft.places, f"tokens.{number}": graft.tokens}
    alone = {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}
    with writing(path):
        save_file(alone, os.fspath(path), {"format": FORMAT, "about": json.dumps(about)})
