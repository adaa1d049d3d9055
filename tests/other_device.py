"""A device beside the CPU that needs no hardware: the same numbers, but nothing there mixes with what is here.

A tensor of it holds one of the CPU. torch knows it as of the device "meta", which has neither memory that can be
addressed nor autocast, so it stands for accelerators that torch supports less well than CUDA. An operation on tensors
of both devices is refused as on a GPU: a number may come from here, and so may an index. As Apple's MPS, it has no
float64.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

THERE = torch.device("meta")

ATEN = torch.ops.aten
MIXING = {ATEN._to_copy.default, ATEN.copy_.default, ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default}
"""The operations that may take tensors of both devices."""


class Elsewhere(Tensor):
    """A tensor of the other device."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> Elsewhere:
        if inner.dtype in (torch.float64, torch.complex128):
            raise TypeError("The other device has no float64.")
        found = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=THERE,
        )
        found.inner = inner
        return found

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return run(function, args, kwargs or {})

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"Elsewhere({tuple(self.shape)})"


class OtherDevice(TorchDispatchMode):
    """Within it, tensors can be moved to ``THERE`` and made there."""

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return run(function, args, kwargs or {})


def run(function: Any, args: tuple, kwargs: dict) -> Any:
    """One operation, on the CPU's numbers, with its result where it belongs."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    is_there = [isinstance(x, Elsewhere) for x in tensors]
    is_here = [not there and x.dim() > 0 for there, x in zip(is_there, tensors, strict=True)]
    if any(is_there) and any(is_here) and function not in MIXING:
        raise RuntimeError(f"{function} got tensors of two devices.")
    device = kwargs.get("device")
    goes_there = any(is_there) if device is None else torch.device(device) == THERE
    inner_args, inner_kwargs = tree_map(lambda x: x.inner if isinstance(x, Elsewhere) else x, (args, kwargs))
    found = function(*inner_args, **inner_kwargs | ({} if device is None else {"device": torch.device("cpu")}))
    if not goes_there:
        return found
    found = tree_map(lambda x: Elsewhere(x) if isinstance(x, Tensor) else x, found)
    return return_and_correct_aliasing(function, args, kwargs, found)


def moved(network: nn.Module) -> nn.Module:
    """A copy of a network there."""
    weights = {name: tensor.to(THERE) for name, tensor in network.state_dict().items()}
    network = copy.deepcopy(network)
    network.load_state_dict(weights, assign=True)
    return network
