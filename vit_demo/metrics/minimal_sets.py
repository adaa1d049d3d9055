"""How little is enough: the fewest patches found that keep a prediction, and the fewest whose removal changes it.

Patches outside a set are dropped from the sequence: nothing replaces them. A set is looked for in the order of a map:
the shortest beginning of that order that passes, by doubling and bisection. Patches are then removed from it as in
delta debugging (Zeller and Hildebrandt, 2002, https://doi.org/10.1109/32.988498), until none can be left out. Sets
are also grown patch by patch, each the one that helps most, and the smaller of both is returned; of sets that are
needed, whose loss one patch may tip, all of a size are tried: of up to ``ALL_OF`` patches all sets, of more while
``GROWN_TOKENS`` allows it, and then the best few are grown side by side (beam search). So a set is minimal, but not
the only one, and the smallest where ``is_smallest`` says so. Sets without a patch in common are as many ways to see
the class (Kim et al., 2024, https://arxiv.org/abs/2402.01095).
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import combinations
from typing import Unpack

import torch
from torch import Tensor

from vit_demo.defaults import ENOUGH_SHARE
from vit_demo.errors import InputError
from vit_demo.methods.subsets import Progress, sequence_patches, subset_logits
from vit_demo.trace import PassOptions, TracedViT

MAX_PASSES = 150
PARTS = 64  # sets of few patches that are tried at once: each brings the whole picture with it
GROWN_TOKENS = 1 << 15  # patches in the whole pictures of all sets that are tried while needed ones grow
ALL_OF = 16  # of up to so many patches all sets are tried, smaller ones first: at most 65,536
BEAM = 1 << 14  # needed sets that grow side by side, times the squared number of patches: 5 on 7 x 7 patches

Tried = Callable[[list[tuple[int, int]], list[tuple[int, int]]], None]


@dataclass(frozen=True)
class PatchSet:
    """A set of patches that is enough for a class, or that the class needs.

    Attributes:
        patches: (row, col) of each, in the order of the map.
        probability: Of the class with these patches alone, or without them.
        prediction: The index of the most probable class then.
        predicted_probability: Of that class.
        passes: How many subsets of the patches were tried; those of few patches, as sets grow, count by their share.
        is_minimal: Whether each patch was found to be necessary; False if the passes were used up before.
        is_smallest: Whether no smaller set does it, since all of them were tried.
    """

    patches: tuple[tuple[int, int], ...]
    probability: float
    prediction: int
    predicted_probability: float
    passes: int
    is_minimal: bool
    is_smallest: bool


def sufficient_set(
    model: TracedViT,
    images: Tensor,
    target: int,
    values: Tensor,
    *,
    share: float | None = ENOUGH_SHARE,
    without: Collection[tuple[int, int]] = (),
    max_passes: int = MAX_PASSES,
    progress: Progress | None = None,
    **options: Unpack[PassOptions],
) -> PatchSet | None:
    """The fewest patches found that keep a class, with nothing else in the sequence.

    Patches are added in the order of a map, ``values`` ``[rows, cols]``, highest first, and then in the order in which
    they help most; each search takes at most ``max_passes``. ``share`` is how much of the class's probability is kept,
    above 0 and at most 1; None: the class is the most probable or, where each has a probability of its own, more
    probable than not. ``without`` are (row, col) of patches that must not be in the set, such as those of sets found
    before. Other parameters as in ``vit_demo.methods``.

    Returns:
        The set; None if not even all patches that may be in it are enough.

    Raises:
        InputError: If the share is not above 0 and at most 1, or fewer than 30 passes are allowed.
    """
    search = Search(model, images, target, share, max_passes, progress, options)
    return search.smallest([place for place in search.ordered(values) if search.patch_at(place) not in without])


def necessary_set(
    model: TracedViT,
    images: Tensor,
    target: int,
    values: Tensor,
    *,
    share: float | None = None,
    max_passes: int = MAX_PASSES,
    progress: Progress | None = None,
    tried: Tried | None = None,
    **options: Unpack[PassOptions],
) -> PatchSet | None:
    """The fewest patches found without which a class is not kept.

    Arguments as in ``sufficient_set``; for a share of None, another class is then the most probable. ``tried`` gets
    (row, col) of a set of each batch that was tried, and of the fewest found so far.

    Returns:
        The set; None if the class was kept in all that was tried, among it by each patch alone.

    Raises:
        InputError: As in ``sufficient_set``.
    """
    search = Search(model, images, target, share, max_passes, progress, options, removes=True, tried=tried)
    return search.smallest(search.ordered(values))


@dataclass
class Search:
    """Tries subsets of the patches of one image, and counts them."""

    model: TracedViT
    images: Tensor
    target: int
    share: float | None
    max_passes: int
    progress: Progress | None
    options: PassOptions
    removes: bool = False
    tried: Tried | None = None

    def __post_init__(self) -> None:
        try:
            fits = self.share is None or bool(0 < self.share <= 1)
        except (TypeError, ValueError, RuntimeError):  # of a text, or of several numbers
            fits = False
        if not fits:
            raise InputError(f"The share of the probability must be above 0 and at most 1, not {self.share!r:.40}.")
        if self.max_passes < 30:
            raise InputError(f"{self.max_passes} passes are too few for a search: allow 30 or more.")
        self._grid, self._patches = self.parts()
        count = len(self._patches)
        grown = 1 << count if count <= ALL_OF else max(count, GROWN_TOKENS // count)
        self._growth, self._all = grown if self.removes else self.max_passes, 0  # patches of which all sets were tried
        self._fewest = list[int]()  # the smallest set so far
        self._passes, self._limit, whole = 0, self.max_passes, torch.ones(1, count, dtype=torch.bool)
        self._least = None if self.share is None else self.share * self._score(self.logits(whole))
        if self._least is not None and float(self._least) <= 0:
            raise InputError("The score of this class is not above 0, so no share of it can be kept: choose another.")

    @property
    def _left(self) -> int:
        return self._limit - self._passes

    def parts(self) -> tuple[tuple[int, int], Tensor]:
        """The grid of all patches, and those that a set may hold: ``[K]``."""
        return sequence_patches(self.model, self.images, **self.options)

    def logits(self, present: Tensor) -> Tensor:
        """The logits ``[M, classes]`` of the image with the patches of each set alone: bool ``[M, K]``."""
        return subset_logits(self.model, self.images, present.to(self.images.device), **self.options).cpu()

    def _score(self, logits: Tensor) -> Tensor:
        """The score ``[M]`` of the class, for logits ``[M, classes]``."""
        return self.model.to_scores(logits)[:, self.target]

    def ordered(self, values: Tensor) -> list[int]:
        """The places of the sequence's patches, highest value first."""
        return values.flatten().cpu()[self._patches.cpu()].argsort(descending=True, stable=True).tolist()

    def patch_at(self, place: int) -> tuple[int, int]:
        """(row, col) of a patch, by its place in the sequence."""
        return divmod(int(self._patches[place]), self._grid[1])

    def smallest(self, order: list[int]) -> PatchSet | None:
        """The smallest set that is found; see ``sufficient_set``."""
        found, is_minimal = self._beginning(order[:-1] if self.removes else order), False  # one patch must stay
        if found is None and self.removes and len(order) > 1:
            alone = [_minus(order, [patch]) for patch in order]
            found = next((alone[i] for i in self._passing(alone, 1 / len(order))), None)
            self._fewest = found or []
        if found is not None:
            found, is_minimal = self._reduced(found)
        elif not self.removes:
            return None
        self._limit = self._passes + self._growth
        if grown := self._grown(order, len(order if found is None else found) - 1):
            self._limit, self._fewest = self._passes + self.max_passes, grown
            found, is_minimal = self._reduced(grown)
        if found is None:
            return None
        scores = self.model.to_scores(self._try([found]))[0]
        best, patches = int(scores.argmax()), tuple(map(self.patch_at, found))
        is_smallest, values = len(found) <= self._all + 1, (float(scores[self.target]), best, float(scores[best]))
        return PatchSet(patches, *values, self._passes, is_minimal, is_smallest)

    def _beginning(self, order: list[int]) -> list[int] | None:
        """The shortest beginning that passes, if longer ones than it do as well."""
        low, high = 0, min(1, len(order))
        while high and not self._passing([order[:high]]):
            if high == len(order):
                return None
            low, high = high, min(2 * high, len(order))
        self._fewest = order[:high]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._passing([order[:middle]]) else (middle, high)
            self._fewest = order[:high]
        return self._fewest or None

    def _grown(self, order: list[int], most: int) -> list[int]:
        """Grows a set by the patch that helps most, to ``most`` patches, in the order; empty if none pass."""
        best, width = [list[int]()], max(1, BEAM // len(self._patches) ** 2) if self.removes else 1
        for size in range(1, most + 1):
            if self.removes and self._all == size - 1 and math.comb(len(order), size) <= self._left:
                tried, self._all = list(map(list, combinations(order, size))), size
            else:
                longer = ([*found, patch] for found in best for patch in order if patch not in found)
                tried = list({frozenset(one): one for one in longer}.values())
            share = 1.0 if self.removes else size / len(self._patches)
            tried = tried[: self._left] if self.removes else tried
            if not tried or self._left < (1 if self.removes else size + 2):
                return []
            parts = [tried[i : i + PARTS] for i in range(0, len(tried), PARTS)]
            margins = torch.cat([self._margins(self._try(part, share)) for part in parts])
            best = [tried[i] for i in margins.argsort(descending=not self.removes, stable=True)[:width].tolist()]
            if (margins < 0).any() if self.removes else (margins >= 0).any():
                return [patch for patch in order if patch in best[0]]
        return []

    def _reduced(self, found: list[int]) -> tuple[list[int], bool]:
        """Removes from a set what can be removed; whether that is all."""
        settled = set[int]()  # what could not be left out of a larger set
        size = max(1, len(found) // 8)  # of the groups that are tried, large ones first
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
                found = self._fewest = self._remove([groups[i] for i in can_go], found)
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

    def _passing(self, sets: list[list[int]], share: float = 1.0) -> list[int]:
        """The indices of the sets that keep the class, or lose it if removed; the one that does so by most first."""
        margins = self._margins(self._try(sets, share))
        order = margins.argsort(descending=not self.removes).tolist()
        return [i for i in order if bool(margins[i] >= 0) is not self.removes]

    def _margins(self, logits: Tensor) -> Tensor:
        """The margin by which each of the sets keeps the class, ``[M]``; below 0 where it is lost."""
        if self._least is not None:
            return self._score(logits) - self._least
        if self.model.scores == "sigmoid":
            return logits[:, self.target]  # above 0 where the probability is above one half
        others = logits.clone()
        others[:, self.target] = float("-inf")
        return logits[:, self.target] - others.amax(1)

    def _try(self, sets: list[list[int]], share: float = 1.0) -> Tensor:
        """The logits ``[M, classes]`` with the patches of each set alone, or without them."""
        present = torch.full((len(sets), len(self._patches)), self.removes)
        for row, one in zip(present, sets, strict=True):
            row[one] = not self.removes
        logits = self.logits(present)
        self._passes += math.ceil(len(sets) * share)
        if self.progress is not None:
            total = self.max_passes + self._growth
            self.progress(min(self._passes, total), total)
        if self.tried is not None:
            self.tried(*(list(map(self.patch_at, each)) for each in (sets[0], self._fewest)))
        return logits


def _minus(patches: list[int], *without: list[int]) -> list[int]:
    gone = set[int]().union(*without)
    return [patch for patch in patches if patch not in gone]
