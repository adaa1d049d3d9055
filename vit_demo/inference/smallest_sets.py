"""How few patches are enough for a class, and how few it needs: two methods of ``Exploration``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from vit_demo import metrics
from vit_demo.defaults import DEFAULT_METHOD, ENOUGH_SHARE, IMPROBABLE
from vit_demo.errors import InputError
from vit_demo.inference.heatmaps import heatmap
from vit_demo.inference.result import Label, Result
from vit_demo.inference.sequence import check_patch, class_index, listed
from vit_demo.methods import Progress


def enough(
    ex: Result,
    label: Label = None,
    share: float | None = ENOUGH_SHARE,
    without: Iterable[tuple[int, int]] = (),
    method: str = DEFAULT_METHOD,
    progress: Progress | None = None,
) -> metrics.PatchSet | None:
    """The fewest patches found that alone keep a class as probable; all others are dropped.

    They are looked for in the order of a map and by what helps most. None can be left out, but fewer others may do.

    Args:
        ex: The result.
        label: A label or its index; the predicted class for None.
        share: How much of its probability is kept, above 0 and at most 1; None: it stays the predicted class.
        without: (row, col) of patches that must not be in it: with those of a first set, another way to see the class.
        method: Whose map decides in which order patches are tried first; see ``benchmarks/README.md``.
        progress: Called with the number of subsets tried and the most that may be tried.

    Returns:
        The set; None if the patches that may be in it are not enough.

    Raises:
        InputError: If there is no such method or patch, the share is not above 0 and at most 1, or it is None for a
            class that is not predicted; or if the class is not predicted and has less than ``IMPROBABLE``, 0.1, of
            which single patches keep any share.
        LabelError: If there is no such class.
    """
    places = [check_patch(ex.grid, patch) for patch in listed(without)]
    return _search(ex, metrics.sufficient_set, label, share, method, without=places, progress=progress)


def needed(
    ex: Result,
    label: Label = None,
    share: float | None = None,
    method: str = DEFAULT_METHOD,
    progress: Progress | None = None,
    tried: metrics.Tried | None = None,
) -> metrics.PatchSet | None:
    """The fewest patches found without which another class is predicted, or a class loses its probability.

    Args:
        ex: The result.
        label: As in ``enough``.
        share: Below which share of its probability the class falls; None: another class is predicted.
        method: As in ``enough``.
        progress: As in ``enough``.
        tried: Called with (row, col) of patches that the search has just tried to do without, and of the fewest found
            so far.

    Returns:
        The set; None if the class stays in all that was tried, among it by each patch that is left alone.

    Raises:
        InputError: As in ``enough``.
        LabelError: If there is no such class.
    """
    return _search(ex, metrics.necessary_set, label, share, method, progress=progress, tried=tried)


def _search(
    ex: Result,
    search: Callable[..., metrics.PatchSet | None],
    label: Label,
    share: float | None,
    method: str,
    **options: Any,
) -> metrics.PatchSet | None:
    target = class_index(ex, label)
    if share is None and not is_predicted(ex, target):
        raise InputError(f"{ex.labels[target]} is not the predicted class: give the share of its probability to keep.")
    if ex.preset.scores != "none" and target != class_index(ex) and ex.probabilities[target] < IMPROBABLE:
        share_of = f"{ex.labels[target]} has {ex.probabilities[target]:.1%}"
        raise InputError(f"{share_of} here, too little to keep or to lose: choose a class of {IMPROBABLE:.0%} or more.")
    values = torch.from_numpy(heatmap(ex, method, target))
    return ex.run(search, target, values, share=share, slow=True, **options)


def is_predicted(ex: Result, target: int) -> bool:
    """Whether a class can be lost: to another one or, where each has a probability of its own, below one half."""
    if ex.preset.scores == "sigmoid":
        return bool(ex.probabilities[target] >= 0.5)
    return target == class_index(ex) and len(ex.labels) > 1
