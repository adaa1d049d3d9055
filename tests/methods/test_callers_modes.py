"""Whatever mode a caller or a network is in (``inference_mode``, ``no_grad``), every number is the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_demo
from tests.trace.networks import Own, own, timm_vit
from vit_demo.errors import PresetError
from vit_demo.inference.exploration import Exploration
from vit_demo.methods import METHODS

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
MODES = {"inference_mode": torch.inference_mode, "no_grad": torch.no_grad}
ASKED: dict[str, Callable[[Exploration], Any]] = {
    "gradient": lambda ex: ex.gradient(3),
    "randomization": lambda ex: ex.randomization("relevance", 3),
    "randomization of another method": lambda ex: ex.randomization("libra_fullgrad", 3),
    "faithfulness": lambda ex: ex.faithfulness("relevance", label=3, seeds=1).deletion,
    "tokens": lambda ex: ex.tokens(),
    "contributions": lambda ex: ex.contributions(3).heads,
    "effects of heads": lambda ex: ex.head_effects(3),
    "lens": lambda ex: [one[0][1] for one in ex.logit_lens()],
} | {name: lambda ex, name=name: ex.heatmap(name) for name in METHODS}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [own, timm_vit()], ids=["own", "timm"])
def test_a_caller_may_be_in_any_mode(make, mode):
    module = make()
    plain = vit_demo.Explainer(module)(X[0])
    with MODES[mode]():
        inside = vit_demo.Explainer(module)(X[0].clone())
        for name, ask in ASKED.items():
            expected = ask(plain)  # a result from outside, used inside, and the other way round
            np.testing.assert_allclose(ask(inside), expected, atol=1e-5, rtol=1e-4, err_msg=name)
        maps = {name: vit_demo.Explainer(module).maps(X.clone(), name) for name in METHODS}
    for name, ask in ASKED.items():
        np.testing.assert_allclose(ask(inside), ask(plain), atol=1e-5, rtol=1e-4, err_msg=name)
    for name, values in maps.items():
        torch.testing.assert_close(values.clone(), vit_demo.Explainer(module).maps(X, name))


class Probe(nn.Module):
    """A linear probe: a frozen backbone, and a head of its own."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.backbone, self.head, self.kind = timm_vit(num_classes=0)(), nn.Linear(24, 5), kind
        self.decorated = torch.no_grad()(self.backbone.forward)

    def forward(self, images: Tensor) -> Tensor:
        if self.kind == "plain":
            return self.head(self.backbone(images))
        if self.kind == "decorated":
            return self.head(self.decorated(images))
        if self.kind == "set_grad_enabled":
            with torch.set_grad_enabled(False):
                return self.head(self.backbone(images))
        if self.kind == "set and set back":
            torch.set_grad_enabled(False)
            x = self.backbone(images)
            torch.set_grad_enabled(True)
            return self.head(x)
        if self.kind == "detach":
            return self.head(self.backbone(images).detach())
        if self.kind == "detached tokens":
            return self.head(self.backbone.forward_head(torch.detach(self.backbone.forward_features(images))))
        if self.kind == "data":
            return self.head(self.backbone(images).data)
        with torch.inference_mode() if self.kind == "inference_mode" else torch.no_grad():
            x = self.backbone.forward_features(images)
            x = x[:, 0] if self.kind == "tokens" else self.backbone.forward_head(x)
        return self.head(x)


@pytest.fixture(scope="module")
def expected():
    """The maps of a probe whose backbone is not frozen, and its gradient."""
    explainer = vit_demo.Explainer(Probe("plain").eval())
    return {name: explainer.maps(X, name) for name in METHODS}, explainer(X[0]).gradient(3)


@pytest.mark.parametrize("freezes", [False, True])
@pytest.mark.parametrize(
    "kind",
    ["no_grad", "decorated", "set_grad_enabled", "set and set back", "tokens", "detach", "detached tokens", "data"],
)
def test_a_frozen_backbone_is_explained_as_if_it_were_not(kind, freezes, expected):
    frozen, (maps, gradient) = Probe(kind).eval(), expected
    if freezes:
        frozen.requires_grad_(False)
    explainer = vit_demo.Explainer(frozen)
    for name in METHODS:
        torch.testing.assert_close(explainer.maps(X, name), maps[name], atol=1e-6, rtol=1e-4)
    np.testing.assert_allclose(explainer(X[0]).gradient(3), gradient, atol=1e-6, rtol=1e-4)
    if not freezes and kind != "set_grad_enabled":  # and a training step leaves the backbone as it was
        frozen(X).sum().backward()
        assert frozen.head.weight.grad is not None
        assert all(parameter.grad is None for parameter in frozen.backbone.parameters())


def test_gradients_that_a_network_stops_on_purpose_stay_stopped():
    class Stopped(Own):
        def forward(self, images: Tensor) -> Tensor:
            x = self.stem(images).flatten(2).mT + self.place
            for layer in self.layers:
                with torch.no_grad():
                    scale = x.norm(dim=2, keepdim=True)
                x = layer(x / scale)
            return self.head(x.mean(1))

    module, x = Stopped().eval(), X[:1].clone().requires_grad_()
    (expected,) = torch.autograd.grad(module(x)[0, 3], x)
    np.testing.assert_allclose(vit_demo.Explainer(module)(X[0]).gradient(3), expected[0], atol=1e-7)


def test_a_backbone_in_inference_mode_is_refused_by_its_name():
    with pytest.raises(PresetError, match=r"torch\.inference_mode"):
        vit_demo.Explainer(Probe("inference_mode").eval())(X[0])
