"""Drawings that wait for the same network and patch size are one pass, in which each costs a third of one alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from vit_demo.inference.forward import RunOnModel, forward_batch
from vit_demo.inference.inputs import ModelInput
from vit_demo.trace import Trace

MOST = 8  # drawings in one pass

Done = tuple[Tensor, Trace, float]  # what a pass gives of one drawing; see ``forward_with_trace``


class Drawing:
    """A drawing that waits for a pass, until ``run`` or for as long as somebody holds it.

    Args:
        key: Those that wait with the same key are run together.
        read: Reads and prepares it.
    """

    def __init__(self, key: Hashable, read: Callable[[], ModelInput]) -> None:
        self._key, self._read = key, read
        self._found: Future[tuple[ModelInput, Done | None]] = Future()
        with _lock:
            _waiting[self] = None

    def run(self, run: RunOnModel) -> tuple[ModelInput, Done | None]:
        """The input, and what a pass with the others that wait by now gave; None if it must run alone.

        Where another thread has begun to run it with others, it waits for that. Raises what reading it raises.
        """
        with _lock:
            begins = self in _waiting
            others = [one for one in _waiting if one._key == self._key and one is not self] if begins else []
            together = [self, *others[: MOST - 1]] if begins else []
            for one in together:
                del _waiting[one]
        if together:
            _run_together(together, run)
        return self._found.result()


_waiting: WeakKeyDictionary[Drawing, None] = WeakKeyDictionary()  # in the order in which they came
_lock = threading.Lock()


def _run_together(drawings: Sequence[Drawing], run: RunOnModel) -> None:
    inputs: dict[Drawing, ModelInput] = {}
    for drawing in drawings:
        try:
            inputs[drawing] = drawing._read()
        except Exception as error:
            drawing._found.set_exception(error)
    done: Sequence[Done | None] = [None] * len(inputs)
    try:
        if len(inputs) > 1:
            with suppress(Exception):  # alone, each tells its own
                done = run(forward_batch, torch.cat([each.pixels for each in inputs.values()]))
    finally:  # also where nobody wants the first any more: the others would wait for ever
        for (drawing, given), each in zip(inputs.items(), done, strict=True):
            drawing._found.set_result((given, each))
