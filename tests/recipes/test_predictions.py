import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from recipes.predictions import Predictions, fit_temperature


def test_confusion_counts_as_a_plain_loop_does():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(5, (400,), generator=generator)
    found = Predictions(3 * torch.randn(400, 5, generator=generator), labels)
    table = np.zeros((5, 5), int)
    for row, label in zip(found.logits.tolist(), found.labels.tolist(), strict=True):
        table[label][row.index(max(row))] += 1
    assert np.array_equal(found.confusion_matrix().numpy(), table)
    assert found.accuracy == pytest.approx(np.trace(table) / table.sum())


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
