"""Which accelerator there is: any that torch knows, a ZeroGPU Space's borrowed GPU, or the CPU; no setting needed."""

import os
from collections.abc import Callable
from typing import TypeVar

import torch

F = TypeVar("F", bound=Callable)

ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")
"""Whether this is a ZeroGPU Space, which lends a GPU for the length of one call, to a fork of this process."""

ZERO_GPU_PARAMETERS = 10_000_000
"""Networks with fewer parameters run on the CPU of a ZeroGPU Space: a loan takes longer than their forward pass."""


def zero_gpu(function: F) -> F:
    """Marks the function that runs the network: on ZeroGPU it gets a GPU while it runs, elsewhere nothing changes."""
    if not ZERO_GPU:
        return function
    import spaces

    return spaces.GPU(duration=15)(function)


def needs_zero_gpu(num_parameters: int) -> bool:
    """Whether a network of this size runs on a lent GPU, which costs the visitor's quota."""
    return ZERO_GPU and num_parameters >= ZERO_GPU_PARAMETERS


def best_device(*, forked: bool = False) -> torch.device:
    """The accelerator that torch finds (CUDA, Apple's MPS, XPU, ...), else the CPU.

    On a ZeroGPU Space it is the CPU, unless this is the ``forked`` process that a GPU was lent to. There
    ``torch.cuda.is_available()`` is true, but CUDA is emulated in the main thread alone, and a network that a job's
    thread moved to it would fail.
    """
    found = torch.accelerator.current_accelerator(check_available=True) if forked or not ZERO_GPU else None
    return found or torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The device in a few words for people."""
    try:
        return torch.get_device_module(device).get_device_name(device)
    except (AttributeError, RuntimeError):  # torch has no names for these
        return "Apple GPU" if device.type == "mps" else device.type.upper()
