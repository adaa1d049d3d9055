"""Why one class rather than another: the same methods, about the difference of two scores."""

from collections.abc import Callable

import pytest
import torch

from tests.trace.networks import own
from vit_demo.methods import METHODS, relevance
from vit_demo.metrics import faithfulness
from vit_demo.trace import TracedViT, adapt

Network = Callable[..., TracedViT]

CLASS_SPECIFIC = [name for name, method in METHODS.items() if method.class_specific]
LINEAR = ["attnlrp", "integrated_gradients", "libra_fullgrad", "occlusion"]
"""In the score, so that the map of a difference is the difference of the maps; the others take positive parts."""


@pytest.fixture(params=["ours", "adapted"])
def model(request, network: Network):
    return network() if request.param == "ours" else adapt(own(), 32)


@pytest.fixture
def images(model) -> torch.Tensor:
    return torch.randn(1, 3, model.config.image_size, model.config.image_size)


@pytest.mark.parametrize("name", CLASS_SPECIFIC)
def test_every_class_specific_method_compares_two_classes(model, images, name: str) -> None:
    method = METHODS[name]
    assert method.compares_classes
    found, alone = method.compute(model, images, 3, against=1), method.compute(model, images, 3)
    other = method.compute(model, images, 3, against=0)
    for one in (alone, other):
        assert found.shape == one.shape and (found - one).abs().max() > 0.01 * found.abs().max()


@pytest.mark.parametrize("name", LINEAR)
def test_the_map_of_a_difference_is_the_difference_of_the_maps(model, images, name: str) -> None:
    first, second = (METHODS[name].compute(model, images, target) for target in (3, 1))
    found = METHODS[name].compute(model, images, 3, against=1)
    torch.testing.assert_close(found, first - second, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(METHODS[name].compute(model, images, 1, against=3), -found, atol=1e-5, rtol=1e-4)


def test_relevance_is_that_of_a_network_whose_only_class_is_the_difference(network: Network) -> None:
    model, images = network(), torch.randn(2, 3, 16, 16)
    found = relevance(model, images, torch.tensor([3, 0]), against=torch.tensor([1, 2]))
    for sample, (one, other) in enumerate([(3, 1), (0, 2)]):
        single = network(num_classes=1)
        single.load_state_dict({n: x for n, x in model.state_dict().items() if "head" not in n}, strict=False)
        single.head.weight.copy_(model.head.weight[one] - model.head.weight[other])
        expected = relevance(single, images[sample : sample + 1], 0)
        torch.testing.assert_close(found[sample : sample + 1], expected, atol=1e-5, rtol=1e-4)


def test_faithfulness_measures_the_difference_of_logits(network: Network) -> None:
    model, images, values = network(), torch.randn(1, 3, 16, 16), torch.randn(4, 4)
    found = faithfulness(model, images, 3, values, torch.zeros(1), against=1, steps=4, seeds=1)
    order = values.flatten().argsort(descending=True)
    for step, count in enumerate((0, 4, 8, 12, 16)):
        deleted = images.clone()
        for place in order[:count].tolist():
            row, col = divmod(place, 4)
            deleted[..., 4 * row : 4 * row + 4, 4 * col : 4 * col + 4] = 0
        logits = model(deleted)[0]
        assert found.deletion[step] == pytest.approx(float(logits[3] - logits[1]), abs=1e-5)
    swapped = faithfulness(model, images, 1, values, torch.zeros(1), against=3, steps=4, seeds=1)
    assert swapped.insertion_area == pytest.approx(-found.insertion_area, abs=1e-5)
    assert swapped.random_deletion_area == pytest.approx(-found.random_deletion_area, abs=1e-5)
