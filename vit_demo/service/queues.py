"""Who comes next: a queue that serves its owners in turns, and a semaphore that counts the memory of running jobs."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items of several owners: each owner's in their order, the owners in turns.

    Args:
        most_at_once: How many items of one owner may be taken and not yet done. The owner "" has no such limit.
    """

    def __init__(self, most_at_once: int) -> None:
        self._most = most_at_once
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._taken: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, owner: str, item: T) -> None:
        """Adds an item behind the others of its owner."""
        with self._changed:
            self._waiting.setdefault(owner, deque()).append(item)
            self._changed.notify_all()

    def take(self) -> tuple[str, T] | None:
        """Waits for the next item and returns it with its owner; call ``done`` afterwards. None once it is closed."""
        with self._changed:
            while not self._closed:
                for owner, items in self._waiting.items():
                    if owner and self._taken[owner] >= self._most:
                        continue
                    item = items.popleft()
                    self._waiting.move_to_end(owner)
                    if not items:
                        del self._waiting[owner]
                    self._taken[owner] += 1
                    return owner, item
                self._changed.wait()
            return None

    def done(self, owner: str) -> None:
        """An item of an owner is done."""
        with self._changed:
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]
            self._changed.notify_all()

    def close(self) -> None:
        """Lets everyone who waits in ``take`` go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def count(self, owner: str | None = None) -> int:
        """How many items wait, of one owner or of all."""
        with self._changed:
            if owner is not None:
                return len(self._waiting.get(owner, ()))
            return sum(map(len, self._waiting.values()))


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
