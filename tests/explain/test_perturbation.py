"""Occlusion and patch dropping: against masked attention, and on networks whose answer is known beforehand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_demo.explain import occlusion, patch_dropping, relevance
from vit_demo.explain.patch_dropping import fit, random_subsets, smooth
from vit_demo.explain.ranks import ranks, spearman
from vit_demo.vit import ViT

Network = Callable[..., ViT]


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 40, 8192])
def test_occlusion_is_the_loss_when_no_one_may_look_at_a_window(
    network: Network, explicit, monkeypatch: pytest.MonkeyPatch, window: int, batch_tokens: int
) -> None:
    monkeypatch.setattr("vit_demo.explain.subsets.BATCH_TOKENS", batch_tokens)
    model, images, told = network(num_registers=1), torch.randn(1, 3, 16, 20), []
    found = occlusion(model, images, 3, window=window, progress=lambda *counts: told.append(counts))
    whole = explicit(model, images).logits.log_softmax(1)[0, 3]
    reach = window // 2
    for row in range(4):
        for col in range(5):
            hidden = [
                2 + r * 5 + c
                for r in range(max(0, row - reach), min(4, row + reach + 1))
                for c in range(max(0, col - reach), min(5, col + reach + 1))
            ]
            left = explicit(model, images, hidden=hidden).logits.log_softmax(1)[0, 3]
            assert float(found[0, row, col]) == pytest.approx(float((whole - left).detach()), abs=1e-5)
    assert told[-1] == (20, 20) and [done for done, _ in told] == sorted(done for done, _ in told)


def test_occlusion_of_what_is_left_and_impossible_windows(network: Network, explicit) -> None:
    model, images, keep = network(), torch.randn(1, 3, 16, 16), torch.tensor([[1, 6, 12]])
    found = occlusion(model, images, 0, keep=keep)
    gone = [1 + i for i in range(16) if i not in keep]
    whole = explicit(model, images, hidden=gone).logits.log_softmax(1)[0, 0]
    left = explicit(model, images, hidden=[*gone, 7]).logits.log_softmax(1)[0, 0]
    assert float(found[0, 1, 2]) == pytest.approx(float((whole - left).detach()), abs=1e-5)
    assert found.flatten().nonzero()[:, 0].tolist() == [1, 6, 12]
    with pytest.raises(ValueError, match="odd"):
        occlusion(model, images, 0, window=2)
    with pytest.raises(ValueError, match="leaves nothing"):
        occlusion(model, images, 0, window=9)


class Planted(ViT):
    """Says log p(class 1) = a sum over the patches that are there, of weights hidden in the image."""

    def forward(self, images: Tensor, trace=None, *, patch_size=None, keep=None) -> Tensor:
        worth = images.unfold(2, 4, 4).unfold(3, 4, 4).mean((1, 4, 5)).flatten(1)  # [B, 16]
        log_p = worth.gather(1, keep).sum(1) - 10
        return torch.stack([torch.log1p(-log_p.exp()), log_p], dim=1)


def test_patch_dropping_recovers_a_planted_linear_model(network: Network) -> None:
    model = Planted(network(num_classes=2).config)
    worth = torch.linspace(-1, 1, 16)[torch.randperm(16)].reshape(4, 4)
    images = worth.repeat_interleave(4, 0).repeat_interleave(4, 1).expand(1, 3, 16, 16)
    found = patch_dropping(model, images, 1, budget=200, with_relevance=False)[0]
    torch.testing.assert_close(found - found.mean(), worth - worth.mean(), atol=1e-3, rtol=0)
    keep = torch.tensor([[0, 2, 3, 7, 8, 9, 13, 15]])
    some = patch_dropping(model, images, 1, budget=200, with_relevance=False, keep=keep)[0].flatten()
    planted = worth.flatten()[keep[0]]
    torch.testing.assert_close(some[keep[0]] - some[keep[0]].mean(), planted - planted.mean(), atol=1e-3, rtol=0)
    assert some.count_nonzero() == 8


def test_the_fit_finds_weights_under_noise_and_shrinks_where_there_is_only_noise() -> None:
    generator = torch.Generator().manual_seed(1)
    chosen = random_subsets(40, 300, 0.25, seed=2)
    present = torch.zeros(300, 40).scatter(1, chosen, 1.0)
    weights, noise = torch.randn(40, generator=generator), torch.randn(300, generator=generator)
    found = fit(present, present @ weights + 0.3 * noise)
    assert torch.corrcoef(torch.stack([found, weights]))[0, 1] > 0.98
    least_squares = torch.linalg.lstsq(present - present.mean(0), noise - noise.mean()).solution
    assert fit(present, noise).norm() < 0.5 * least_squares.norm()
    torch.testing.assert_close(fit(present, torch.full((300,), 3.0)), torch.zeros(40))


def test_subsets_have_one_size_no_patch_twice_and_follow_their_seed() -> None:
    chosen = random_subsets(30, 500, 0.25, seed=3)
    assert chosen.shape == (500, 8)
    assert all(len(set(row)) == 8 for row in chosen.tolist())
    assert torch.equal(chosen, random_subsets(30, 500, 0.25, seed=3))
    assert not torch.equal(chosen, random_subsets(30, 500, 0.25, seed=4))
    counts = chosen.flatten().bincount(minlength=30)
    assert counts.min() > 80 and counts.max() < 190  # 133 each on average
    assert random_subsets(2, 5, 0.25, seed=0).shape == (5, 1)


def test_patch_dropping_averages_ranks_with_relevance_and_tells_its_progress(network: Network) -> None:
    model, images, told = network(), torch.randn(1, 3, 16, 16), []
    found = patch_dropping(model, images, 2, budget=50, progress=lambda *counts: told.append(counts))[0]
    alone = patch_dropping(model, images, 2, budget=50, with_relevance=False)[0]
    expected = (ranks(alone.flatten()) + ranks(relevance(model, images, 2)[0].flatten())) / 2
    torch.testing.assert_close(found.flatten(), expected)
    assert told[-1] == (50, 50)
    with pytest.raises(ValueError, match="cannot be fitted"):
        patch_dropping(model, images, 2, share=1.0)


def test_neighbours_are_averaged_only_where_there_are_any() -> None:
    values, there = torch.arange(12.0).reshape(1, 3, 4), torch.ones(1, 3, 4)
    there[0, 1, 1] = 0
    found = smooth(values, there)
    assert float(found[0, 0, 0]) == pytest.approx((0 + 1 + 4) / 3)
    assert float(found[0, 1, 2]) == pytest.approx((1 + 2 + 3 + 6 + 7 + 9 + 10 + 11) / 8)
    assert float(found[0, 1, 1]) == 0


def test_ranks_share_their_place_and_spearman_is_that_of_the_books() -> None:
    values = torch.tensor([3.0, 1.0, 3.0, 7.0, -2.0])
    torch.testing.assert_close(ranks(values), torch.tensor([2.5, 1.0, 2.5, 4.0, 0.0]) / 4)
    assert spearman(values, values.exp()) == pytest.approx(1)
    assert spearman(values, -values) == pytest.approx(-1)
    # 1 - 6 sum d^2 / (n (n^2 - 1)), with differences 1, -1, 1, -1, 0
    assert spearman(torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([2.0, 1, 4, 3, 5])) == pytest.approx(1 - 6 * 4 / 120)
    assert spearman(values, torch.ones(5)) == 0
