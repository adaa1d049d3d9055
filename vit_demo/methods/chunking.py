"""How much is computed at once, and a context that makes it less where memory is short."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_factor: ContextVar[float] = ContextVar("memory_budget", default=1.0)


@contextmanager
def memory_budget(factor: float) -> Iterator[None]:
    """Scales the chunks in which methods and metrics work, inside a ``with`` block and in its thread alone.

    A map stays the same up to rounding; only its peak of memory and its speed change. An inner block replaces the
    factor of the outer one.

    Args:
        factor: Above 0. At 1, the default, chunks are as large as is fast; at 1/8 they hold an eighth.

    Raises:
        ValueError: If the factor is not a finite number above 0.

    Example:
        >>> try:
        ...     values = relevance(model, images)
        ... except torch.OutOfMemoryError:
        ...     with memory_budget(1 / 8):
        ...         values = relevance(model, images)
    """
    if not 0 < factor < math.inf:
        raise ValueError(f"A memory budget must be a finite number above 0, such as 1/8, not {factor}.")
    token = _factor.set(factor)
    try:
        yield
    finally:
        _factor.reset(token)


def current_budget() -> float:
    """The factor in force here."""
    return _factor.get()


def chunk_size(capacity: int, item: int) -> int:
    """How many items of a size fit into a capacity scaled by the budget; at least one."""
    return max(1, int(capacity * _factor.get()) // max(1, item))
