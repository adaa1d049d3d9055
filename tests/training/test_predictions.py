import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vit_demo.training.predictions import Predictions, fit_temperature


def random_predictions(count=400, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Predictions(
        3 * torch.randn(count, classes, generator=generator),
        torch.randint(classes, (count,), generator=generator),
    )


def test_confusion_counts_as_a_plain_loop_does():
    found = random_predictions()
    table = np.zeros((5, 5), int)
    for row, label in zip(found.logits.tolist(), found.labels.tolist(), strict=True):
        table[label][row.index(max(row))] += 1
    assert np.array_equal(found.confusion_matrix().numpy(), table)
    assert found.accuracy == pytest.approx(np.trace(table) / table.sum())


def test_calibration_error_is_that_of_a_plain_loop():
    found, bins = random_predictions(), [[] for _ in range(15)]
    for row, label in zip(found.logits.tolist(), found.labels.tolist(), strict=True):
        weights = [math.exp(x) for x in row]
        sure = max(weights) / sum(weights)
        bins[min(14, int(sure * 15))].append((sure, row.index(max(row)) == label))
    expected = sum(abs(sum(s for s, _ in b) - sum(r for _, r in b)) for b in bins) / 400
    assert found.calibration_error() == pytest.approx(expected, abs=1e-6)
    assert sum(count for _, _, count in found.reliability()) == 400


def test_perfect_calibration_has_no_error_and_overconfidence_has():
    labels = torch.tensor([0, 0, 0, 1])
    calibrated = torch.tensor([[math.log(3), 0.0]]).expand(4, 2)  # 75 % confidence, three of four correct
    assert Predictions(calibrated, labels).calibration_error() == pytest.approx(0, abs=1e-6)
    assert Predictions(calibrated * 20, labels).calibration_error() == pytest.approx(0.25, abs=1e-6)


def test_the_sampling_error_is_that_of_predictions_which_are_right_as_often_as_they_say():
    many, few = random_predictions(), random_predictions(count=50)
    draws, errors = np.random.RandomState(1), []
    for _ in range(100):
        sure = few.confidence.numpy()
        right, bins = draws.rand(50) < sure, np.minimum(14, (15 * sure).astype(int))
        errors.append(sum(abs(np.sum((sure - right)[bins == b])) for b in range(15)) / 50)
    assert few.sampling_error() == pytest.approx(np.mean(errors), rel=0.1)
    assert many.sampling_error() < 0.6 * few.sampling_error()
    certain = Predictions(torch.tensor([[50.0, 0.0]]).expand(4, 2), torch.zeros(4, dtype=torch.int64))
    assert certain.sampling_error() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_is_the_one_an_exhaustive_search_finds(weighted):
    """With weights, a small set counts as much as a large one."""
    large, small = overconfident(4000, 4.0), overconfident(100, 0.5, seed=1)
    logits, labels = torch.cat([large.logits, small.logits]), torch.cat([large.labels, small.labels])
    weights = torch.cat([torch.full((4000,), 1 / 4000), torch.full((100,), 1 / 100)]) if weighted else None
    found = fit_temperature([Predictions(logits, labels, weights)])
    grid = torch.linspace(math.log(0.2), math.log(20), 4000).exp().tolist()
    losses = [[F.cross_entropy(p.logits / t, p.labels).item() for p in (large, small)] for t in grid]
    shares = (0.5, 0.5) if weighted else (4000 / 4100, 100 / 4100)
    means = [sum(share * loss for share, loss in zip(shares, pair, strict=True)) for pair in losses]
    assert found == pytest.approx(grid[means.index(min(means))], rel=3e-3)


def overconfident(count, scale, seed=0) -> Predictions:
    """Labels drawn from the softmax of logits that are then multiplied: the best temperature is near ``scale``."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, 5, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    return Predictions(scale * logits, labels)
