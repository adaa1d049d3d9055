"""Patches, tokens, blocks, heads and classes by number; one that is not there raises ``InputError``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from vit_demo.checks import composed, did_you_mean, whole_number
from vit_demo.errors import InputError, LabelError
from vit_demo.inference.result import Label, Query, Result, kept_patches

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

WITHOUT_CLASS = "{} does not depend on a class, so the label that was given says nothing."


def check_patch(grid: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """Row and column of a patch."""
    rows, cols = grid
    try:
        row, col = patch
    except (TypeError, ValueError):
        raise InputError(f"A patch is its row and its column, such as (0, 0), not {patch!r}.") from None
    row, col = whole_number(row, "The row of a patch"), whole_number(col, "The column of a patch")
    if not (0 <= row < rows and 0 <= col < cols):
        raise InputError(f"There is no patch {(row, col)}: the grid has {rows} rows and {cols} columns.")
    return row, col


def listed(patches: Iterable[T]) -> list[T]:
    """Patches as a list, none of them checked."""
    try:
        return list(patches)
    except TypeError:
        raise InputError(f"Patches are a list of (row, col), such as [(0, 0)], not {patches!r:.40}.") from None


def check_block(blocks: int, block: int) -> int:
    """The number of one of so many blocks; negative ones count from the end."""
    number = whole_number(block, "A block")
    if not -blocks <= number < blocks:
        raise InputError(f"There is no block {number}: this model has {blocks}, counted from 0.")
    return number


def check_head(heads: int, head: int) -> None:
    """Refuses all but the numbers of so many heads."""
    if not 0 <= whole_number(head, "A head") < heads:
        raise InputError(f"There is no head {head}: this model has {heads}, counted from 0.")


def patch_index(ex: Result, patch: tuple[int, int]) -> int:
    """The place of a patch among those of the sequence, if it was not dropped."""
    row, col = check_patch(ex.grid, patch)
    if (row, col) in ex.dropped:
        raise InputError(f"The patch {(row, col)} was dropped, so it has no token.")
    index, kept = row * ex.grid[1] + col, kept_patches(ex)
    return index if kept is None else kept[0].tolist().index(index)


def query_token(ex: Result, block: int, head: int | None, query: Query) -> int | None:
    """The place of a query in the sequence, prefix included; None where no token stands for the picture."""
    check_block(ex.trace.num_blocks, block)
    if head is not None:
        check_head(ex.trace.num_heads, head)
    if query is None:
        return 0 if ex.preset.config.class_token else None
    return ex.trace.num_prefix_tokens + patch_index(ex, query)


def as_map(ex: Result, values: ArrayLike) -> NDArray[np.float32]:
    """A map as an array of numbers in the shape of the grid."""
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:  # the last of a tensor that requires a gradient
        raise InputError("A map is an array of numbers, [rows, cols].") from error
    if array.shape != ex.grid:
        raise InputError(f"A map for this image has the shape {ex.grid}, not {array.shape}.")
    return array


def class_index(ex: Result, label: Label = None) -> int:
    """The index of a class by its label or index, of the predicted one for None; ``LabelError`` if there is none."""
    name = ex.preset.name
    if not ex.preset.config.num_classes:
        raise LabelError(f"{name} has no classes, so no map of it can be about one.")
    return int(ex.logits.argmax()) if label is None else find_class(ex.labels, label, name)


def find_class(labels: Sequence[str], label: Any, name: str) -> int:
    """The index of a class by its label or index; ``LabelError``, with the name of the network, if there is none."""
    if isinstance(label, str):
        if label in labels:
            return labels.index(label)
        if composed(label) in (names := list(map(composed, labels))):
            return names.index(composed(label))
    else:
        with suppress(InputError):
            if 0 <= (index := whole_number(label, "A class")) < len(labels):
                return index
    raise LabelError(
        f"{name} has no class {' '.join(repr(label).split()):.102}{did_you_mean(label, labels)}: choose one of its "
        f"{len(labels)} labels."
    )


def other_class(ex: Result, target: int | None, against: Label) -> int:
    """The index of the class that another is compared with; ``LabelError`` if there is none such, or it is the same."""
    index = class_index(ex, against)
    if index == target:
        raise LabelError(f"{ex.labels[index]!r} cannot be compared with itself: choose another class.")
    return index
