"""Which accelerator there is: CUDA, Apple's MPS, a ZeroGPU Space's borrowed GPU, or the CPU; no setting needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import torch

F = TypeVar("F", bound=Callable)

ZERO_GPU = bool(os.environ.get("SPACES_ZERO_GPU"))
"""On a ZeroGPU Space the GPU is lent for the length of one call, to a fork of this process."""


def zero_gpu(function: F) -> F:
    """Marks the function that runs the network: on ZeroGPU it gets a GPU while it runs, elsewhere nothing changes."""
    if not ZERO_GPU:
        return function
    import spaces

    return spaces.GPU(duration=15)(function)


def best_device() -> torch.device:
    """CUDA where it is there, else Apple's MPS, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The device in a few words for people."""
    if device.type == "cuda":
        return "ZeroGPU" if ZERO_GPU else torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' * (threads > 1)}"
