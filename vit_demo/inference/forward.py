"""What runs on a network: a forward pass of one image or of several, within the memory that there is."""

import copy
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from vit_demo.accelerator import ZERO_GPU
from vit_demo.errors import CheckpointError, InputError
from vit_demo.methods import memory_budget
from vit_demo.model.resample import num_bytes
from vit_demo.trace import Intervention, Trace, TracedViT
from vit_demo.trace.reasons import NOT_SHOWN
from vit_demo.words.classifier import whole_pass

T = TypeVar("T")

MOST_EARLY = 12  # classes up to which a pass keeps the logits of every depth: on a digit about 5 % of its time

_used_sizes: WeakKeyDictionary[nn.Module, set[tuple[int, torch.Size]]] = WeakKeyDictionary()


class RunOnModel(Protocol):
    """Runs a function on the network of a result: ``function(model, *arguments, patch_size=..., **options)``.

    The function may run in another process, so it is a module-level function with small arguments and results.
    """

    def __call__(self, function: Callable[..., T], /, *arguments: Any, slow: bool = False, **options: Any) -> T:
        """Returns the function's result, its tensors on the CPU; ``slow`` if it takes many passes."""


@torch.no_grad()
def forward_with_trace(
    model: TracedViT, pixels: Tensor, *, patch_size: int, kept_patches: Tensor | None = None
) -> tuple[Tensor, Trace, float]:
    """Runs one image ``[1, C, height, width]``, normalised, through the network.

    Returns:
        Logits ``[K]`` float32 on the CPU, the trace, and the duration in seconds. A network's first pass at a size is
        not timed, and of the next two, made at once, the shorter counts.

    Raises:
        CheckpointError: If the output is not finite.
    """
    # A network with other words, or another head, is the same for a picture.
    sizes = _used_sizes.setdefault(model.blocks[0], set())
    seconds, passes = float("inf"), 1
    if (size := (patch_size, pixels.shape)) not in sizes:
        # The first pass of its kind also derives the weights for its size and prepares torch's kernels.
        model(pixels, Trace(), patch_size=patch_size, kept_patches=kept_patches).cpu()
        sizes.add(size)
        passes = 2
    for _ in range(passes):
        trace, started = _new_trace(model), time.perf_counter()
        with whole_pass() if kept_patches is None and not model.intervention else nullcontext():
            logits = model(pixels, trace, patch_size=patch_size, kept_patches=kept_patches)[0].float().cpu()
        seconds = min(seconds, time.perf_counter() - started)
    _check_finite(logits)
    _read_early(model, trace)
    # Without classes the output is the pooled vector, of which nothing is left here.
    return logits[: model.config.num_classes], trace, seconds


def to_cpu(value: Any) -> Any:
    """Moves tensors to the CPU; a trace only if it must leave this process, otherwise it stays on the device."""
    if isinstance(value, tuple):
        return tuple(map(to_cpu, value))
    if isinstance(value, Tensor) or (ZERO_GPU and isinstance(value, Trace)):
        return value.detach().to("cpu") if isinstance(value, Tensor) else value.to("cpu")
    return value


def run_on(
    model: TracedViT, device: torch.device, function: Callable[..., Any], arguments: tuple, options: dict[str, Any]
) -> Any:
    """Runs a function on a network, with tensors on the network's device, and its result as of ``to_cpu``."""
    there = [value.to(device) if isinstance(value, Tensor) else value for value in (*arguments, *options.values())]
    count = len(arguments)
    return to_cpu(function(model, *there[:count], **dict(zip(options, there[count:], strict=True))))


def retry_with_less_memory(attempt: Callable[[torch.device], T], device: torch.device) -> T:
    """Runs a function on a device; if memory runs out, again in smaller chunks, and finally on the CPU."""
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


def run_changed(
    model: TracedViT,
    pixels: Tensor,
    intervention: Intervention,
    function: Callable[..., T],
    *arguments: Any,
    **options: Any,
) -> T:
    """Runs a function on a network in whose passes something is changed.

    Raises:
        InputError: If there is no such block, or the tokens between the blocks are not seen.
    """
    count, found = len(model.structure.blocks), intervention.blocks_between
    if found and not model.shows_tokens:
        raise InputError(NOT_SHOWN)
    if found and max(found) >= count:
        raise InputError(f"There is no block {max(found)}: this model has {count}, counted from 0.")
    changed = copy.copy(model)
    changed.intervention = intervention
    return function(changed, pixels, *arguments, **options)


def run_in_memory(
    network: TracedViT, function: Callable[..., T], /, *arguments: Any, slow: bool = False, **options: Any
) -> T:
    """As ``RunOnModel``, on a network in memory, where it is."""
    options["patch_size"] = network.patch_size
    return retry_with_less_memory(
        lambda _: run_on(network, network.device, function, arguments, options), torch.device("cpu")
    )


def _is_out_of_memory(error: RuntimeError) -> bool:
    # The last two are what torch says of a processor's memory.
    texts = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in texts)


def _free_memory(device: torch.device) -> None:
    getattr(getattr(torch, device.type, None), "empty_cache", lambda: None)()


@torch.no_grad()
def forward_batch(model: TracedViT, pixels: Tensor, *, patch_size: int) -> tuple[tuple[Tensor, Trace, float], ...]:
    """Runs several images ``[B, C, height, width]`` at once; for each what ``forward_with_trace`` gives."""
    trace, started = _new_trace(model), time.perf_counter()
    logits = model(pixels, trace, patch_size=patch_size).float().cpu()
    seconds = (time.perf_counter() - started) / len(pixels)
    _check_finite(logits)
    _read_early(model, trace)
    found = []
    for index in range(len(pixels)):
        q, k, v = ([_alone(tensor, index) for tensor in kept] for kept in (trace.q, trace.k, trace.v))
        pooling, early = (None if x is None else _alone(x, index) for x in (trace.pooling, trace.early))
        part = Trace((), trace.grid, trace.num_prefix_tokens, q, k, v, pooling=pooling, early=early)
        part.together = trace.together
        found.append((_alone(logits, index)[0, : model.config.num_classes], part, seconds))
    return tuple(found)


def _new_trace(model: TracedViT) -> Trace:
    """A trace for a pass, with tokens if ``_read_early`` reads them: where a head is no pass of its own."""
    return Trace(record_tokens=model.is_own and 0 < model.config.num_classes <= MOST_EARLY)


def _read_early(model: TracedViT, trace: Trace) -> None:
    """Replaces the tokens of a trace, if it has any, by what the head makes of each depth's."""
    if trace.tokens:
        logits = model.forward_head(torch.cat(trace.tokens)).float()  # [(blocks + 1) * B, K]
        trace.early = logits.unflatten(0, (len(trace.tokens), -1)).transpose(0, 1)
        trace.tokens, trace.record_tokens = [], False


def _alone(x: Tensor, index: int) -> Tensor:
    """One image of a batch, ``[1, ...]``, that does not keep the memory of the others."""
    part = x[index : index + 1]
    return part.clone() if num_bytes([part]) > part.nbytes else part


def _check_finite(logits: Tensor) -> None:
    if not torch.isfinite(logits).all():
        raise CheckpointError("The model's output is not a number, so its weights cannot be used: choose another.")
