"""What runs on the device: one forward pass, results on their way back, and a second try with less memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from vit_demo.accelerator import ZERO_GPU
from vit_demo.errors import CheckpointError
from vit_demo.methods import memory_budget
from vit_demo.model import Trace, ViT

T = TypeVar("T")


class RunOnModel(Protocol):
    """Runs a function on the network of a result: ``function(model, *arguments, patch_size=..., **options)``.

    The function may run in another process, so it is a module's own function, and its arguments and results are small.
    """

    def __call__(self, function: Callable[..., T], /, *arguments: Any, slow: bool = False, **options: Any) -> T:
        """Gives back what the function returns, its tensors on the CPU; ``slow`` where it needs many passes."""


@torch.inference_mode()
def forward_with_trace(
    model: ViT, pixels: Tensor, *, patch_size: int, keep: Tensor | None = None
) -> tuple[Tensor, Trace, float]:
    """One image through the network.

    Args:
        model: In eval mode.
        pixels: ``[1, C, height, width]``, normalised.
        patch_size: In pixels.
        keep: As in ``ViT.forward``.

    Returns:
        Logits ``[K]`` float32 on the CPU, the trace, and the seconds that the pass took.

    Raises:
        CheckpointError: If the output is not finite, so that no prediction can be read from it.
    """
    trace = Trace()
    started = time.perf_counter()
    logits = model(pixels, trace, patch_size=patch_size, keep=keep)[0].float().cpu()
    seconds = time.perf_counter() - started
    if not torch.isfinite(logits).all():
        raise CheckpointError("The model's output is not a number, so its weights cannot be used: choose another.")
    return logits[: model.config.num_classes], trace, seconds  # without classes there is only the pooled token


def to_cpu(value: Any) -> Any:
    """Tensors on the CPU; a trace too where it must leave this process, elsewhere it stays on the device."""
    if isinstance(value, tuple):
        return tuple(map(to_cpu, value))
    if isinstance(value, Tensor) or (ZERO_GPU and isinstance(value, Trace)):
        return value.to("cpu")
    return value


def with_less_memory(attempt: Callable[[torch.device], T], device: torch.device) -> T:
    """Runs something on a device; where its memory is too small, in smaller chunks, and at last on the CPU.

    Args:
        attempt: Takes the device to run on.
        device: The one to try first.
    """
    try:
        return attempt(device)
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            raise
    _free_memory(device)
    try:
        with memory_budget(1 / 8):
            return attempt(device)
    except RuntimeError as error:
        if not _is_out_of_memory(error) or device.type == "cpu":
            raise
    _free_memory(device)
    return attempt(torch.device("cpu"))


def _is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)


def _free_memory(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
