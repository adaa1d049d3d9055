"""Occlusion and the local surrogate: against masked attention, and on networks whose answer is known beforehand."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from vit_demo.methods import libra_fullgrad, local_surrogate, occlusion
from vit_demo.methods.local_surrogate import class_score, log_evidence, posterior_mean, random_subsets, ranks
from vit_demo.metrics.randomization import spearman
from vit_demo.trace import OwnViT, TracedViT

Network = Callable[..., TracedViT]


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("batch_tokens", [1, 40, 8192])
def test_occlusion_is_the_loss_when_no_token_may_attend_to_a_window(
    network: Network, explicit, monkeypatch: pytest.MonkeyPatch, window: int, batch_tokens: int
) -> None:
    monkeypatch.setattr("vit_demo.methods.subsets.BATCH_TOKENS", batch_tokens)
    model, images, reported = network(num_registers=1), torch.randn(1, 3, 16, 20), []
    found = occlusion(model, images, 3, window=window, progress=lambda *counts: reported.append(counts))
    whole = explicit(model, images).logits.log_softmax(1)[0, 3]
    radius = window // 2
    for row in range(4):
        for col in range(5):
            hidden = [
                2 + r * 5 + c
                for r in range(max(0, row - radius), min(4, row + radius + 1))
                for c in range(max(0, col - radius), min(5, col + radius + 1))
            ]
            left = explicit(model, images, hidden=hidden).logits.log_softmax(1)[0, 3]
            assert float(found[0, row, col]) == pytest.approx(float((whole - left).detach()), abs=1e-5)
    assert reported[-1] == (20, 20) and [done for done, _ in reported] == sorted(done for done, _ in reported)


def test_occlusion_of_kept_patches_and_invalid_windows(network: Network, explicit) -> None:
    model, images, kept_patches = network(), torch.randn(1, 3, 16, 16), torch.tensor([[1, 6, 12]])
    found = occlusion(model, images, 0, kept_patches=kept_patches)
    gone = [1 + i for i in range(16) if i not in kept_patches]
    whole = explicit(model, images, hidden=gone).logits.log_softmax(1)[0, 0]
    left = explicit(model, images, hidden=[*gone, 7]).logits.log_softmax(1)[0, 0]
    assert float(found[0, 1, 2]) == pytest.approx(float((whole - left).detach()), abs=1e-5)
    assert found.flatten().nonzero()[:, 0].tolist() == [1, 6, 12]
    for window in (2, 0, -1):
        with pytest.raises(ValueError, match="odd"):
            occlusion(model, images, 0, window=window)
    with pytest.raises(ValueError, match="leaves nothing"):
        occlusion(model, images, 0, window=9)


class Planted(OwnViT):
    """Says log p(class 1) = a sum over the patches that are there, of weights hidden in the image."""

    def forward(self, images: Tensor, trace=None, *, patch_size=None, kept_patches=None) -> Tensor:
        importance = images.unfold(2, 4, 4).unfold(3, 4, 4).mean((1, 4, 5)).flatten(1)  # [B, 16]
        log_p = importance.gather(1, kept_patches).sum(1) - 10
        return torch.stack([torch.log1p(-log_p.exp()), log_p], dim=1)


def test_local_surrogate_recovers_a_planted_order(network: Network) -> None:
    model = Planted(network(num_classes=2).module)
    importance = torch.linspace(-1, 1, 16)[torch.randperm(16)].reshape(4, 4)
    images = importance.repeat_interleave(4, 0).repeat_interleave(4, 1).expand(1, 3, 16, 16)
    found = local_surrogate(model, images, 1, budget=200, with_hint=False)[0]
    assert spearman(found, importance) > 0.98
    kept_patches = torch.tensor([[0, 2, 3, 7, 8, 9, 13, 15]])
    some = local_surrogate(model, images, 1, budget=200, with_hint=False, kept_patches=kept_patches)[0].flatten()
    assert spearman(some[kept_patches[0]], importance.flatten()[kept_patches[0]]) > 0.98
    assert some.count_nonzero() == 8


def test_the_score_rises_with_the_probability_and_stays_finite_at_its_ends() -> None:
    log_p = torch.tensor([-200.0, -9.0, -2.0, -0.7, -0.01, -1e-12, 0.0])
    score = class_score(log_p)
    assert score.isfinite().all() and (score.diff() >= 0).all() and (score[:5].diff() > 0).all()
    p = log_p[1:5].exp()
    roots, odds = p.sqrt(), (p / (1 - p)).log()
    expected = roots / roots.std() + odds / odds.std()
    torch.testing.assert_close(class_score(log_p[1:5]), expected / expected.std())
    assert class_score(torch.full((5,), -3.0)).std() == 0


def grid_places(side: int) -> torch.Tensor:
    return torch.cartesian_prod(torch.arange(side), torch.arange(side)) / side


def test_the_posterior_mean_equals_the_formula_for_the_hyperparameters_of_most_evidence() -> None:
    """Against the textbook's formulas with explicit inverses and determinants, constants integrated out by hand."""
    generator = torch.Generator().manual_seed(1)
    places, hints = grid_places(4).double(), 0.2 * torch.randn(2, 16, generator=generator).double()
    present = (torch.rand(40, 16, generator=generator) < 0.4).double()
    group = torch.arange(40) % 2
    scores = present @ (5 * hints[0] + 0.3 * torch.randn(16, generator=generator)) + 3.0 * group
    scores = scores + 0.3 * torch.randn(40, generator=generator)
    found = posterior_mean(present.float(), scores.float(), group, places.float(), hints.float())
    constants = torch.nn.functional.one_hot(group).double()
    basis = torch.linalg.svd(constants)[0][:, 2:].T  # [38, 40]: all directions in which no constant can be seen
    x, y = basis @ present, basis @ scores
    hints = (hints - hints.mean(1, keepdim=True)) / hints.std(1, correction=0, keepdim=True)
    best = (-float("inf"), torch.zeros(16))
    for length_scale in (1 / 28, 1 / 14, 1 / 7):
        smooth = torch.exp(-(torch.cdist(places, places) ** 2) / (2 * length_scale**2))
        for prior in (smooth, smooth + hints.T @ hints):
            for noise in torch.linalg.eigvalsh(x @ prior @ x.T).max() * torch.logspace(-5, 1, 25).double():
                covariance = x @ prior @ x.T + noise * torch.eye(38)
                scale = y @ torch.linalg.inv(covariance) @ y / 38
                likelihood = torch.distributions.MultivariateNormal(torch.zeros(38).double(), scale * covariance)
                evidence = float(likelihood.log_prob(y))
                if evidence > best[0]:
                    best = (evidence, prior @ x.T @ torch.linalg.inv(covariance) @ y)
    torch.testing.assert_close(found, best[1].float(), atol=1e-4, rtol=1e-4)


def test_the_evidence_weighs_levels_of_noise_as_the_likelihood_does() -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(30, 12, generator=generator).double()
    covariance, scores = x @ x.T, torch.randn(30, generator=generator).double()
    centring = torch.eye(30).double() - 1 / 30  # one constant: 29 degrees of freedom
    values, vectors = torch.linalg.eigh(centring @ covariance @ centring)
    noises = torch.tensor([1e-3, 0.1, 1.0, 30.0]).double()
    found = log_evidence(values.clamp(min=0), vectors.T @ centring @ scores, noises, 29)
    basis = torch.linalg.svd(torch.ones(30, 1).double())[0][:, 1:].T  # [29, 30]: all directions but the constant
    expected = []
    for noise in noises:
        seen = basis @ covariance @ basis.T + noise * torch.eye(29)
        y = basis @ scores
        scale = y @ torch.linalg.solve(seen, y) / 29
        likelihood = torch.distributions.MultivariateNormal(torch.zeros(29).double(), scale * seen)
        expected.append(float(likelihood.log_prob(y)))
    expected = torch.tensor(expected).double()
    torch.testing.assert_close(found - found[0], expected - expected[0], atol=1e-6, rtol=1e-6)


def test_noise_is_not_attributed_and_a_true_hint_is_used() -> None:
    generator = torch.Generator().manual_seed(2)
    places, attributions = grid_places(10), torch.randn(100, generator=generator)
    present = random_subsets(100, 80, 0.25, seed=2).float()
    noise, group = torch.randn(80, generator=generator), torch.zeros(80, dtype=torch.long)
    least_squares = torch.linalg.lstsq(present - present.mean(0), (noise - noise.mean())[:, None], driver="gelsd")
    found = posterior_mean(present, noise, group, places, torch.empty(0, 100))
    assert found.norm() < 0.5 * least_squares.solution.norm()
    torch.testing.assert_close(posterior_mean(present, 0 * noise, group, places, attributions[None]), 0 * attributions)
    scores = present @ attributions + 0.1 * noise
    without, hinted, misled = (
        torch.corrcoef(torch.stack([posterior_mean(present, scores, group, places, hint), attributions]))[0, 1]
        for hint in (torch.empty(0, 100), attributions[None], torch.randn(1, 100, generator=generator))
    )
    assert hinted > 0.98 > without > 0.5 and misled > without - 0.1


def test_subsets_have_one_size_and_follow_their_seed() -> None:
    chosen = random_subsets(30, 500, 0.25, seed=3)
    assert chosen.shape == (500, 30) and chosen.sum(1).tolist() == [8] * 500
    assert torch.equal(chosen, random_subsets(30, 500, 0.25, seed=3))
    assert not torch.equal(chosen, random_subsets(30, 500, 0.25, seed=4))
    counts = chosen.sum(0)
    assert counts.min() > 80 and counts.max() < 190  # 133 each on average
    assert random_subsets(2, 5, 0.25, seed=0).sum(1).tolist() == [1] * 5


def test_local_surrogate_scores_quarters_and_halves_and_uses_a_hint(network: Network, monkeypatch) -> None:
    model, images, reported, given = network(), torch.randn(1, 3, 16, 16), [], []
    kept_patches = torch.tensor([[0, 2, 3, 5, 7, 8, 13, 15]])

    def remember(*arguments: torch.Tensor) -> torch.Tensor:
        given.append(arguments)
        return posterior_mean(*arguments)

    monkeypatch.setattr(sys.modules[local_surrogate.__module__], "posterior_mean", remember)
    options = {"budget": 51, "kept_patches": kept_patches}
    found = local_surrogate(model, images, 2, **options, progress=lambda *counts: reported.append(counts))
    assert reported == [(17, 51), (51, 51)]  # by size
    present, scores, group, places, hints = given[0]
    assert present.sum(1).tolist() == [2] * 17 + [4] * 34 and group.tolist() == [0] * 17 + [1] * 17 + [2] * 17
    there = [kept_patches[:, row.bool()] for row in present]
    log_p = torch.cat([model(images, kept_patches=patches).log_softmax(1)[:, 2] for patches in there])
    torch.testing.assert_close(scores, class_score(log_p))
    assert (4 * places).tolist() == [[i // 4, i % 4] for i in kept_patches[0].tolist()]
    shares = libra_fullgrad(model, images, 2, kept_patches=kept_patches).flatten()[kept_patches[0]]
    torch.testing.assert_close(hints, ranks(shares)[None])
    importance, hint = posterior_mean(*given[0]).double().numpy(), hints[0].double().numpy()
    expected = importance + importance.std() / 4 * (hint - hint.mean()) / hint.std()
    np.testing.assert_allclose(found.flatten()[kept_patches[0]], expected, atol=1e-5)
    assert torch.equal(found, local_surrogate(model, images, 2, **options))
    local_surrogate(model, images, 2, **options, with_hint=False)
    assert given[2][4].shape == (0, 8)
    with pytest.raises(ValueError, match="too small"):
        local_surrogate(model, images, 2, budget=5)


def test_ties_share_their_mean_rank_and_spearman_equals_the_formula() -> None:
    values = torch.tensor([3.0, 1.0, 3.0, 7.0, -2.0])
    torch.testing.assert_close(ranks(values), torch.tensor([2.5, 1.0, 2.5, 4.0, 0.0]) / 4)
    assert spearman(values, values.exp()) == pytest.approx(1)
    assert spearman(values, -values) == pytest.approx(-1)
    # 1 - 6 sum d^2 / (n (n^2 - 1)), with differences 1, -1, 1, -1, 0
    assert spearman(torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([2.0, 1, 4, 3, 5])) == pytest.approx(1 - 6 * 4 / 120)
    assert spearman(values, torch.ones(5)) == 0
