"""Reads untrusted safetensors files: the header is bounded before it is parsed, its entries before they are used."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.weights import limits
from vit_demo.weights.untrusted_text import quote

FLOATS = {"F64", "F32", "F16", "BF16"}  # accepted dtypes; shorter ones are quantised, and useless without their scales


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata in the header of a file; ``CheckpointError`` if it is not a safetensors file."""
    with _opened(path) as file:
        return file.metadata() or {}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; ``CheckpointError`` if it is not a safetensors file, or exceeds ``limits``."""
    with _opened(path) as file:
        names = list(file.keys())
        if len(names) > limits.MAX_TENSORS:
            raise CheckpointError(
                f"{path.name} holds {len(names):,} tensors: choose a model with at most {limits.MAX_TENSORS:,}."
            )
        slices = {name: file.get_slice(name) for name in names}
        kinds = {part.get_dtype() for part in slices.values()} - FLOATS
        if kinds:
            raise CheckpointError(f"{path.name} holds {', '.join(sorted(kinds))}: save it as float32 or float16.")
        for name, part in slices.items():
            if len(name) > limits.MAX_TENSOR_NAME_LENGTH or len(part.get_shape()) > limits.MAX_RANK:
                raise CheckpointError(
                    f"{path.name} holds {quote(name)}, which no ViT has: see docs/models.md for what is supported."
                )
        return {name: file.get_tensor(name) for name in names}


def to_finite_float32(tensors: dict[str, Tensor], source: str) -> dict[str, Tensor]:
    """Copies tensors to float32 and empties ``tensors`` on the way, so that little is in memory twice.

    They lose what ``torch.compile`` puts before their names. A value that is not finite raises ``CheckpointError``.
    """
    floats = {}
    for name in list(tensors):
        tensor = floats[name.replace("_orig_mod.", "")] = tensors.pop(name).to(torch.float32, copy=True)
        if not tensor.isfinite().all():
            raise CheckpointError(f"{source} holds values that are not finite in {quote(name)}: choose other weights.")
    return floats


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as start:
            length = int.from_bytes(start.read(8), "little")
        if limits.MAX_HEADER_BYTES < length <= path.stat().st_size - 8:  # beyond the end, it is damaged
            raise CheckpointError(
                f"The header of {path.name} has {length / 1e6:.1f} MB: "
                f"choose a model with at most {limits.MAX_HEADER_BYTES / 1e6:.1f} MB."
            )
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        # Without the operating system's reason, which contains the whole path.
        raise CheckpointError(f"The weights {path.name} are missing or damaged: download them again.") from error
