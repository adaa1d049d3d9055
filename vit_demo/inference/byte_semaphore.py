"""A semaphore that counts bytes: how much memory running jobs may need together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ByteSemaphore:
    """Bytes that running jobs may need together; those who hold least are served first.

    Args:
        nbytes: How many. One job counts as three quarters of them at most, so that it leaves room for small ones.
    """

    def __init__(self, nbytes: int) -> None:
        self._free = nbytes
        self._most = nbytes - nbytes // 4
        self._held: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._waiting: list[tuple[str, object]] = []  # in the order in which they came

    @contextmanager
    def reserve(self, nbytes: int, owner: str = "") -> Iterator[None]:
        """Waits until so many bytes are free, and holds them for their owner while the block runs.

        Within what one owner waits for, and between equals, whoever came first is first, so that large jobs get their
        turn.
        """
        nbytes = min(nbytes, self._most)
        ticket = owner, object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._next() is ticket and self._free >= nbytes)
            self._waiting.remove(ticket)
            self._hold(owner, nbytes)
        try:
            yield
        finally:
            with self._changed:
                self._hold(owner, -nbytes)

    def _next(self) -> tuple[str, object]:
        return min(self._waiting, key=lambda ticket: self._held[ticket[0]])

    def _hold(self, owner: str, nbytes: int) -> None:
        self._free -= nbytes
        self._held[owner] += nbytes
        if not self._held[owner]:
            del self._held[owner]
        self._changed.notify_all()
