"""Deletion and insertion against a plain loop and known cases; randomization."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from vit_demo.errors import InputError
from vit_demo.methods import METHODS
from vit_demo.metrics import blur, faithfulness, randomization
from vit_demo.metrics.faithfulness import baseline_image
from vit_demo.trace import OwnViT, TracedViT

Network = Callable[..., TracedViT]


@pytest.mark.parametrize("steps", [1, 5, 100])
@pytest.mark.parametrize("batch_tokens", [1, 8192])
def test_curves_equal_a_plain_loop(network: Network, monkeypatch: pytest.MonkeyPatch, steps: int, batch_tokens: int):
    monkeypatch.setattr("vit_demo.methods.subsets.BATCH_TOKENS", batch_tokens)
    model, images, values = network(), torch.randn(1, 3, 16, 20), torch.randn(4, 5)
    baseline = torch.randn(1, 3, 16, 20)
    found = faithfulness(model, images, 2, values, baseline, steps=steps, seeds=2)
    places = sorted(((r, c) for r in range(4) for c in range(5)), key=lambda at: -float(values[at]))
    counts = [round(float(f) * 20) for f in found.fractions]
    assert counts[0] == 0 and counts[-1] == 20 and len(counts) == min(steps, 20) + 1
    for i, count in enumerate(counts):
        deleted, inserted = images.clone(), baseline.clone()
        for r, c in places[:count]:
            patch = (..., slice(4 * r, 4 * r + 4), slice(4 * c, 4 * c + 4))
            deleted[patch], inserted[patch] = baseline[patch], images[patch]
        for curve, picture in ((found.deletion, deleted), (found.insertion, inserted)):
            assert curve[i] == pytest.approx(float(model(picture).softmax(1)[0, 2]), abs=1e-5)
    for area, curve in ((found.deletion_area, found.deletion), (found.insertion_area, found.insertion)):
        assert area == pytest.approx(np.trapezoid(curve, found.fractions), abs=1e-6)
    assert found.random_deletion.shape == found.random_insertion.shape == (2, len(counts))
    alone = faithfulness(model, images, 2, 1, baseline, steps=steps, seeds=0)
    np.testing.assert_allclose(alone.deletion, found.random_deletion[1], atol=1e-5)


def test_both_ends_are_the_picture_and_the_baseline_exactly(network: Network) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    found = faithfulness(model, images, 1, torch.rand(4, 4), torch.zeros(1), steps=3)
    whole, empty = (float(model(x).softmax(1)[0, 1]) for x in (images, torch.zeros_like(images)))
    for down, up in (
        (found.deletion, found.insertion),
        *zip(found.random_deletion, found.random_insertion, strict=True),
    ):
        assert [down[0], up[-1]] == pytest.approx([whole, whole], abs=1e-6)
        assert [down[-1], up[0]] == pytest.approx([empty, empty], abs=1e-6)


class Counting(OwnViT):
    """Its probability of class 0 is the share of the importance of the patches that are not zero."""

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        share = images[:, 0].unfold(1, 4, 4).unfold(2, 4, 4).amax((3, 4)).flatten(1).sum(1) / 120  # 0 + 1 + ... + 15
        return torch.stack([share, 1 - share], dim=1).clamp(min=1e-12).log()


def test_a_right_map_beats_random_orders_and_a_wrong_one_loses_by_as_much(network: Network) -> None:
    model, importance = Counting(network(num_classes=2).module), torch.arange(16.0)[torch.randperm(16)].reshape(4, 4)
    images = importance.repeat_interleave(4, 0).repeat_interleave(4, 1).expand(1, 3, 16, 16)
    right, wrong = (
        faithfulness(model, images, 0, sign * importance, torch.zeros(1), steps=16, seeds=50) for sign in (1, -1)
    )
    lost = np.cumsum([0, *range(15, -1, -1)]) / 120  # the most valuable first
    np.testing.assert_allclose(right.deletion, 1 - lost, atol=1e-5)
    np.testing.assert_allclose(right.insertion, lost, atol=1e-5)
    np.testing.assert_allclose(wrong.deletion, lost[::-1], atol=1e-5)
    assert right.deletion_area < right.random_deletion_area < wrong.deletion_area
    deleted, inserted = (
        np.trapezoid(curves, right.fractions) for curves in (right.random_deletion, right.random_insertion)
    )
    assert right.deletion_area < deleted.min() and right.insertion_area > inserted.max()
    assert wrong.deletion_area > deleted.max() and wrong.insertion_area < inserted.min()
    assert right.random_deletion_area == pytest.approx(0.5, abs=0.05)
    assert right.random_insertion_area == pytest.approx(0.5, abs=0.05)


def test_a_network_that_ignores_the_image_gives_equal_areas(network: Network) -> None:
    model = network()
    model.head.weight.zero_()
    found = faithfulness(model, torch.randn(1, 3, 16, 16), 3, torch.rand(4, 4), torch.zeros(1))
    says = float(model.head.bias.softmax(0)[3])
    areas = [found.deletion_area, found.insertion_area, found.random_deletion_area, found.random_insertion_area]
    assert areas == pytest.approx([says] * 4, abs=1e-6)


def test_only_the_patches_of_the_sequence_are_replaced(network: Network) -> None:
    model, images, kept_patches = network(), torch.randn(1, 3, 16, 16), torch.tensor([[2, 3, 9, 14]])
    values = torch.arange(16.0).reshape(4, 4)
    found = faithfulness(model, images, 1, values, torch.zeros(1), steps=14, kept_patches=kept_patches)
    assert found.fractions.tolist() == [0, 0.25, 0.5, 0.75, 1]
    mixed = images.clone()
    mixed[..., 12:16, 8:12] = 0  # patch 14, the highest of the four
    assert found.deletion[1] == pytest.approx(float(model(mixed, kept_patches=kept_patches).softmax(1)[0, 1]), abs=1e-6)
    with pytest.raises(ValueError, match="at least 1 step"):
        faithfulness(model, images, 1, values, torch.zeros(1), steps=0)


def test_a_blurred_picture_keeps_its_mean_and_loses_its_detail() -> None:
    images = torch.randn(1, 3, 32, 32) + 2
    soft = blur(images, 16)
    assert soft.shape == images.shape
    assert float(soft.std()) < 0.2
    torch.testing.assert_close(soft.mean(), images.mean(), atol=0.05, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_randomization_leaves_the_network_alone_and_class_free_maps_ignore_the_head(network, method) -> None:
    model, images = network(), torch.randn(1, 3, 16, 16)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    correlations = randomization(model, images, 1, method)
    assert len(correlations) == 5 and correlations[0] == pytest.approx(1)
    assert all(-1 <= one <= 1.001 for one in correlations)
    assert correlations[-1] < 0.999
    assert (correlations[1] == pytest.approx(1)) is not METHODS[method].class_specific
    assert correlations == randomization(model, images, 1, method), "the seed decides"
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_cascade_goes_from_the_top_down(network: Network) -> None:
    """Attention of the last block sees the last block change, and a map of the first block's would not."""
    model, images, seen = network(), torch.randn(1, 3, 16, 16), []
    changed = METHODS["attention"].compute

    def spy(randomized, *arguments, **options):
        seen.append(
            [
                not torch.equal(a.mlp.fc1.weight, b.mlp.fc1.weight)
                for a, b in zip(randomized.blocks, model.blocks, strict=True)
            ]
        )
        return changed(randomized, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        spied = replace(METHODS["attention"], cost="forward", options=(), function=spy)
        patch.setitem(METHODS, "attention", spied)
        randomization(model, images, 1, "attention")
    assert seen == [[False] * 3, [False] * 3, [False, False, True], [False, True, True], [True] * 3]


def test_what_replaces_removed_patches() -> None:
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    photo = torch.rand(2, 3, 32, 32)
    images = (photo - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]

    def colours(name: str) -> Tensor:
        shown = baseline_image(name, images, 4, mean, std).expand_as(images)
        return shown * torch.tensor(std)[:, None, None] + torch.tensor(mean)[:, None, None]

    torch.testing.assert_close(colours("mean"), torch.tensor(mean)[:, None, None].expand_as(photo))
    torch.testing.assert_close(colours("black"), torch.zeros_like(photo))
    quarters = photo.unflatten(2, (2, 16)).unflatten(4, (2, 16)).mean((3, 5))  # 16 pixels are four patches
    torch.testing.assert_close(colours("blur")[:, :, [0, 0, -1, -1], [0, -1, 0, -1]], quarters.flatten(2))
    with pytest.raises(InputError, match="choose one of mean"):
        colours("white")
