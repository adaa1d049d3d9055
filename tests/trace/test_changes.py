"""What was proved of a network is proved again when it changes, and not when only its weights have other values."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle

import vit_demo
from benchmarks.explicit import Explicit
from vit_demo.errors import PresetError
from vit_demo.trace import adapt, adapter
from vit_demo.trace.changes import Changes

from .networks import Own, own, randomize, timm_vit

pytestmark = pytest.mark.filterwarnings("ignore")


class Choosing(Own):
    """A network whose attributes say what its head reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.config = "mean", type("Config", (), {})()
        self.config.last = 16
        self.read: Callable[[Tensor], Tensor] = lambda x: x

    def picked(self, x: Tensor) -> Tensor:
        return x

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        x = self.picked(self.read(x)[:, : self.config.last])
        return self.head(x.mean(1) if self.reads == "mean" else x[:, 0])


class Placed(Choosing):
    """A network that reads the tokens at places that it keeps, in one way or another."""

    COUNT = 16
    LAST = {"of": [{"all": [16]}]}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.nested = {"of": [{"all": [16]}]}
        self.register_buffer("places", torch.arange(16))
        self.register_buffer("is_read", torch.ones(16, dtype=torch.bool))
        self.register_buffer("last", torch.tensor(16))

    def picked(self, x: Tensor) -> Tensor:
        last = min(self.nested["of"][0]["all"][0], self.COUNT, self.LAST["of"][0]["all"][0], int(self.last))
        return x[:, self.places][:, self.is_read][:, :last]


def set_data(x: Tensor, value: Tensor) -> None:
    x.data.copy_(value)


PLACES: dict[str, Callable[[Placed], object]] = {
    "a list in a list": lambda module: module.nested["of"][0]["all"].__setitem__(0, 8),
    "a value of its class": lambda module: setattr(type(module), "COUNT", 8),
    "a list of its class": lambda module: module.LAST["of"][0]["all"].__setitem__(0, 8),
    "indices": lambda module: module.places.copy_(torch.arange(16) % 8),
    "indices, as data": lambda module: set_data(module.places, torch.arange(16) % 8),
    "a mask": lambda module: module.is_read.copy_(HALF),
    "a number": lambda module: module.last.fill_(8),
    "loaded": lambda module: module.load_state_dict(module.state_dict() | {"places": torch.arange(16) % 8}),
}


@pytest.mark.parametrize("name", PLACES)
def test_where_tokens_are_read_is_seen_however_it_is_kept(name, images, monkeypatch):
    monkeypatch.setattr(Placed, "COUNT", 16)
    monkeypatch.setattr(Placed, "LAST", {"of": [{"all": [16]}]})
    torch.manual_seed(0)
    module = Placed().eval()
    explainer = vit_demo.Explainer(module)
    explainer.maps(images[:1], "relevance", 3)
    PLACES[name](module)
    found, expected = explainer.maps(images[:1], "relevance", 3), relevance_by_hand(module, images[:1], HALF / 8)
    torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=1e-3)


class First(Choosing):
    def forward(self, images: Tensor) -> Tensor:
        self.reads = "first"
        return super().forward(images)


def relevance_by_hand(module: nn.Module, images: Tensor, shares: Tensor) -> Tensor:
    with Explicit() as seen:
        score = module(images.clone().requires_grad_())[0, 3]
    return seen.relevance(score, shares[None])[0]


def choose(module: Choosing, **values: object) -> None:
    for name, value in values.items():
        setattr(module, name, value)


FIRST, HALF = torch.eye(16)[0], torch.arange(16) < 8
CHANGES: dict[str, tuple[Callable[[Choosing], object], Tensor]] = {
    "an attribute": (lambda module: choose(module, reads="first"), FIRST),
    "a value of its config": (lambda module: setattr(module.config, "last", 8), HALF / 8),
    "a function": (lambda module: choose(module, read=lambda x: x[:, :8]), HALF / 8),
    "its class": (lambda module: choose(module, __class__=First), FIRST),
    "a hook before the head": (
        lambda module: module.head.register_forward_pre_hook(lambda _, args: (args[0] * 2,)), torch.ones(16) / 16
    ),
    "a module": (lambda module: module.layers.append(Own.Layer()), torch.ones(16) / 16),
}  # fmt: skip


def test_another_function_of_its_class_is_seen(images, monkeypatch):
    module = Choosing().eval()
    vit_demo.Explainer(module).maps(images, "relevance", 3)
    monkeypatch.setattr(Choosing, "picked", lambda _, x: x[:, :8])
    found = vit_demo.Explainer(module).maps(images[:1], "relevance", 3)
    expected = relevance_by_hand(module, images[:1], HALF / 8)
    torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=1e-3)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_after_the_first_look_is_seen(name, images):
    torch.manual_seed(0)
    module, (change, shares) = Choosing().eval(), CHANGES[name]
    explainer = vit_demo.Explainer(module)
    ex, first = explainer(images[0]), explainer.maps(images[:1], "relevance", 3)
    torch.testing.assert_close(
        first.flatten(), relevance_by_hand(module, images[:1], torch.ones(16) / 16), atol=1e-6, rtol=1e-3
    )
    change(module)
    expected = relevance_by_hand(module, images[:1], shares)
    for found in (
        explainer.maps(images[:1], "relevance", 3)[0],
        vit_demo.Explainer(module).maps(images[:1], "relevance", 3)[0],
        torch.from_numpy(np.asarray(ex.relevance(3))),
    ):
        torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=1e-3)


def test_timm_with_another_pool_is_as_if_it_had_been_made_so(images):
    module, other = timm_vit(fc_norm=False)(), timm_vit(fc_norm=False, global_pool="avg")()
    other.load_state_dict(module.state_dict())
    vit_demo.Explainer(module).maps(images, "relevance", 3)
    module.global_pool = "avg"
    found, expected = (vit_demo.Explainer(one).maps(images, "relevance", 3) for one in (module, other))
    torch.testing.assert_close(found, expected)


def on_all_modules(module: nn.Module, mix: Callable[..., Tensor]) -> RemovableHandle:
    return register_module_forward_hook(lambda one, _, x: mix(one, _, x) if one is module else None)


@pytest.mark.parametrize("add", [nn.Module.register_forward_hook, on_all_modules])
def test_a_hook_that_mixes_tokens_is_refused(add, images):
    module = own()
    vit_demo.Explainer(module).maps(images, "relevance", 3)
    handle = add(module.layers[1], lambda _, __, x: x + 0.1 * x.roll(1, 1))
    with pytest.raises(PresetError, match="something else mixes"):
        vit_demo.Explainer(module).maps(images, "relevance", 3)
    handle.remove()
    vit_demo.Explainer(module).maps(images, "relevance", 3)


class Untaught(Own):
    """A network whose mean has weights, and whose attention a gate, that are as if there were none until it is taught.

    ``kind`` says what they are: "a parameter", "a buffer" or "an attribute".
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        for name, value in (("share", torch.ones(16) / 16), ("gate", torch.ones(24)), ("mixes", torch.zeros(()))):
            self.keep(name, value)
        for layer in self.layers:
            layer.out = nn.Sequential(layer.out, Gate(self))

    def keep(self, name: str, value: Tensor) -> None:
        if self.kind == "a parameter":
            setattr(self, name, nn.Parameter(value))
        elif self.kind == "a buffer":
            self.register_buffer(name, value)
        else:
            setattr(self, name, value)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).mT + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head((x * self.share[:, None]).sum(1))


class Gate(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.of = lambda: module

    def forward(self, x: Tensor) -> Tensor:
        return x * self.of().gate + self.of().mixes * x.roll(1, 1)


@torch.no_grad()
def in_place(module: Untaught, name: str, value: Tensor) -> None:
    getattr(module, name).copy_(value)


WAYS = {
    "in place": in_place,
    "its data": lambda module, name, value: getattr(module, name).data.copy_(value),
    "as an array": lambda module, name, value: np.copyto(getattr(module, name).detach().numpy(), value),
    "another": Untaught.keep,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["a parameter", "a buffer", "an attribute"])
def test_weights_that_counted_for_nothing_are_seen_once_they_do(way, kind, images):
    torch.manual_seed(0)
    module, share = Untaught(kind).eval(), torch.arange(1, 17) / 136
    explainer = vit_demo.Explainer(module)
    explainer.maps(images[:1], "relevance", 3), explainer(images[0]).contributions(3)
    WAYS[way](module, "share", share)
    found = explainer.maps(images[:1], "relevance", 3)
    expected = relevance_by_hand(module, images[:1], share)
    torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=1e-3)
    WAYS[way](module, "gate", torch.arange(24) / 12)
    with pytest.raises(PresetError, match="adds after attention"):
        explainer(images[0]).heatmap("norm_attention")
    WAYS[way](module, "mixes", torch.tensor(0.1))
    with pytest.raises(PresetError, match="something else mixes"):
        explainer.maps(images[:1], "relevance", 3)


class Counting(Own):
    """A network that changes its attributes whenever it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.seen = 0, list[Tensor]()

    def forward(self, images: Tensor) -> Tensor:
        self.calls, self.seen = self.calls + 1, [images]
        return super().forward(images)


def normalized() -> nn.Module:
    """A network with batch normalization, which counts its steps."""
    module = own()
    module.head = nn.Sequential(nn.BatchNorm1d(24), module.head)
    module.head[0].running_mean.normal_(), module.head[0].running_var.uniform_(0.5, 1)
    return module


@pytest.mark.parametrize("make", [own, Counting, timm_vit(), normalized])
@pytest.mark.parametrize("trains", [True, False])
def test_other_values_of_weights_change_no_structure(make, trains, images, monkeypatch):
    module = randomize(make())
    explainer, proofs = vit_demo.Explainer(module), []
    explainer.maps(images, "relevance", 3)
    monkeypatch.setattr(adapter, "_adapt", lambda *given: proofs.append(given))
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(20):
        module.train(trains)
        module(images).square().sum().backward()
        optimizer.step()
        module.eval()
        found = explainer.maps(images[:1], "relevance", 3)
        if not isinstance(module, Counting | Own):
            continue
        expected = relevance_by_hand(module, images[:1], torch.ones(16) / 16)
        torch.testing.assert_close(found.flatten(), expected, atol=1e-6, rtol=1e-3)
    assert not proofs and len(adapter._found[module][1]) == 1


def test_what_is_kept_of_one_network_is_bounded(images):
    module = own()
    for number in range(20):
        module.tag = number
        adapt(module, 32)
    assert len(adapter._found[module][1]) == adapter.MOST_FOUND


def test_weights_of_another_type_are_another_network():
    changes, module = Changes(), nn.Linear(2, 2)
    single = changes.state_of(module)
    assert changes.state_of(module) == single != changes.state_of(module.double())


def test_images_of_a_batch_share_a_look_at_the_network_and_the_next_batch_sees_it_changed(monkeypatch) -> None:
    module, images, looks = Choosing().eval(), torch.randn(4, 3, 32, 32), []
    explainer = vit_demo.Explainer(module)
    find = explainer._traced
    monkeypatch.setattr(explainer, "_traced", lambda *shape: looks.append(shape) or find(*shape))
    results = explainer.batch(images, batch_size=2)
    for reads, part in zip(("mean", "first"), images.split(2), strict=True):
        module.reads = reads
        looks.clear()
        found = [next(results), next(results)]
        assert looks == 2 * [((32, 32), 3)], "once for both inputs, once for their pass"
        with torch.no_grad():
            np.testing.assert_allclose([one.logits for one in found], module(part), atol=1e-5)
        assert [vit_demo.Explainer(module)(one).relevance().argmax() for one in part] == [
            one.relevance().argmax() for one in found
        ]
