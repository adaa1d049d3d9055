"""How a network of another library is run: in eval mode, without what would change or shuffle its tokens."""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import CheckpointFunction


def in_this_thread(function: Callable[..., Any], otherwise: Callable[..., Any] = lambda *_, **__: None) -> Any:
    """A hook or function that runs only in the thread that made it; others may run the same network meanwhile."""
    thread = threading.get_ident()
    return lambda *args, **kwargs: (function if threading.get_ident() == thread else otherwise)(*args, **kwargs)


@contextmanager
def hooked(
    modules: Iterable[nn.Module], enter: Callable[..., Any] | None = None, leave: Callable[..., Any] | None = None
) -> Iterator[None]:
    """In this thread, torch's hooks: ``enter(module, args, kwargs)`` and ``leave(module, args, kwargs, output)``."""
    handles = []
    for module in modules:
        if enter is not None:
            handles.append(module.register_forward_pre_hook(in_this_thread(enter), with_kwargs=True))
        if leave is not None:
            handles.append(module.register_forward_hook(in_this_thread(leave), with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def replacing(functions: Sequence[tuple[nn.Module, Callable[..., Any]]]) -> Iterator[None]:
    """In this thread, other functions run in place of some modules."""
    before = [vars(part).get("forward") for part, _ in functions]
    try:
        for part, function in functions:
            vars(part)["forward"] = in_this_thread(function, part.forward)
        yield
    finally:
        for (part, _), forward in zip(functions, before, strict=True):
            vars(part).pop("forward", None)
            if forward is not None:  # another library had replaced it
                part.forward = forward


class _Running:
    """The passes that run one network at this moment, whoever started them."""

    def __init__(self) -> None:
        self.lock, self.skipping = threading.Lock(), threading.Lock()
        self.count = 0
        self.before: list[tuple[Any, str, Any]] = []  # what was changed for them: an object, its attribute, its value


_running: WeakKeyDictionary[nn.Module, _Running] = WeakKeyDictionary()


def running_in(module: nn.Module) -> _Running:
    """Who runs a network at this moment."""
    return _running.get(module) or _running.setdefault(module, _Running())


def run_as(module: nn.Module, other: nn.Module) -> None:
    """Notes that a network shares its parts with another: who runs one runs both."""
    _running[module] = running_in(other)


_threads, _lock = Counter[int](), threading.Lock()
"""The number of passes that each thread runs, and the lock of these counts."""


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """In this thread, ``torch.utils.checkpoint`` with ``use_reentrant=True`` runs its function plainly, and once.

    Such a checkpoint allows no gradients but those of a whole ``backward()``.
    """
    thread, original = threading.get_ident(), super(CheckpointFunction, CheckpointFunction).apply

    def apply(function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        return function(*args) if _threads[threading.get_ident()] else original(function, preserve_rng_state, *args)

    with _lock:
        _threads[thread] += 1
        CheckpointFunction.apply = apply
    try:
        yield
    finally:
        with _lock:
            _threads[thread] -= 1
            if not +_threads:
                del CheckpointFunction.apply  # its own again


class KeptGradients(TorchFunctionMode):
    """A context in which, in this thread, what a network runs under ``torch.no_grad`` has gradients all the same."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        return None if func is torch._C._set_grad_enabled else func(*args, **(kwargs or {}))


@contextmanager
def in_eval(module: nn.Module, *, in_one_mode: bool = False) -> Iterator[None]:
    """Runs a network in eval mode; after the last of several threads, each module is in its own mode again.

    Gradient checkpointing is off, because it would run a part again in the backward, where nothing is recorded; where
    a network calls it itself, see ``without_checkpoints`` and ``AttentionMode``. So is the random masking of masked
    autoencoders. Where all parts are known to be in one mode, they need no look, which would take a tenth of a small
    network's pass.
    """
    running = running_in(module)
    with running.lock:
        if not running.count and (module.training or not in_one_mode):
            for one in module.modules():
                parts: tuple[tuple[Any, str, Any], ...] = (
                    (one, "training", False),
                    (one, "grad_checkpointing", False),
                    (one, "gradient_checkpointing", False),
                    (getattr(one, "config", None), "mask_ratio", 0.0),
                )
                for part, name, value in parts:
                    if type(before := getattr(part, name, value)) is type(value) and before != value:
                        with suppress(AttributeError):  # what cannot be set
                            setattr(part, name, value)
                            running.before.append((part, name, before))
        running.count += 1
    try:
        with without_checkpoints():
            yield
    finally:
        with running.lock:
            running.count -= 1
            while not running.count and running.before:
                setattr(*running.before.pop())


def parameters_of(module: nn.Module) -> frozenset[str]:
    """The names of what ``forward`` takes."""
    kind: Any = type(module)
    return _parameters(kind)


@cache
def _parameters(kind: Any) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)


def keep_order(module: nn.Module, images: Tensor, patch_size: int) -> dict[str, Any]:
    """What a masked autoencoder of transformers, which shuffles patches by noise, must get so that it does not."""
    if "noise" not in parameters_of(module):
        return {}
    count = (images.shape[2] // patch_size) * (images.shape[3] // patch_size)
    return {"noise": torch.arange(count, device=images.device).expand(len(images), -1)}
