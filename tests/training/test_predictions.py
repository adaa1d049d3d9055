import math

import numpy as np
import pytest
import torch

from vit_demo.training.predictions import Predictions


def random_predictions(count=400, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Predictions(
        3 * torch.randn(count, classes, generator=generator),
        torch.randint(classes, (count,), generator=generator),
    )


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
