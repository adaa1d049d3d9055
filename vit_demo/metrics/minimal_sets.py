"""How little is enough: a smallest set of patches that keeps a prediction, and one whose removal changes it.

Patches outside a set are dropped from the sequence: nothing replaces them. A set is looked for in the order of a map:
the shortest beginning of that order that passes, by doubling and bisection. Patches are then removed from it as in
delta debugging (Zeller and Hildebrandt, 2002, https://doi.org/10.1109/32.988498), until none can be left out. So a set
is minimal, but neither the only one nor certainly the smallest. Sets without a patch in common are as many ways to see
the class (Kim et al., 2024, https://arxiv.org/abs/2402.01095).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from vit_demo.defaults import ENOUGH_SHARE
from vit_demo.errors import InputError
from vit_demo.methods.subsets import Progress, sequence_patches, subset_logits
from vit_demo.trace import TracedViT

MAX_PASSES = 150


@dataclass(frozen=True)
class PatchSet:
    """A set of patches that is enough for a class, or that the class needs.

    Attributes:
        patches: (row, col) of each, in the order of the map.
        probability: Of the class with these patches alone, or without them.
        prediction: The index of the most probable class then.
        passes: How many subsets of the patches were tried.
        is_minimal: Whether each patch was found to be necessary; False if the passes were used up before.
    """

    patches: tuple[tuple[int, int], ...]
    probability: float
    prediction: int
    passes: int
    is_minimal: bool


def sufficient_set(
    model: TracedViT,
    images: Tensor,
    target: int,
    values: Tensor,
    *,
    share: float | None = ENOUGH_SHARE,
    without: Collection[tuple[int, int]] = (),
    max_passes: int = MAX_PASSES,
    patch_size: int | None = None,
    kept_patches: Tensor | None = None,
    progress: Progress | None = None,
) -> PatchSet | None:
    """A smallest set of patches that keeps a class, with nothing else in the sequence.

    Args:
        model: In eval mode.
        images: ``[1, C, height, width]``, normalised.
        target: The class.
        values: A map ``[rows, cols]``, in whose order patches are added, highest value first.
        share: How much of the class's probability is kept, above 0 and at most 1. None: the class is the most probable.
        without: (row, col) of patches that must not be in the set, such as those of sets found before.
        max_passes: How many subsets are tried at most.
        patch_size: As in ``TracedViT.forward``.
        kept_patches: ``[1, K]``: only these are in the sequence to begin with.
        progress: Called with the passes done and ``max_passes``.

    Returns:
        The set; None if not even all patches that may be in it are enough.

    Raises:
        InputError: If the share is not above 0 and at most 1, or fewer than 30 passes are allowed.
    """
    search = _Search(model, images, target, share, max_passes, patch_size, kept_patches, progress)
    excluded = {row * search.grid[1] + col for row, col in without}
    return search.smallest([patch for patch in search.ordered(values) if patch not in excluded])


def necessary_set(
    model: TracedViT,
    images: Tensor,
    target: int,
    values: Tensor,
    *,
    share: float | None = None,
    max_passes: int = MAX_PASSES,
    patch_size: int | None = None,
    kept_patches: Tensor | None = None,
    progress: Progress | None = None,
) -> PatchSet | None:
    """A smallest set of patches without which a class is not kept.

    Arguments as in ``sufficient_set``; for a share of None, another class is then the most probable.

    Returns:
        The set; None if the class is kept by whichever patch is left, or was not the most probable to begin with.

    Raises:
        InputError: As in ``sufficient_set``.
    """
    search = _Search(model, images, target, share, max_passes, patch_size, kept_patches, progress, removes=True)
    return search.smallest(search.ordered(values)[:-1])  # one patch must stay


class _Search:
    """Tries subsets of the patches of one image, and counts them."""

    def __init__(
        self,
        model: TracedViT,
        images: Tensor,
        target: int,
        share: float | None,
        max_passes: int,
        patch_size: int | None,
        kept_patches: Tensor | None,
        progress: Progress | None,
        *,
        removes: bool = False,
    ) -> None:
        if share is not None and not 0 < share <= 1:
            raise InputError(f"The share of the probability must be above 0 and at most 1, not {share}.")
        if max_passes < 30:
            raise InputError(f"{max_passes} passes are too few for a search: allow 30 or more.")
        self.grid, patches = sequence_patches(model, images, patch_size, kept_patches)
        self._patches, self._device = patches.tolist(), images.device
        self._logits = partial(subset_logits, model, images, patch_size=patch_size)
        self._target, self._removes = target, removes
        self._max_passes, self._passes, self._progress = max_passes, 0, progress
        self._least = None if share is None else share * float(self._logits(patches[None]).softmax(1)[0, target])

    @property
    def _left(self) -> int:
        return self._max_passes - self._passes

    def ordered(self, values: Tensor) -> list[int]:
        """The patches of the sequence, highest value first."""
        place = torch.tensor(self._patches)
        order = values.flatten().cpu()[place].argsort(descending=True, stable=True)
        return place[order].tolist()

    def smallest(self, order: list[int]) -> PatchSet | None:
        """See ``sufficient_set``."""
        found = self._beginning(order)
        if found is None:
            return None
        found, is_minimal = self._reduced(found)
        logits = self._try([found])[0]
        patches = tuple(divmod(patch, self.grid[1]) for patch in found)
        probability = float(logits.softmax(0)[self._target])
        return PatchSet(patches, probability, int(logits.argmax()), self._passes, is_minimal)

    def _beginning(self, order: list[int]) -> list[int] | None:
        """The shortest beginning that passes, if longer ones than it do as well."""
        low, high = 0, min(1, len(order))
        while high and not self._passing([order[:high]]):
            if high == len(order):
                return None
            low, high = high, min(2 * high, len(order))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._passing([order[:middle]]) else (middle, high)
        return order[:high] or None

    def _reduced(self, found: list[int]) -> tuple[list[int], bool]:
        """Removes from a set what can be removed; whether that is all."""
        settled = set[int]()  # what could not be left out of a larger set
        size = max(1, -(-3 * len(found) // self._left))  # of the groups that are tried
        while len(found) > 1:
            tried = [patch for patch in reversed(found) if patch not in settled]
            groups = [tried[i : i + size] for i in range(0, len(tried), size)]
            room = self._left - 1 - len(groups).bit_length()  # what is left for ``_remove``, and for the result
            if room < 1:
                return found, False
            is_complete, groups = not settled and len(groups) <= room, groups[:room]
            can_go = self._passing([_minus(found, group) for group in groups]) if groups else []
            settled.update(*(group for i, group in enumerate(groups) if i not in can_go))
            if can_go:
                found = self._remove([groups[i] for i in can_go], found)
            elif is_complete and size == 1:
                return found, True
            else:  # in smaller groups; or all once more, because what more patches need fewer may not
                size, settled = max(1, size // 2), set()
        return found, True

    def _remove(self, groups: list[list[int]], found: list[int]) -> list[int]:
        """The set without as many of the groups as can go together, of which the first can."""
        low, high = 1, len(groups) + 1
        tried = len(groups)  # all of them first
        while high - low > 1:
            fewer = _minus(found, *groups[:tried])
            low, high = (tried, high) if fewer and self._passing([fewer]) else (low, tried)
            tried = (low + high) // 2
        return _minus(found, *groups[:low])

    def _passing(self, sets: list[list[int]]) -> list[int]:
        """The indices of the sets that keep the class, or lose it if removed; the one that does so by most first."""
        logits = self._try(sets)
        if self._least is None:
            others = logits.clone()
            others[:, self._target] = float("-inf")
            margins = logits[:, self._target] - others.amax(1)
        else:
            margins = logits.softmax(1)[:, self._target] - self._least
        order = margins.argsort(descending=not self._removes).tolist()
        return [i for i in order if bool(margins[i] >= 0) is not self._removes]

    def _try(self, sets: list[list[int]]) -> Tensor:
        """The logits ``[M, classes]`` with the patches of each set alone, or without them."""
        subsets = [_minus(self._patches, one) if self._removes else sorted(one) for one in sets]
        found: dict[int, Tensor] = {}
        for length in {len(one) for one in subsets}:  # a batch holds sequences of one length
            same = [i for i, one in enumerate(subsets) if len(one) == length]
            logits = self._logits(torch.tensor([subsets[i] for i in same], device=self._device))
            found.update(zip(same, logits.cpu(), strict=True))
        self._passes += len(sets)
        if self._progress is not None:
            self._progress(self._passes, self._max_passes)
        return torch.stack([found[i] for i in range(len(sets))])


def _minus(patches: list[int], *without: list[int]) -> list[int]:
    gone = set[int]().union(*without)
    return [patch for patch in patches if patch not in gone]
