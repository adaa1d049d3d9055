"""Every method on a device that is not the CPU: a simulated one with numbers, and CUDA's without (``FakeTensorMode``).

The first compares all numbers with the CPU's, backward passes included, and refuses to mix devices, and float64, which
Apple's MPS has not. It computes on the CPU, so it says nothing about the kernels of an accelerator, their precision,
memory, streams or threads. The second runs forward passes as on CUDA: shapes, devices and dtypes, without numbers. It
has no backward, because the autograd engine asks for a CUDA context, and no method that reads a number to decide what
to compute.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.other_device import THERE, OtherDevice, moved
from vit_demo import features, metrics
from vit_demo.methods import METHODS, attention_from, attention_matrix, attention_to, logsumexp, rollout
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.resample import num_bytes
from vit_demo.trace import OwnViT, Trace, TracedViT, adapt

Make = Callable[..., TracedViT]


KEPT = torch.tensor([[0, 2, 3, 5, 8, 11, 13]])
LAYOUTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "as stored": ({}, [{}, {"against": 2}]),
    "mean of patches": ({"pool": "mean", "class_token": False}, [{"kept_patches": KEPT}]),
    "registers": ({"layer_scale": 0.5, "num_registers": 2}, [{"patch_size": 8}]),
    "per head": ({"pos_embed": "sincos", "projection": "per_head", "layer_scale": 0.5}, [{}]),
    "timm": ({}, [{}, {"kept_patches": KEPT}]),
}
"""Fields of a network, and options with which maps of it are computed."""


def close(found: Tensor, expected: Tensor) -> bool:
    assert found.device == THERE and found.shape == expected.shape and found.dtype == expected.dtype
    return torch.allclose(found.to("cpu"), expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def both(layout: str, network: Make) -> tuple[TracedViT, TracedViT]:
    """A network here and the same there."""
    if layout != "timm":
        here = network(**LAYOUTS[layout][0])
        with OtherDevice():
            return here, OwnViT(moved(here.module))
    module = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=4, num_classes=5, depth=1)
    module.eval().requires_grad_(False)
    with OtherDevice():
        return adapt(module, 16), adapt(moved(module), 16)


def there_too(value: Any) -> Any:
    return value.to(THERE) if isinstance(value, Tensor) else value


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_same_numbers(name: str, both: tuple[TracedViT, TracedViT], layout: str):
    (here, there), method = both, METHODS[name]
    target = (1,) if method.class_specific else ()
    images = torch.randn(1, 3, 16, 16)
    for options in LAYOUTS[layout][1]:
        if "against" in options and not method.compares_classes:
            continue
        expected = method.compute(here, images, *target, **options)
        with OtherDevice():
            options = {option: there_too(value) for option, value in options.items()}
            assert close(method.compute(there, images.to(THERE), *target, **options), expected), options


def test_tokens_maps_curves_and_sizes_are_the_same(both: tuple[TracedViT, TracedViT]):
    here, there = both
    images, order = torch.randn(1, 3, 16, 16), torch.randn(4, 4)
    traces = Trace(), Trace()
    with OtherDevice():
        for found, expected in zip(
            features.patch_tokens(there, images.to(THERE)), features.patch_tokens(here, images), strict=True
        ):
            assert close(found, expected)
        assert close(features.logit_lens(there, images.to(THERE)), features.logit_lens(here, images))
        here(images, traces[0])
        there(images.to(THERE), traces[1])
        assert traces[1].q[0].device == THERE and traces[1].num_bytes > 0
        for make in (
            *(partial(rollout, query=query) for query in (3, None)),
            *(partial(attention_from, block=-1, query=query) for query in (0, None)),
            partial(attention_to, block=0, key=3),
            partial(attention_matrix, block=0),
            lambda trace: logsumexp(trace.q[0], trace.k[0]),
        ):
            assert close(make(traces[1]), make(traces[0]))
    for baseline in (torch.zeros_like(images), metrics.blur(images, 8)):
        given = (images, 1, order, baseline)
        expected = metrics.faithfulness(here, *given, seeds=2, kept_patches=KEPT)
        with OtherDevice():
            found = metrics.faithfulness(there, *map(there_too, given), seeds=2, kept_patches=KEPT.to(THERE))
        assert np.allclose(found.deletion, expected.deletion, atol=1e-5)
        assert np.allclose(found.random_insertion, expected.random_insertion, atol=1e-5)


@pytest.mark.parametrize("method", ["rollout", "relevance"])
def test_a_randomized_network_gives_the_same_maps(network: Make, method: str):
    here, images = network(), torch.randn(1, 3, 16, 16)
    expected = metrics.randomization(here, images, 1, method)
    with OtherDevice():
        found = metrics.randomization(OwnViT(moved(here.module)), images.to(THERE), 1, method)
    assert found == pytest.approx(expected, abs=1e-3)


def test_another_patch_size_is_derived_there(network: Make):
    here = network()
    images = torch.randn(1, 3, 16, 16)
    with OtherDevice(), torch.no_grad():
        there = OwnViT(moved(here.module))
        for size in (2, 8, 2):
            assert close(there(images.to(THERE), patch_size=size), here(images, patch_size=size))


def test_operations_on_both_devices_and_float64_are_refused():
    with OtherDevice():
        there = torch.ones(3, device=THERE)
        assert there.device == THERE and float((there + 1).sum()) == 6
        with pytest.raises(RuntimeError, match="two devices"):
            there + torch.ones(3)
        for wide in (there.double, lambda: torch.from_numpy(np.ones(3)).to(THERE)):
            with pytest.raises(TypeError, match="no float64"):
                wide()


def test_memory_is_counted_by_storage_also_where_addresses_cannot_be_read():
    whole = torch.zeros(10, 10)
    assert num_bytes([whole, whole[2:], whole.T, torch.zeros(5)]) == 400 + 20
    with FakeTensorMode():
        fake = torch.zeros(10, 10, device="cuda")
        assert num_bytes([fake, fake[2:], torch.zeros(5, device="cuda")]) == 400 + 20


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"local_surrogate", "occlusion"}))
def test_a_forward_runs_as_on_cuda(name: str, monkeypatch: pytest.MonkeyPatch):
    """Gradients are made up: what is computed from them is checked, too."""
    method = METHODS[name]
    monkeypatch.setattr(
        torch.autograd, "grad", lambda outputs, inputs, *_, **__: tuple(torch.empty_like(x) for x in as_tuple(inputs))
    )
    fields = {"image_size": 16, "patch_size": 4, "num_classes": 5, "embed_dim": 24, "depth": 3, "num_heads": 3}
    with torch.device("meta"):
        network = ViT(ViTConfig(**fields)).eval()
    shapes = {weight: tensor.shape for weight, tensor in network.state_dict().items()}
    with FakeTensorMode():
        network.load_state_dict({n: torch.empty(shape, device="cuda") for n, shape in shapes.items()}, assign=True)
        target = (1,) if method.class_specific else ()
        options = {"with_values": False} if name == "libra_fullgrad" else {}  # which come from its backward
        found = method.compute(OwnViT(network), torch.empty(1, 3, 16, 16, device="cuda"), *target, **options)
        assert found.device.type == "cuda" and found.shape == (1, 4, 4) and found.dtype == torch.float32


def as_tuple(inputs: Tensor | list[Tensor] | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
