"""How a network of another library is run: in eval mode, without what would change or shuffle its tokens."""

import copy
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

FLAGS = ("training", "grad_checkpointing", "gradient_checkpointing")
"""Attributes of modules that must be False."""


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


_skipping: WeakKeyDictionary[nn.Module, threading.Lock] = WeakKeyDictionary()


def skipping_in(module: nn.Module) -> threading.Lock:
    """The lock of those who replace what a network runs."""
    return _skipping.get(module) or _skipping.setdefault(module, threading.Lock())


def run_as(module: nn.Module, other: nn.Module) -> None:
    """Notes that a network shares its parts with another: who replaces parts of one does it for both."""
    _skipping[module] = skipping_in(other)


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


DETACH = (Tensor.detach, torch.detach, Tensor.data.__get__)  # type: ignore[attr-defined]


class KeptGradients(TorchFunctionMode):
    """A context in which, in this thread, what a network runs under ``torch.no_grad``, or detaches, keeps gradients."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handles one call of torch; see ``TorchFunctionMode``."""
        if func in DETACH:
            return args[0]
        return None if func is torch._C._set_grad_enabled else func(*args, **(kwargs or {}))


class _Seen(threading.local):
    """What this thread sees in place of attributes, by the object's id and the attribute's name."""

    def __init__(self) -> None:
        self.values = dict[tuple[int, str], Any]()


class _Attribute:
    """An attribute of a class that some threads see otherwise in some objects; it is there for as long as one does."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name, self.users = kind, name, 0
        self.before = vars(kind).get(name, _MISSING)

    def __get__(self, one: Any, kind: type) -> Any:
        own = {} if one is None else vars(one)
        found = _seen.values.get((id(one), self.name), own.get(self.name, self.before))
        return getattr(super(self.kind, kind if one is None else one), self.name) if found is _MISSING else found

    def __set__(self, one: Any, value: Any) -> None:
        vars(one)[self.name] = value

    def __delete__(self, one: Any) -> None:
        del vars(one)[self.name]


_MISSING, _seen, _attributes = object(), _Seen(), dict[tuple[type, str], _Attribute]()


@contextmanager
def _seen_as(values: dict[tuple[int, str], Any], attributes: set[tuple[type, str]]) -> Iterator[None]:
    """In this thread, attributes of some objects, of these classes, have other values."""
    with _lock:
        for key in attributes:
            kind, name = key
            if key not in _attributes:
                _attributes[key] = _Attribute(kind, name)
                setattr(kind, name, _attributes[key])
            _attributes[key].users += 1
    before, _seen.values = _seen.values, {**_seen.values, **values}
    try:
        yield
    finally:
        _seen.values = before
        with _lock:
            for kind, name in attributes:
                (one := _attributes[kind, name]).users -= 1
                if not one.users:
                    del _attributes[kind, name]
                    delattr(kind, name)
                    if one.before is not _MISSING:
                        setattr(kind, name, one.before)


def _without_masking(config: Any) -> Any:
    other = copy.copy(config)
    with suppress(AttributeError):  # it is frozen
        other.mask_ratio = 0.0
    return other


@contextmanager
def in_eval(module: nn.Module, *, in_one_mode: bool = False) -> Iterator[None]:
    """Runs a network in eval mode, which no other thread sees: one may train it meanwhile.

    Gradient checkpointing is off, because it would run a part again in the backward, where nothing is recorded; where
    a network calls it itself, see ``without_checkpoints`` and ``AttentionMode``. So is the random masking of masked
    autoencoders. Where all parts are known to be in one mode, they need no look, which would take a tenth of a small
    network's pass.
    """
    values, attributes = dict[tuple[int, str], Any](), set[tuple[type, str]]()
    for one in module.modules() if module.training or not in_one_mode else ():
        own = vars(one)
        seen = {name: False for name in FLAGS if own.get(name) is True}
        if isinstance(getattr(own.get("config"), "mask_ratio", None), float):
            seen["config"] = _without_masking(own["config"])
        values.update({(id(one), name): value for name, value in seen.items()})
        attributes.update((type(one), name) for name in seen)
    with _seen_as(values, attributes), without_checkpoints():
        yield


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
