"""Where networks run, if not in the engine's own process; ``vit_demo.serve`` implements it with Ray."""

import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from vit_demo.inference.limits import Pool
from vit_demo.trace import Recording, TracedViT
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
    def pools(self) -> Mapping[str, Pool]:
        """As ``limits.POOLS``, for an engine whose threads only wait."""

    @property
    def device(self) -> str:
        """Where networks run, in a few words for people."""

    def execute(self, call: Call) -> Any:
        """Runs a function on a network; what it raises is raised here."""


def encode(value: Any) -> bytes:
    """Serializes a call or its result for another process of the same program.

    A tensor is copied without the storage that it is a view of: q, k and v of a trace are views of one tensor, which
    would be sent three times.
    """
    buffer = BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def decode(data: bytes) -> Any:
    """The value of ``encode``; from processes of this program only, because pickles can run any code."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype == torch.bfloat16:  # which numpy does not have
            return NotImplemented
        return torch.from_numpy, (value.detach().cpu().contiguous().numpy(),)


@torch.inference_mode()
def forward_batch(model: TracedViT, pixels: Tensor, *, patch_size: int) -> tuple[tuple[Tensor, Recording], ...]:
    """Runs several images ``[B, C, height, width]`` at once; each result is as from ``forward_with_trace``."""
    trace = Recording()
    logits = model(pixels, trace, patch_size=patch_size).float().cpu()
    found = []
    for index in range(len(pixels)):
        q, k, v = ([tensor[index : index + 1] for tensor in kept] for kept in (trace.q, trace.k, trace.v))
        pooling = None if trace.pooling is None else trace.pooling[index : index + 1]
        one = Recording(trace.grid, trace.num_prefix_tokens, q, k, v, pooling=pooling)
        found.append((logits[index, : model.config.num_classes], one))
    return tuple(found)
