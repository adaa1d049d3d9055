"""Several processes that train one network, as ``torchrun`` starts them; and Ctrl-C, which all of them must heed."""

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
    """This process's number; 0 where there is but one."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def joined(device: torch.device) -> Iterator[torch.device]:
    """Joins the other processes where ``torchrun`` started this one, and leaves them afterwards.

    Args:
        device: The best of this machine; a CUDA device stands for one for each process.

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
    """Turns Ctrl-C into a question, so that a step under way is finished first."""

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

    def wanted(self) -> bool:
        """Whether anyone pressed Ctrl-C; the same answer in every process."""
        if world_size() == 1:
            return self.pressed
        pressed = torch.tensor(float(self.pressed), device="cuda" if dist.get_backend() == "nccl" else "cpu")
        dist.all_reduce(pressed, dist.ReduceOp.MAX)
        return bool(pressed.item())
