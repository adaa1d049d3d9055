"""Classes that are masked out, however that is written: of the others is said what a network without them says."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_demo
from vit_demo.errors import InputError, PresetError
from vit_demo.methods import METHODS

from .networks import Own, own

pytestmark = pytest.mark.filterwarnings("ignore")
OUT = torch.tensor([False, True, False, False, True])


class Masked(Own):
    def __init__(self, mask: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, images: Tensor) -> Tensor:
        return self.mask(super().forward(images))


MASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "masked_fill": lambda z: z.masked_fill(OUT, float("-inf")),
    "the lowest number": lambda z: z.masked_fill(OUT, torch.finfo(z.dtype).min),
    "-1e9": lambda z: torch.where(OUT, -1e9, z),
    "the logarithm of 0": lambda z: z + (~OUT).to(z).log(),
    "set in place": lambda z: z.clone().index_fill_(1, OUT.nonzero()[:, 0], -torch.inf),
    "a softmax after it": lambda z: z.masked_fill(OUT, float("-inf")).softmax(1),
}


def like(module: nn.Module, other: nn.Module) -> nn.Module:
    other.load_state_dict(module.state_dict(), strict=False)
    return other.eval()


@pytest.mark.parametrize("name", MASKS)
def test_classes_that_are_masked_out_are_left_out(name, images):
    module = like(own(), Masked(MASKS[name]))
    few = like(own(), own())
    few.head = nn.Linear(24, 3)
    with torch.no_grad():
        few.head.weight.copy_(module.head.weight[~OUT])
        few.head.bias.copy_(module.head.bias[~OUT])
        expected = few(images).softmax(1)
    explainer, other = vit_demo.Explainer(module), vit_demo.Explainer(few)
    for number, ex in enumerate(explainer.batch(images)):
        np.testing.assert_allclose(ex.probabilities[~OUT.numpy()], expected[number], atol=1e-6)
        assert not ex.probabilities[OUT.numpy()].any() and np.isfinite(ex.logits).all()
    ex, plain = explainer(images[0]), other(images[0])
    for method in METHODS:
        if METHODS[method].class_specific:
            np.testing.assert_allclose(ex.heatmap(method, 3), plain.heatmap(method, 2), atol=1e-5, rtol=1e-3)
    assert explainer.maps(images, "relevance", 1).eq(0).all(), "nothing speaks for a class that is masked out"
    found, same = ex.faithfulness(label=3, seeds=1), plain.faithfulness(label=2, seeds=1)
    np.testing.assert_allclose(found.deletion, same.deletion, atol=1e-5)
    assert (needed := ex.needed()) is None or not OUT[needed.prediction]


def test_what_else_mixes_tokens_is_seen_beside_a_masked_class():
    class Mixing(Masked):
        def forward(self, images: Tensor) -> Tensor:
            x = self.stem(images).flatten(2).mT + self.place
            for layer in self.layers:
                x = layer(x) + 0.1 * x.roll(1, 1)
            return self.mask(self.head(x.mean(1)))

    for mask in MASKS.values():
        with pytest.raises(PresetError, match="something else mixes"):
            vit_demo.Explainer(like(own(), Mixing(mask)))(torch.randn(3, 32, 32))


@pytest.mark.parametrize(("value", "words"), [(float("nan"), r"not numbers \(NaN\)"), (float("inf"), "infinite")])
def test_what_is_no_number_is_named(value, words, images):
    module = own()
    for output in (None, lambda o: o):
        changed = like(module, Masked(lambda z: z.masked_fill(OUT, value)))
        with pytest.raises(PresetError, match=words):
            vit_demo.Explainer(changed, output=output)(images[0])
    explainer = vit_demo.Explainer(module)
    explainer(images[0])
    with torch.no_grad():
        module.head.bias[1] = value
    with pytest.raises(InputError, match="not a number"):
        explainer(images[0])
