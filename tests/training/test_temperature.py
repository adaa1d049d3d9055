import math

import pytest
import torch
import torch.nn.functional as F

from vit_demo.model import ViT, ViTConfig
from vit_demo.training.data import ImageDataset, concat_datasets
from vit_demo.training.predictions import Predictions
from vit_demo.training.temperature import apply_temperature, fit_temperature


def random_predictions(count, scale, seed=0, classes=5) -> Predictions:
    """Labels drawn from the softmax of logits that are then multiplied: the best temperature is near ``scale``."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, classes, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    return Predictions(scale * logits, labels)


def best_on_grid(groups) -> float:
    """The temperature of the lowest mean loss over groups, by exhaustive search."""
    grid = torch.linspace(math.log(0.2), math.log(20), 4000).exp().tolist()
    losses = [sum(F.cross_entropy(logits / t, labels).item() for logits, labels in groups) / len(groups) for t in grid]
    return grid[losses.index(min(losses))]


def test_the_temperature_is_the_one_an_exhaustive_search_finds():
    found = [random_predictions(400, 3.0, seed) for seed in (1, 2)]
    assert fit_temperature(found) == pytest.approx(best_on_grid([(f.logits, f.labels) for f in found]), rel=3e-3)


def test_each_source_counts_equally_however_many_images_it_has():
    large, small = random_predictions(4000, 4.0), random_predictions(100, 0.5, seed=1)
    sources = torch.cat([torch.zeros(4000), torch.ones(100)]).long()
    logits, labels = torch.cat([large.logits, small.logits]), torch.cat([large.labels, small.labels])
    shuffled = torch.randperm(4100, generator=torch.Generator().manual_seed(0))
    found = fit_temperature([Predictions(logits[shuffled], labels[shuffled], sources[shuffled])])
    assert found == pytest.approx(best_on_grid([(p.logits, p.labels) for p in (large, small)]), rel=3e-3)
    pooled = fit_temperature([Predictions(logits, labels)])
    assert abs(pooled - found) > 0.1, "the large source would decide alone"


def test_concatenated_datasets_number_their_sources():
    def images(count):
        return ImageDataset(torch.zeros(count, 1, 2, 2, dtype=torch.uint8), torch.zeros(count).long(), ("a",))

    assert images(3).sources is None and concat_datasets([images(3)]).sources is None
    both = concat_datasets([images(2), images(3)])
    assert both.sources.tolist() == [0, 0, 1, 1, 1]
    assert concat_datasets([both, images(0), images(1)]).sources.tolist() == [0, 0, 1, 1, 1, 2]
    assert both.subset(torch.tensor([4, 0])).sources.tolist() == [1, 0]
    assert both.digest == concat_datasets([images(5)]).digest, "sources change nothing for training"


def test_applying_a_temperature_divides_the_logits():
    torch.manual_seed(0)
    model = ViT(
        ViTConfig(image_size=28, patch_size=14, in_channels=1, num_classes=5, embed_dim=8, depth=1, num_heads=2)
    ).eval()
    torch.nn.init.normal_(model.head.bias)
    images = torch.randn(64, 1, 28, 28)
    with torch.no_grad():
        before = model(images)
        apply_temperature(model, 2.5)
        torch.testing.assert_close(model(images) * 2.5, before, atol=1e-4, rtol=1e-4)
