"""Data-parallel training in several processes started by ``torchrun``, and a clean stop after Ctrl-C in all of them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

import torch
import torch.distributed as dist


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Joins the process group if ``torchrun`` started this process, and leaves it afterwards.

    Args:
        device: The device to train on; a CUDA device stands for one device per process.

    Yields:
        The device of this process.
    """
    if "WORLD_SIZE" not in os.environ:
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


class Interrupt:
    """While active, Ctrl-C raises no exception but sets a flag, so that the current step is finished first."""

    def __init__(self) -> None:
        self.pressed = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self.previous = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.previous)

    def _press(self, _: int, __: FrameType | None) -> None:
        self.pressed = True

    def requested(self) -> bool:
        """Whether Ctrl-C was pressed in any process; all processes get the same result."""
        if world_size() == 1:
            return self.pressed
        pressed = torch.tensor(float(self.pressed), device="cuda" if dist.get_backend() == "nccl" else "cpu")
        dist.all_reduce(pressed, dist.ReduceOp.MAX)
        return bool(pressed.item())
