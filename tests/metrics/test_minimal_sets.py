"""Sets of patches that are enough, and that are needed: on networks whose answer is known, and against every subset."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor

from vit_demo.images import digit_to_tensor
from vit_demo.metrics import necessary_set, sufficient_set
from vit_demo.metrics.minimal_sets import MAX_PASSES
from vit_demo.trace import OwnViT, TracedViT
from vit_demo.weights import find_preset
from vit_demo.weights.checkpoints import load_model

Network = Callable[..., TracedViT]


class Planted(OwnViT):
    """Is sure of class 1 where all patches of one of the groups are there, and of class 0 elsewhere."""

    groups: tuple[tuple[int, ...], ...] = ()

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        there = torch.zeros(len(images), images[0, 0].numel() // 16).scatter(1, kept_patches, 1.0).bool()
        seen = torch.stack([there[:, list(group)].all(1) for group in self.groups]).any(0).float()
        return torch.stack([4 - 8 * seen, 8 * seen - 4], dim=1)


def planted(network: Network, *groups: tuple[int, ...], **fields: int) -> TracedViT:
    model = Planted(network(num_classes=2, **fields).module)
    model.groups = groups
    return model


def at(*patches: int) -> set[tuple[int, int]]:
    return {divmod(patch, 4) for patch in patches}


IMAGES = torch.zeros(1, 3, 16, 16)


@pytest.mark.parametrize("share", [0.9, None])
def test_a_planted_group_is_found_in_whichever_order_patches_come(network: Network, share) -> None:
    model, reported = planted(network, (2, 7, 13)), []
    for seed in range(5):
        values = torch.rand(4, 4, generator=torch.Generator().manual_seed(seed))
        found = sufficient_set(model, IMAGES, 1, values, share=share, progress=lambda *c: reported.append(c))
        assert set(found.patches) == at(2, 7, 13) and found.is_minimal and found.prediction == 1
        assert found.probability == pytest.approx(1 / (1 + math.exp(-8)), abs=1e-6)
        assert reported[-1] == (found.passes, 300) and found.passes <= 60
        assert list(found.patches) == sorted(found.patches, key=lambda place: -float(values[place]))
        needed = necessary_set(model, IMAGES, 1, values)
        assert len(needed.patches) == 1 and set(needed.patches) < at(2, 7, 13), "any of the three breaks the group"
        assert needed.prediction == 0 and needed.probability < 0.01


def test_patches_of_one_value_come_in_the_order_of_reading(network: Network) -> None:
    model, images = planted(network, (10, 13, 35, 37, 50), image_size=32), torch.zeros(1, 3, 32, 32)
    values = torch.tensor([0.0, 1.0]).repeat(8, 4)  # patches with an odd number first
    found = sufficient_set(model, images, 1, values)
    assert [8 * row + col for row, col in found.patches] == [13, 35, 37, 10, 50]


def test_sets_without_a_patch_in_common_are_as_many_ways_to_see_the_class(network: Network) -> None:
    model, values, found = planted(network, (0, 1), (5, 9), (10, 11, 14)), torch.rand(4, 4), []
    while (one := sufficient_set(model, IMAGES, 1, values, without=[p for s in found for p in s.patches])) is not None:
        found.append(one)
    assert {frozenset(one.patches) for one in found} == {frozenset(at(*group)) for group in model.groups}
    needed = necessary_set(model, IMAGES, 1, values)
    assert len(needed.patches) == 3 and needed.is_minimal
    for group in model.groups:
        assert len(set(needed.patches) & at(*group)) == 1, "one of each group"


class Weighed(OwnViT):
    """Its logit of class 1 is the sum of the weights of the patches that are there."""

    weights = torch.tensor([3.0, 3, 3, 0, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4])

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        scores = self.weights[kept_patches].sum(1) - 6.5
        return torch.stack([-scores, scores], dim=1)


@pytest.mark.parametrize("share", [0.7, None])
def test_patches_are_tried_in_several_orders_and_the_fewest_are_returned(network: Network, share) -> None:
    model, values = Weighed(network(num_classes=2).module), torch.arange(16.0).flip(0).reshape(4, 4)
    found = sufficient_set(model, IMAGES, 1, values, share=share)  # in the order of the map the first three are enough
    assert set(found.patches) == at(5) and found.is_minimal and found.prediction == 1
    other = sufficient_set(model, IMAGES, 1, values, share=share, without=found.patches)
    assert set(other.patches) == at(0, 15), "4 and 3 are enough, and no two in the order of the map"
    assert list(other.patches) == [(0, 0), (3, 3)], "in the order of the map"


def test_of_the_patches_that_are_there_and_none_where_nothing_is_enough(network: Network) -> None:
    model, values = planted(network, (2, 7), (4, 5)), torch.rand(4, 4)
    kept = torch.tensor([[1, 2, 4, 7, 8]])
    assert set(sufficient_set(model, IMAGES, 1, values, kept_patches=kept).patches) == at(2, 7)
    assert set(necessary_set(model, IMAGES, 1, values, kept_patches=kept).patches) <= at(2, 7)
    assert sufficient_set(model, IMAGES, 1, values, without=[(0, 2), (1, 0)]) is None
    assert necessary_set(planted(network, ()), IMAGES, 1, values) is None, "the class is there without any patch"
    assert sufficient_set(model, IMAGES, 1, values, without=[divmod(i, 4) for i in range(16)]) is None


def test_the_fewest_so_far_are_told_early_and_become_fewer(network: Network) -> None:
    model, groups = planted(network, (2, 7, 13), (4, 5)), (at(2, 7, 13), at(4, 5))
    for seed in range(6):
        values, told = torch.rand(4, 4, generator=torch.Generator().manual_seed(seed)), list[list[tuple[int, int]]]()
        needed = necessary_set(model, IMAGES, 1, values, tried=lambda _, fewest, told=told: told.append(fewest))
        first = next(i for i, fewest in enumerate(told) if fewest)
        assert first <= 5, "after at most 1, 2, 4, 8 and 15 patches"
        counts = [len(fewest) for fewest in told[first:]]
        assert counts == sorted(counts, reverse=True) and counts[-1] == len(needed.patches) == 2
        assert all(set(fewest) & group for fewest in told[first:] for group in groups), "another class is left"


@pytest.mark.parametrize("share", [0.9, 0.5, None])
def test_of_a_real_network_no_single_patch_can_be_left_out(network: Network, share) -> None:
    for seed in range(4):
        torch.manual_seed(seed)
        model, images, values = network(), torch.randn(1, 3, 16, 16), torch.randn(4, 4)

        def keeps(patches: list[int], model: TracedViT = model, images: Tensor = images) -> bool:
            whole = model(images)[0]
            target, found = int(whole.argmax()), model(images, kept_patches=torch.tensor([patches]))[0]
            if share is None:
                return int(found.argmax()) == target
            return bool(found.softmax(0)[target] >= share * whole.softmax(0)[target])

        target = int(model(images).argmax())
        enough = sufficient_set(model, images, target, values, share=share)
        inside = [row * 4 + col for row, col in enough.patches]
        assert keeps(inside) and enough.is_minimal and enough.passes <= 300
        assert len(inside) == 1 or not any(keeps([p for p in inside if p != gone]) for gone in inside)
        needed = necessary_set(model, images, target, values, share=share)
        if needed is None:
            continue
        removed = [row * 4 + col for row, col in needed.patches]
        assert not keeps([p for p in range(16) if p not in removed])
        for back in removed:
            assert len(removed) == 1 or keeps([p for p in range(16) if p not in removed or p == back])
        before = model(images)[0].softmax(0)[target]

        def is_lost(logits: Tensor, target: int = target, before: Tensor = before) -> Tensor:
            return logits.argmax(1) != target if share is None else logits.softmax(1)[:, target] < share * before

        smallest = smallest_by_brute_force(model, images, is_lost, len(removed))
        assert len(removed) == smallest or share is not None
        assert smallest <= len(removed) <= smallest + 1


def test_when_the_passes_are_used_up_the_best_set_so_far_is_returned(network: Network) -> None:
    model = planted(network, (0, 3, 5, 6, 9, 10, 12, 15))
    values = torch.zeros(4, 4)
    values[3, 3] = -1
    found = sufficient_set(model, IMAGES, 1, values, max_passes=30)
    assert found.passes <= 60 and not found.is_minimal and set(found.patches) >= at(0, 3, 5, 6, 9, 10, 12, 15)
    assert sufficient_set(model, IMAGES, 1, values).is_minimal
    for wrong in ({"share": 0.0}, {"share": 1.5}, {"max_passes": 3}):
        with pytest.raises(ValueError, match=r"must be above 0|allow 30 or more"):
            sufficient_set(model, IMAGES, 1, values, **wrong)


def smallest_by_brute_force(
    model: TracedViT, images: Tensor, is_lost: Callable[[Tensor], Tensor], most: int
) -> int | None:
    """How few of 16 patches lose the class when they are removed; None if so many do not."""
    for size in range(1, most + 1):
        sets = list(combinations(range(16), size))
        present = torch.ones(len(sets), 16, dtype=torch.bool)
        present[torch.arange(len(sets))[:, None], torch.tensor(sets)] = False
        kept = present.nonzero()[:, 1].unflatten(0, (len(sets), -1))
        logits = torch.cat([model(images.expand(len(part), -1, -1, -1), kept_patches=part) for part in kept.split(256)])
        if is_lost(logits).any():
            return size
    return None


class Remembering(OwnViT):
    """Remembers what it makes of each subset of the patches of one image, so that brute force costs no more passes."""

    def __init__(self, model: TracedViT) -> None:
        super().__init__(model.module, model.patch_size)
        self.known = torch.full((1 << 16, model.config.num_classes), torch.nan)

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        if kept_patches is None:
            return super().forward(images)
        numbers = (1 << kept_patches).sum(1)
        if (new := self.known[numbers].isnan().any(1)).any():
            self.known[numbers[new]] = super().forward(images[new], kept_patches=kept_patches[new])
        return self.known[numbers]


def cases(network: Network) -> Iterator[tuple[TracedViT, Tensor]]:
    for seed in range(20):
        torch.manual_seed(seed)
        yield network(), torch.randn(1, 3, 16, 16)
    digits, model = np.load("checkpoints/digits.npz")["images"], load_model(find_preset("digits-notebook"), 7)
    for digit in digits[:200]:
        yield model, digit_to_tensor(digit)[0]


def test_what_is_needed_of_16_patches_is_the_smallest_that_there_is(network: Network) -> None:
    sizes = []
    with torch.no_grad():
        for number, (one, images) in enumerate(cases(network)):
            model, values = Remembering(one), torch.rand(4, 4, generator=torch.Generator().manual_seed(number))
            target = int(model(images).argmax())
            found = necessary_set(model, images, target, values)
            least = smallest_by_brute_force(model, images, lambda logits, t=target: logits.argmax(1) != t, 15)
            assert least == (found and len(found.patches)), f"case {number}"
            assert found is None or found.is_smallest, f"case {number}"
            sizes.append(least)
    assert {1, 2, 3, 4} <= {*sizes}, "of all sizes"


SUBSETS = (torch.arange(1 << 16)[:, None] >> torch.arange(16)) & 1
"""Of 16 patches, by a number with a bit for each."""


class Pairs(OwnViT):
    """Its logits are those of all subsets, made at once: of patches, and of pairs of them that are there together."""

    logits: Tensor

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        return self.logits[-1:] if kept_patches is None else self.logits[(1 << kept_patches).sum(1)]


def pairs(network: Network, seed: int) -> Pairs:
    torch.manual_seed(seed)
    model, there = Pairs(network(num_classes=3).module), SUBSETS.float()
    of_pairs = torch.einsum("si,cij,sj->sc", there, torch.randn(3, 16, 16) * (seed % 4) / 4, there)
    model.logits = there @ torch.randn(16, 3) * 2 + of_pairs
    model.logits[:, 2] += 3 * (there.sum(1) - seed % 12)  # so that it takes many patches to lose class 2
    return model


def test_of_all_subsets_of_16_patches_none_smaller_changes_the_class(network: Network) -> None:
    sizes, sums = [], SUBSETS.sum(1)
    for seed in range(60):
        model = pairs(network, seed)
        target, values = int(model.logits[-1].argmax()), torch.randn(4, 4)
        is_lost = (model.logits.argmax(1) != target) & (sums > 0)
        least = 16 - int(sums[is_lost].max()) if is_lost.any() else None
        found = necessary_set(model, IMAGES, target, values)
        assert least == (found and len(found.patches)), f"seed {seed}"
        sizes.append(least)
        if found is not None:
            assert found.is_smallest and found.passes <= 3 * MAX_PASSES + (1 << 16)
            assert is_lost[(1 << 16) - 1 - sum(1 << (4 * row + col) for row, col in found.patches)]
    assert {*range(1, 10)} <= {*sizes}, "of all sizes"


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("last", [0, 6, 15])
def test_a_class_that_one_patch_alone_does_not_keep_is_lost_by_all_others(network: Network, last: int, share) -> None:
    others = [(patch,) for patch in range(16) if patch != last]
    model, values = planted(network, *others), torch.arange(16.0).reshape(4, 4)
    found = necessary_set(model, IMAGES, 1, values, share=share)
    assert set(found.patches) == at(*(patch for patch in range(16) if patch != last))
    assert found.prediction == 0


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_few_patches_that_change_the_class_are_found_where_a_map_is_wrong(network: Network, size: int) -> None:
    """Each patch beside a few brings the class back, so what a map begins with never loses it."""

    class Fragile(Planted):
        def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
            there = torch.zeros(len(images), 16).scatter(1, kept_patches, 1.0).bool()
            lost = (~there[:, 3 : 3 + size]).all(1) & (there.sum(1) >= 16 - size)
            hint = 0.1 * (~there[:, 3 : 3 + size]).sum(1)
            return torch.stack([4.0 * lost + hint, 2 - 2.0 * lost], dim=1)

    values = torch.arange(16.0)
    values[3 : 3 + size] = -1
    found = necessary_set(Fragile(network(num_classes=2).module), IMAGES, 1, values.reshape(4, 4))
    assert set(found.patches) == at(*range(3, 3 + size))
