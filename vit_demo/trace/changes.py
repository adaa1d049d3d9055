"""What a network is beside the values of its weights: where this changes, what was proved of it is proved again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from vit_demo.trace import running

State = dict[tuple[int, str], Any]
Values = tuple[float, float] | int | None

_PLAIN = {str, int, float, bool, type(None), bytes}
_SKIPPED = {
    *vars(nn.Module()), "training", "grad_checkpointing", "gradient_checkpointing", "mask_ratio", "num_batches_tracked",
    "n_averaged",
}  # fmt: skip
"""Attributes of every module, what ``in_eval`` sets for each pass, in whichever thread, and counts of steps."""
DEPTH = 5  # lists and objects that may be around a value


class Changes:
    """Follows one network; what changes whenever it runs, such as a counter, is ignored."""

    def __init__(self) -> None:
        self._ignored = set[tuple[int, str]]()
        self._values = dict[int, tuple[int, int, Values]]()  # of tensors, with their version and address

    def state_of(self, module: nn.Module) -> State:
        """The modules with their classes, attributes and hooks, and each tensor's shape, type and ``_plain_values``.

        A gate that is 0 may hide what mixes tokens, and one that is 1 is not seen; whole numbers may be places, such as
        those of the tokens that a head reads. Other values change no structure.
        """
        every = torch_module._global_forward_pre_hooks, torch_module._global_forward_hooks
        found: State = {(0, "hooks"): tuple(_parts(every, DEPTH))}
        for kind in set(map(type, module.modules())):
            own = [vars(base).copy() for base in kind.__mro__ if issubclass(base, nn.Module) and base is not nn.Module]
            found[id(kind), ""] = tuple(_parts(own, DEPTH + 2))
        for name, one in module.named_modules():
            number, hooks = id(one), (one._forward_pre_hooks, one._forward_hooks)
            found[number, ""] = name, type(one)
            if hooks[0] or hooks[1]:
                found[number, "hooks"] = tuple(_parts(hooks, DEPTH))
            for key, value in vars(one).copy().items():
                if key not in _SKIPPED:
                    found[number, key] = value if type(value) in _PLAIN else tuple(_parts(value, DEPTH))
            for key, x in (*one._parameters.items(), *one._buffers.items()):
                if x is not None and key not in _SKIPPED:
                    found[number, key] = x.shape, x.dtype, self._values_of(x)
        for ignored in self._ignored:
            found.pop(ignored, None)
        return found

    def ignore_changes(self, before: State, after: State) -> None:
        """Ignores from now on what a few passes have changed."""
        self._ignored |= {name for name in {**before, **after} if before.get(name) != after.get(name)}

    def _values_of(self, x: Tensor) -> Values:
        if x.is_inference() or x.is_meta:
            return None
        known, now = self._values.get(id(x)), (x._version, x.data_ptr())
        # A change of x.data has no version; of long tables of numbers it is not looked for.
        if known is None or known[:2] != now or (known[2] is not None and (x.is_floating_point() or x.numel() < 4096)):
            known = self._values[id(x)] = *now, _plain_values(x)
        return known[2]


def _plain_values(x: Tensor) -> Values:
    """The least and largest number of a tensor that nothing was taught: all are one, or 0 and 1; None of others.

    Of whole numbers, and of truth, a hash.
    """
    if x.is_complex() or x.is_quantized or not x.numel() or x.is_meta or x.layout is not torch.strided:
        return None
    if not x.is_floating_point():
        return hash(x.detach().cpu().numpy().tobytes())
    some = set(x.detach().reshape(-1)[:: x.numel() // 4 + 1].tolist())
    if not (some <= {0.0, 1.0} or (len(some) == 1 < x.numel())):
        return None
    low, high = map(float, x.detach().float().aminmax())
    is_plain = low == high or ((low, high) == (0, 1) and bool(((x == 0) | (x == 1)).all()))
    return (low, high) if is_plain else None


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """What of an attribute may change what a network computes: plain values, and which functions and objects it has."""
    if type(value) in _PLAIN:
        yield value
    elif isinstance(value, Tensor):
        yield value.shape, value.dtype, _plain_values(value)
    elif isinstance(value, nn.Module) or not depth:
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
