"""Safetensors files read with care: the header is bounded before it is parsed, and what it lists before it is used."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vit_demo.errors import CheckpointError
from vit_demo.weights import limits
from vit_demo.weights.text import quoted

FLOATS = {"F64", "F32", "F16", "BF16"}
"""What may be read as it stands; anything shorter is quantised, and needs scales that are kept elsewhere."""


def read_metadata(path: Path) -> dict[str, str]:
    """The texts that a file's writer put into its header.

    Raises:
        CheckpointError: If it is not a file of safetensors.
    """
    _check_header(path)
    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise _damaged(path) from error


def read_tensors(path: Path, *, shapes_only: bool = False) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Args:
        path: The file.
        shapes_only: Puts them on the meta device: names and shapes, no values.

    Raises:
        CheckpointError: If it is not a file of safetensors, or holds what no ViT has.
    """
    _check_header(path)
    try:
        with safe_open(path, "pt") as file:
            names = list(file.keys())
            if len(names) > limits.MAX_TENSORS:
                raise CheckpointError(
                    f"{path.name} holds {len(names):,} tensors: choose a model with at most {limits.MAX_TENSORS:,}."
                )
            slices = {name: file.get_slice(name) for name in names}
            kinds = {part.get_dtype() for part in slices.values()} - FLOATS
            if kinds:
                raise CheckpointError(f"{path.name} holds {', '.join(sorted(kinds))}: save it as float32 or float16.")
            shapes = {name: part.get_shape() for name, part in slices.items()}
            for name, shape in shapes.items():
                if len(name) > limits.MAX_TENSOR_NAME or len(shape) > limits.MAX_RANK or 0 in shape:
                    raise CheckpointError(
                        f"{path.name} holds {quoted(name)}, which no ViT has: see docs/models.md for what is supported."
                    )
            if shapes_only:
                return {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
            return {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise _damaged(path) from error


def as_finite_floats(tensors: dict[str, Tensor], whose: str) -> dict[str, Tensor]:
    """Copies in float32, which a model may own; takes them out of ``tensors`` one by one, to spare memory.

    Raises:
        CheckpointError: If a value is not finite.
    """
    floats = {}
    for name in list(tensors):
        floats[name] = tensors.pop(name).to(torch.float32, copy=True)
        if not floats[name].isfinite().all():
            raise CheckpointError(f"{whose} holds values that are not finite in {quoted(name)}: use another one.")
    return floats


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
        size = path.stat().st_size
    except OSError as error:
        raise _damaged(path) from error
    if length + 8 > size:
        raise _damaged(path)
    if length > limits.MAX_HEADER_BYTES:
        raise CheckpointError(
            f"The header of {path.name} has {length / 1e6:.1f} MB: "
            f"choose a model with at most {limits.MAX_HEADER_BYTES / 1e6:.1f} MB."
        )


def _damaged(path: Path) -> CheckpointError:
    # The reason is not told, because the operating system's has the whole path in it.
    return CheckpointError(f"The weights {path.name} are missing or damaged: fetch them again.")
