"""A semaphore that counts bytes: how much memory running jobs may need together."""

from __future__ import annotations

import threading
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

    @contextmanager
    def reserve(self, nbytes: int) -> Iterator[None]:
        """Waits until so many bytes are free, and holds them while the block runs."""
        nbytes = min(nbytes, self._nbytes)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= nbytes)
            self._free -= nbytes
        try:
            yield
        finally:
            with self._changed:
                self._free += nbytes
                self._changed.notify_all()
