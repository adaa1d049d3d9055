"""Networks in other processes (``vit_demo.serve`` runs them with Ray), and what travels to them and back."""

import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from vit_demo.service.job_limits import WorkerPool
from vit_demo.weights import Preset


class Call(NamedTuple):
    """A function on a network of a preset, as ``Engine.run_on_model`` takes it; ``slow`` if it takes many passes."""

    preset: Preset
    patch_size: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    slow: bool


class Backend(Protocol):
    """Runs functions on networks in other processes."""

    @property
    def pools(self) -> Mapping[str, WorkerPool]:
        """Worker pools like ``job_limits.POOLS``, for threads that only wait for other processes."""

    @property
    def device(self) -> str:
        """Where networks run, in a few words for people."""

    def execute(self, call: Call) -> Any:
        """Runs a function on a network; what it raises is raised here."""


def encode(value: Any) -> bytes:
    """Serializes a call or its result for another process of the same program.

    Tensors are copied out of their storage: q, k and v of a trace are views of one tensor, which
    would be sent three times.
    """
    buffer = BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def decode(data: bytes) -> Any:
    """Deserializes what ``encode`` returned. Only for data of this program's processes: pickles can run any code."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype == torch.bfloat16:  # which numpy does not have
            return NotImplemented
        return torch.from_numpy, (value.detach().cpu().contiguous().numpy(),)
