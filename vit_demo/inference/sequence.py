"""A result's patches, tokens, blocks, heads and classes by number, each checked."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from vit_demo.errors import InputError, LabelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vit_demo.inference.exploration import Exploration, Label, Query


def check_patch(ex: Exploration, patch: tuple[int, int]) -> None:
    """Raises ``InputError`` if the grid has no such patch (row, col)."""
    (rows, cols), (row, col) = ex.grid, patch
    if not (0 <= row < rows and 0 <= col < cols):
        raise InputError(f"There is no patch {tuple(patch)}: the grid has {rows} rows and {cols} columns.")


def check_block(ex: Exploration, block: int) -> None:
    """Raises ``InputError`` if the model has no such block; negative ones count from the end."""
    blocks = ex.trace.num_blocks
    if not -blocks <= block < blocks:
        raise InputError(f"There is no block {block}: this model has {blocks}, counted from 0.")


def kept_patches(ex: Exploration) -> Tensor | None:
    """The patches of the sequence ``[1, K]``, counted row by row; None for all."""
    if not ex.dropped:
        return None
    dropped = {row * ex.grid[1] + col for row, col in ex.dropped}
    return torch.tensor([[i for i in range(ex.grid[0] * ex.grid[1]) if i not in dropped]])


def patch_index(ex: Exploration, patch: tuple[int, int]) -> int:
    """The place of a patch among those of the sequence.

    Raises:
        InputError: If there is no such patch, or it was dropped.
    """
    check_patch(ex, patch)
    if tuple(patch) in ex.dropped:
        raise InputError(f"The patch {tuple(patch)} was dropped, so it has no token.")
    index, kept = patch[0] * ex.grid[1] + patch[1], kept_patches(ex)
    return index if kept is None else kept[0].tolist().index(index)


def query_token(ex: Exploration, layer: int, head: int | None, query: Query) -> int | None:
    """The place of a query in the sequence, prefix included; None for the mean of all tokens.

    Raises:
        InputError: If there is no such block, head or patch.
    """
    check_block(ex, layer)
    heads = ex.trace.num_heads
    if head is not None and not 0 <= head < heads:
        raise InputError(f"There is no head {head}: this model has {heads}, counted from 0.")
    if query is None:
        return 0 if ex.preset.config.class_token else None
    return ex.trace.num_prefix_tokens + patch_index(ex, query)


def without(ex: Exploration, patches: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The patches that are dropped once these are, too.

    Raises:
        InputError: If there is no such patch, or none would be left.
    """
    for patch in patches:
        check_patch(ex, patch)
    dropped = tuple(sorted({*ex.dropped, *((int(row), int(col)) for row, col in patches)}))
    if len(dropped) == ex.grid[0] * ex.grid[1]:
        raise InputError("At least one patch must stay.")
    return dropped


def class_index(ex: Exploration, label: Label) -> int:
    """See ``Exploration.target``."""
    name = ex.preset.name
    if not ex.preset.config.num_classes:
        raise LabelError(f"{name} has no classes, so no map of it can be about one.")
    if label is None:
        return int(ex.logits.argmax())
    if isinstance(label, str):
        if label in ex.labels:
            return ex.labels.index(label)
    elif 0 <= operator.index(label) < len(ex.labels):
        return operator.index(label)
    raise LabelError(f"{name} has no class {label!r}: choose one of its {len(ex.labels)} labels.")


def ranking(labels: Sequence[str], probabilities: NDArray[np.float32], count: int) -> list[tuple[str, float]]:
    """The (label, probability) pairs of the most probable classes, highest first."""
    order = np.argsort(-probabilities, kind="stable")[:count]
    return [(labels[i], float(probabilities[i])) for i in order]
