"""What is explained may be a function of the logits: one number for each image, or a sentence says so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import vit_demo
from tests.trace.networks import of_this_package, timm_vit
from tests.trace.test_what_is_read import Dense
from vit_demo.errors import InputError
from vit_demo.methods import METHODS

pytestmark = pytest.mark.filterwarnings("error:This method has no rule")
WRONG: dict[str, Callable[[Tensor], Any]] = {
    "all logits": lambda z: z,
    "a scalar": lambda z: z[:, 3].mean(),
    "a column": lambda z: z[:, 3:4],
    "a row": lambda z: z[:1].mean(1).sum(),
    "an array": lambda z: z[:, 3].detach().numpy(),
    "a number": lambda z: 3.0,
    "nothing": lambda z: None,
    "truth": lambda z: z[:, 3] > 0,
    "a complex number": lambda z: z[:, 3] + 0j,
    "not a number": lambda z: (-z[:, 3].square()).log(),
    "infinity": lambda z: z[:, 3] / 0,
}
WITHOUT_GRADIENT: dict[str, Callable[[Tensor], Any]] = {
    "a constant": lambda z: torch.ones(len(z)),
    "a detached value": lambda z: z[:, 3].detach(),
    "the number of a class": lambda z: z.argmax(1),
    "of something else": lambda z: torch.ones(len(z), requires_grad=True) * 2,
}
NETWORKS = {"ours": of_this_package(), "timm": timm_vit()}
METHOD_NAMES = [name for name, method in METHODS.items() if method.class_specific]


@pytest.mark.parametrize("library", NETWORKS)
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_what_is_no_number_for_each_image_gets_a_sentence(library, method):
    explainer, x = vit_demo.Explainer(NETWORKS[library]()), torch.randn(2, 3, 32, 32)
    ex, cost = explainer(x[0]), METHODS[method].cost
    wrong = WRONG | (WITHOUT_GRADIENT if cost == "backward" or method == "integrated_gradients" else {})
    for name, function in wrong.items():
        for ask in (lambda f=function: explainer.maps(x, method, f), lambda f=function: ex.heatmap(method, f)):
            with pytest.raises(InputError, match=r"a tensor \[B\], one number for each image"):
                ask()
                pytest.fail(name)


def with_the_first(z: Tensor) -> Tensor:
    return torch.cat([z[:1, 3], z[1:, 3] + z[:-1, 3]])


@pytest.mark.parametrize(
    "mix",
    [
        lambda z: z[:, 3] - z[:, 3].mean(),
        lambda z: z[:, 3].sum().expand(2),
        lambda z: z[:, 3].flip(0),
        with_the_first,
        lambda z: (z.softmax(0) * z)[:, 3],
    ],
)
def test_a_function_of_several_images_at_once_gets_a_sentence(mix):
    explainer = vit_demo.Explainer(timm_vit()())
    with pytest.raises(InputError, match="one number for each image, of its own logits"):
        explainer.maps(torch.randn(2, 3, 32, 32), "relevance", mix)


def test_so_of_a_gradient_and_of_curves():
    ex = vit_demo.Explainer(timm_vit()())(torch.randn(3, 32, 32))
    for function in [*WRONG.values(), *WITHOUT_GRADIENT.values()]:
        with pytest.raises(InputError, match="one number for each image"):
            ex.gradient(function)
    for function in WRONG.values():
        with pytest.raises(InputError, match="one number for each image"):
            ex.faithfulness(np.zeros((4, 4)), label=function)
    assert ex.faithfulness(np.zeros((4, 4)), label=lambda z: (z.argmax(1) == 3).float()).measured == "function"


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_functions_that_say_the_same_give_the_same_map(method):
    explainer, x = vit_demo.Explainer(timm_vit()()), torch.randn(2, 3, 32, 32)
    one = explainer.maps(x, method, lambda z: z[:, 3])
    for same in (
        lambda z: z @ torch.eye(z.shape[1])[3],
        lambda z: z.gather(1, torch.full((len(z), 1), 3))[:, 0],
        lambda z: z.log_softmax(1)[:, 3] + z.logsumexp(1),  # through what no rule covers
    ):
        torch.testing.assert_close(explainer.maps(x, method, same), one, atol=1e-5, rtol=1e-3)


RESIZES: dict[str, Callable[[Tensor], Tensor]] = {
    "bilinear": lambda x: F.interpolate(x, scale_factor=8, mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=8, mode="bicubic"),
    "nearest": lambda x: F.interpolate(x, scale_factor=8, mode="nearest"),
    "antialiased": lambda x: F.interpolate(x, size=(6, 6), mode="bilinear", antialias=True),
    "an adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (3, 3)),
    "trilinear": lambda x: F.interpolate(x[:, :, None], scale_factor=(1, 2, 2), mode="trilinear")[:, :, 0],
    "pixels moved out of channels": lambda x: F.pixel_shuffle(x.repeat_interleave(4, 1), 2),
    "and into them": lambda x: F.pixel_unshuffle(x, 2)[:, ::4],
    "channels in another order": lambda x: F.channel_shuffle(x.repeat(1, 2, 1, 1), 2)[:, :5],
    "sampled": lambda x: F.grid_sample(
        x,
        F.affine_grid(torch.eye(2, 3).expand(len(x), -1, -1), [len(x), 5, 8, 8], align_corners=False),
        align_corners=False,
    ),
    "reflected": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "repeated at the edges": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "unfolded and folded": lambda x: F.fold(F.unfold(x, 2, stride=2), (4, 4), 2, stride=2),
    "the largest of four": lambda x: F.max_pool2d(x, 2),
    "turned": lambda x: x.rot90(1, (2, 3)),
    "waves": lambda x: torch.fft.irfft2(torch.fft.rfft2(x)[..., :2], s=(4, 4)),
}


@pytest.mark.parametrize("method", ["libra_fullgrad", "attnlrp"])
@pytest.mark.parametrize("name", RESIZES)
def test_no_rule_is_missing_where_a_dense_head_resizes(name, method):
    module, x = Dense(RESIZES[name]).eval(), torch.randn(1, 3, 32, 32)
    values = vit_demo.Explainer(module, output=lambda o: o.mean((2, 3))).maps(x, method, lambda z: z.softmax(1)[:, 2])
    assert values.any()
