import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vit_demo.model import ViT, ViTConfig
from vit_demo.training.run import cool
from vit_demo.training.scoring import Score, best_temperature


def random_score(count=400, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Score(
        3 * torch.randn(count, classes, generator=generator),
        torch.randint(classes, (count,), generator=generator),
    )


def test_confusion_counts_as_a_plain_loop_does():
    found = random_score()
    table = np.zeros((5, 5), int)
    for row, label in zip(found.logits.tolist(), found.labels.tolist(), strict=True):
        table[label][row.index(max(row))] += 1
    assert np.array_equal(found.confusion().numpy(), table)
    assert found.accuracy == pytest.approx(np.trace(table) / table.sum())


def test_calibration_error_is_that_of_a_plain_loop():
    found, bins = random_score(), [[] for _ in range(15)]
    for row, label in zip(found.logits.tolist(), found.labels.tolist(), strict=True):
        weights = [math.exp(x) for x in row]
        sure = max(weights) / sum(weights)
        bins[min(14, int(sure * 15))].append((sure, row.index(max(row)) == label))
    expected = sum(abs(sum(s for s, _ in b) - sum(r for _, r in b)) for b in bins) / 400
    assert found.calibration_error() == pytest.approx(expected, abs=1e-6)
    assert sum(count for _, _, count in found.reliability()) == 400


def test_confidence_that_is_deserved_has_no_error_and_boasting_has():
    labels = torch.tensor([0, 0, 0, 1])
    honest = torch.tensor([[math.log(3), 0.0]]).expand(4, 2)  # 75 % sure, and right three times of four
    assert Score(honest, labels).calibration_error() == pytest.approx(0, abs=1e-6)
    assert Score(honest * 20, labels).calibration_error() == pytest.approx(0.25, abs=1e-6)


def test_the_best_temperature_is_the_one_a_search_finds():
    scores = [random_score(seed=1), random_score(seed=2)]
    logits, labels = torch.cat([s.logits for s in scores]), torch.cat([s.labels for s in scores])
    grid = torch.linspace(math.log(0.5), math.log(500), 4000).exp()
    losses = torch.stack([F.cross_entropy(logits / t, labels) for t in grid])
    at_best = F.cross_entropy(logits / best_temperature(scores), labels)
    assert at_best <= losses.min() + 1e-6


def test_cooling_divides_the_logits_and_keeps_every_answer():
    torch.manual_seed(0)
    model = ViT(
        ViTConfig(image_size=28, patch_size=14, in_channels=1, num_classes=5, embed_dim=8, depth=1, num_heads=2)
    ).eval()
    images, labels = torch.randn(64, 1, 28, 28), torch.randint(5, (64,))
    with torch.no_grad():
        before = model(images)
        temperature = cool(model, [Score(before, labels)])
        after = model(images)
    assert abs(temperature - 1) > 0.05
    torch.testing.assert_close(after * temperature, before, atol=1e-4, rtol=1e-4)
