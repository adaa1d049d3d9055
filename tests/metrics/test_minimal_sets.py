"""Sets of patches that are enough, and that are needed: on networks whose answer is known, and against every subset."""

import math
from collections.abc import Callable
from itertools import combinations

import pytest
import torch
from torch import Tensor

from vit_demo.metrics import necessary_set, sufficient_set
from vit_demo.trace import OwnViT, TracedViT

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
        smallest = next(
            size for size in range(1, 16)
            if any(not keeps([p for p in range(16) if p not in gone]) for gone in combinations(range(16), size))
        )  # fmt: skip
        assert smallest <= len(removed) <= smallest + 4


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
