"""A semaphore that counts bytes: how much memory running jobs may need together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class ByteSemaphore:
    """Bytes that running jobs may need together; a job that needs more than all of them runs alone.

    Args:
        nbytes: How many.
    """

    def __init__(self, nbytes: int) -> None:
        self._nbytes = self._free = nbytes
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()  # in the order of their coming, so that large ones get their turn

    @contextmanager
    def reserve(self, nbytes: int) -> Iterator[None]:
        """Waits until so many bytes are free, and holds them while the block runs."""
        nbytes = min(nbytes, self._nbytes)
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket and self._free >= nbytes)
            self._waiting.popleft()
            self._free -= nbytes
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += nbytes
                self._changed.notify_all()
