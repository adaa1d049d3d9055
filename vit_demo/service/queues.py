"""A queue that serves its owners in turns, and a semaphore for the memory of running jobs."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue of several owners' items: owners take turns, and an owner's items keep their order.

    Args:
        most_at_once: Items of one owner that may be under way; the owner "" has no limit.
    """

    def __init__(self, most_at_once: int) -> None:
        self._most = most_at_once
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._taken: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, owner: str, item: T) -> None:
        """Adds an item at the end of its owner's."""
        with self._changed:
            self._waiting.setdefault(owner, deque()).append(item)
            self._changed.notify()  # any waiting thread can take it

    def take(self) -> tuple[str, T] | None:
        """Waits for the next item and returns it with its owner; call ``done`` afterwards. None if none will come."""
        with self._changed:
            while self._waiting or not self._closed:
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
        """Marks an item of an owner as done."""
        with self._changed:
            self._taken -= Counter([owner])  # keeps no zeros
            self._changed.notify()  # for one more of this owner's

    def close(self) -> None:
        """Makes ``take`` return None, also where it waits, once there is no item."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def count(self, owner: str | None = None) -> int:
        """Number of waiting items, of one owner or of all."""
        with self._changed:
            if owner is not None:
                return len(self._waiting.get(owner, ()))
            return sum(map(len, self._waiting.values()))


class ByteSemaphore:
    """Memory for running jobs, given first to the owner that holds least.

    Args:
        nbytes: Bytes in all. A job counts as three quarters of them at most, so that small jobs find room beside it.
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

        Of one owner, and of owners that hold equally much, the first to come is served first: no large job starves.
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
        self._held += Counter({owner: nbytes})  # keeps no zeros
        self._changed.notify_all()
