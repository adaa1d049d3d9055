"""What a network is beside the values of its weights: where this changes, what was proved of it is proved again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from vit_demo.trace import running

State = dict[tuple[int, str], Any]

_PLAIN = {str, int, float, bool, type(None), bytes}
_SKIPPED = {*vars(nn.Module()), "training", "grad_checkpointing", "gradient_checkpointing", "mask_ratio"}
"""Attributes of every module, and what ``in_eval`` sets for each pass, in whichever thread."""
DEPTH = 3  # lists and objects that may be around a value


class Changes:
    """Follows one network; what changes whenever it runs, such as a counter, is ignored."""

    def __init__(self) -> None:
        self._ignored = set[tuple[int, str]]()
        self._zeros = dict[int, tuple[int, int, bool]]()  # of tensors, with their version and address

    def state_of(self, module: nn.Module) -> State:
        """The modules with their attributes and hooks, and each tensor's shape, type and whether it is 0.

        A gate that is 0 may hide what mixes tokens; other values of weights change no structure.
        """
        found: State = {}
        for name, one in module.named_modules():
            number, hooks = id(one), (one._forward_pre_hooks, one._forward_hooks)
            found[number, ""] = name, type(one), getattr(type(one), "forward", None)
            if hooks[0] or hooks[1]:
                found[number, "hooks"] = tuple(_parts(hooks, DEPTH))
            for key, value in vars(one).copy().items():
                if key not in _SKIPPED:
                    found[number, key] = value if type(value) in _PLAIN else tuple(_parts(value, DEPTH))
            for key, x in (*one._parameters.items(), *one._buffers.items()):
                if x is not None:
                    found[number, key] = x.shape, x.dtype, self._is_zero(x)
        for ignored in self._ignored:
            found.pop(ignored, None)
        return found

    def ignore_changes(self, before: State, after: State) -> None:
        """Ignores from now on what a few passes have changed."""
        self._ignored |= {name for name in {**before, **after} if before.get(name) != after.get(name)}

    def _is_zero(self, x: Tensor) -> bool:
        if x.is_meta or x.is_inference() or not x.is_floating_point() or not x.numel():
            return False
        known, now = self._zeros.get(id(x)), (x._version, x.data_ptr())
        if known is None or known[:2] != now:
            known = self._zeros[id(x)] = *now, not x.detach()[(0,) * x.dim()] and not x.detach().any()
        return known[2]


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """What of an attribute may change what a network computes: plain values, and which functions and objects it has."""
    if type(value) in _PLAIN:
        yield value
    elif isinstance(value, Tensor | nn.Module) or not depth:
        return
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _parts(one, depth - 1)
    elif isinstance(value, dict):
        for key, one in list(value.items()):
            if key not in _SKIPPED and getattr(one, "__module__", "") != running.__name__:  # of a pass in some thread
                yield key
                yield from _parts(one, depth - 1)
    else:
        yield id(getattr(value, "__func__", value))
        if not callable(value):
            yield from _parts(vars(value) if hasattr(value, "__dict__") else None, depth)
