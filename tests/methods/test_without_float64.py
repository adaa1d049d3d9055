"""Apple's MPS has no float64: nothing makes one on the device, and nothing mixes the device with the CPU.

A stand-in for such a device: tensors that say ``meta`` and keep their numbers on the CPU, out of reach of everything
but ``.cpu()``. What the code then does on the CPU, in float64 or not, is no business of the device.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

from vit_demo import features, methods, metrics
from vit_demo.methods import METHODS
from vit_demo.trace import Trace, TracedViT

Network = Callable[..., TracedViT]
DEVICE = torch.device("meta")
REFUSED = (torch.float64, torch.complex128)
MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
INDEXING = (
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put_.default,
    torch.ops.aten._index_put_impl_.default,
)


class OnDevice(Tensor):
    """A tensor of the device; ``kept`` has its numbers."""

    kept: Tensor

    @staticmethod
    def __new__(cls, kept: Tensor) -> OnDevice:
        if kept.dtype in REFUSED:
            raise TypeError("The device has no float64.")
        shape, options = kept.size(), {"dtype": kept.dtype, "device": DEVICE, "strides": kept.stride()}
        with torch.inference_mode(kept.is_inference()):  # a view of an ordinary tensor is one, too
            made = Tensor._make_wrapper_subclass(cls, shape, storage_offset=kept.storage_offset(), **options)
        made.kept = kept
        return made

    def __repr__(self, **_: Any) -> str:
        return f"OnDevice({self.kept!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError("used outside the device's mode")


class Device(TorchDispatchMode):
    """While it is on, the device works: an operation on its tensors gives tensors of it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
        deciding = tensors[:1] if func is torch.ops.aten.copy_.default else tensors  # it copies into the first
        here = DEVICE if any(isinstance(tensor, OnDevice) for tensor in deciding) else torch.device("cpu")
        goal = kwargs.get("device") or here
        if here == DEVICE and func not in MOVES:
            allowed = args[1] if func in INDEXING else ()  # a GPU takes an index from the CPU
            for tensor in tensors:
                if tensor.ndim and not isinstance(tensor, OnDevice) and all(tensor is not index for index in allowed):
                    raise RuntimeError(f"{func} mixes the device with the CPU.")
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        plain_args, plain_kwargs = tree_map(_kept, (args, kwargs))
        found = func(*plain_args, **plain_kwargs)
        if goal != DEVICE:
            return found
        wrapped = tree_map(lambda value: OnDevice(value) if isinstance(value, Tensor) else value, found)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


class Literals(TorchFunctionMode):
    """Numbers from Python reach the device by way of the CPU, which ``meta`` would skip."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") == DEVICE:
            return func(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        return func(*args, **kwargs)


def _kept(value: Any) -> Any:
    return value.kept if isinstance(value, OnDevice) else value


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    autocast = torch.autocast

    def without_meta(kind: str, **options: Any) -> Any:  # autocast knows MPS, but not what stands in for it
        return contextlib.nullcontext() if kind == "meta" else autocast(kind, **options)

    monkeypatch.setattr(torch, "autocast", without_meta)
    with Device(), Literals():
        yield DEVICE


def moved(model: TracedViT) -> TracedViT:
    """A copy on the device."""
    model = copy.deepcopy(model)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(OnDevice(parameter.detach()), requires_grad=parameter.requires_grad))
    return model


def test_the_stand_in_refuses_what_the_device_refuses(device: torch.device) -> None:
    values = torch.ones(3).to(device)
    assert values.device == device and torch.zeros(2, device=device).device == device
    with pytest.raises(TypeError, match="no float64"):
        values.double()
    with pytest.raises(TypeError, match="no float64"):
        torch.from_numpy(np.ones(3)).to(device)
    with pytest.raises(TypeError, match="no float64"):
        torch.zeros(3, dtype=torch.float64, device=device)
    with pytest.raises(RuntimeError, match="mixes"):
        values + torch.ones(3)
    values[1:] *= 3
    assert values.cpu().double().tolist() == [1, 3, 3] and float(values.sum()) == 7


LAYOUTS = [
    pytest.param({}, {}, id="as-stored"),
    pytest.param({"layer_scale": 0.5, "num_registers": 2}, {"patch_size": 2}, id="resampled"),
    pytest.param({"pos_embed": "sincos", "projection": "per_head", "layer_scale": 0.5}, {}, id="per-head"),
    pytest.param(
        {"class_token": False, "pool": "mean"}, {"kept_patches": torch.tensor([[0, 2, 3, 5, 8, 11, 13]])}, id="kept"
    ),
]


@pytest.mark.parametrize(("fields", "layout"), LAYOUTS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_computes_the_same_map(
    network: Network, device: torch.device, name: str, fields: dict[str, Any], layout: dict[str, Any]
) -> None:
    model, images = network(**fields), torch.randn(1, 3, 16, 16)
    expected = METHODS[name].compute(model, images, 2, **layout)
    there = {key: value.to(device) if isinstance(value, Tensor) else value for key, value in layout.items()}
    found = METHODS[name].compute(moved(model), images.to(device), 2, **there)
    assert found.device == device
    torch.testing.assert_close(found.cpu(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("query", [0, 3, None])
def test_every_map_of_a_trace(network: Network, device: torch.device, query: int | None) -> None:
    model, images, here, there = network(), torch.randn(1, 3, 16, 16), Trace(), Trace()
    with torch.inference_mode():
        model(images, here)
        moved(model)(images.to(device), there)
    assert there.q[0].device == device
    for make in (
        lambda trace: methods.attention_from(trace, -1, query),
        lambda trace: methods.attention_to(trace, 0, query),
        lambda trace: methods.attention_matrix(trace, 1),
        lambda trace: methods.rollout(trace, query),
        lambda trace: methods.logsumexp(trace.q[0], trace.k[0]),
    ):
        torch.testing.assert_close(make(there).cpu(), make(here), atol=1e-5, rtol=1e-4)


def test_metrics_and_the_logit_lens(network: Network, device: torch.device) -> None:
    model, images, values, target = network(), torch.randn(1, 3, 16, 16), torch.randn(4, 4), 1
    there, pictures = moved(model), images.to(device)
    kept_patches = torch.tensor([[0, 2, 3, 5, 8, 11, 13]])
    for baseline in (torch.zeros(1, 1, 1, 1), metrics.blur(images, 8)):
        expected = metrics.faithfulness(model, images, target, values, baseline, seeds=2, kept_patches=kept_patches)
        arguments = (target, values.to(device), baseline.to(device))
        found = metrics.faithfulness(there, pictures, *arguments, seeds=2, kept_patches=kept_patches.to(device))
        np.testing.assert_allclose(found.deletion, expected.deletion, atol=1e-5)
        np.testing.assert_allclose(found.random_insertion, expected.random_insertion, atol=1e-5)
    for method in ("rollout", "relevance"):
        expected_likeness = metrics.randomization(model, images, target, method)
        assert metrics.randomization(there, pictures, target, method) == pytest.approx(expected_likeness, abs=1e-3)
    torch.testing.assert_close(
        features.logit_lens(there, pictures).cpu(), features.logit_lens(model, images), atol=1e-5, rtol=1e-4
    )
