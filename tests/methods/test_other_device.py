"""Every method on a device that is not the CPU: a simulated one with numbers, and CUDA's without (``FakeTensorMode``).

The first compares all numbers with the CPU's, backward passes included, and refuses to mix devices. It computes on the
CPU, so it says nothing about the kernels of an accelerator, their precision, memory, streams or threads. The second
runs forward passes as on CUDA: shapes, devices and dtypes, without numbers. It has no backward, because the autograd
engine asks for a CUDA context, and no method that reads a number to decide what to compute.
"""

from collections.abc import Callable

import numpy as np
import pytest
import timm
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.other_device import THERE, OtherDevice, moved
from vit_demo import features, metrics
from vit_demo.methods import METHODS
from vit_demo.model import ViT, ViTConfig
from vit_demo.model.resample import num_bytes
from vit_demo.trace import OwnViT, Trace, TracedViT, adapt

Make = Callable[..., TracedViT]


def close(found: Tensor, expected: Tensor) -> bool:
    assert found.device == THERE and found.shape == expected.shape and found.dtype == expected.dtype
    return torch.allclose(found.to("cpu"), expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


@pytest.fixture(params=["own", "own, mean of patches", "timm"])
def both(request: pytest.FixtureRequest, network: Make) -> tuple[TracedViT, TracedViT]:
    """A network here and the same there."""
    if request.param != "timm":
        here = network(**({"pool": "mean", "class_token": False} if "mean" in request.param else {}))
        with OtherDevice():
            return here, OwnViT(moved(here.module))
    module = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=4, num_classes=5, depth=2).eval()
    with OtherDevice():
        return adapt(module, 16), adapt(moved(module), 16)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_same_numbers(name: str, both: tuple[TracedViT, TracedViT]):
    (here, there), method = both, METHODS[name]
    target = (1,) if method.class_specific else ()
    images = torch.randn(1, 3, 16, 16)
    kept = torch.tensor([[0, 1, 3, 4, 5, 6, 9, 10, 12, 15]])
    with OtherDevice():
        for options in ({}, {"kept_patches": kept}, *[{"against": 2}] * method.compares_classes):
            expected = method.compute(here, images, *target, **options)
            options = {n: x.to(THERE) if isinstance(x, Tensor) else x for n, x in options.items()}
            assert close(method.compute(there, images.to(THERE), *target, **options), expected), options


def test_tokens_curves_and_sizes_are_the_same(both: tuple[TracedViT, TracedViT]):
    here, there = both
    images, order = torch.randn(1, 3, 16, 16), torch.randn(4, 4)
    with OtherDevice():
        for found, expected in zip(
            features.patch_tokens(there, images.to(THERE)), features.patch_tokens(here, images), strict=True
        ):
            assert close(found, expected)
        assert close(features.logit_lens(there, images.to(THERE)), features.logit_lens(here, images))
        zeros = torch.zeros_like(images)
        expected = metrics.faithfulness(here, images, 1, order, zeros)
        found = metrics.faithfulness(
            there, *(x.to(THERE) if x is not None else 1 for x in (images, None, order, zeros))
        )
        assert np.allclose(found.deletion, expected.deletion, atol=1e-5)
        assert np.allclose(found.insertion, expected.insertion, atol=1e-5)
        traces = Trace(), Trace()
        here(images, traces[0])
        there(images.to(THERE), traces[1])
        assert traces[1].q[0].device == THERE and traces[1].num_bytes > 0


def test_another_patch_size_is_derived_there(network: Make):
    here = network()
    images = torch.randn(1, 3, 16, 16)
    with OtherDevice(), torch.no_grad():
        there = OwnViT(moved(here.module))
        for size in (2, 8, 2):
            assert close(there(images.to(THERE), patch_size=size), here(images, patch_size=size))


def test_operations_on_both_devices_are_refused():
    with OtherDevice():
        there = torch.ones(3, device=THERE)
        assert there.device == THERE and float((there + 1).sum()) == 6
        with pytest.raises(RuntimeError, match="two devices"):
            there + torch.ones(3)


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
