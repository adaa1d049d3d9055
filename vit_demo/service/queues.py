"""A queue that serves who asked for least, and a semaphore for the memory of running jobs."""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")

PATIENCE = 10.0  # for how many times its own duration an item may have to wait for shorter ones that came later
LONGEST_DEBT = 60.0  # seconds by which what an owner asked for before delays its next item, at most


class FairQueue(Generic[T]):
    """A queue of several owners' items: who asks for little does not wait for who asks for much.

    An item is due at ``PATIENCE`` times its duration after it came, or after its owner's last one was due (a virtual
    clock; Zhang, 1990), and what is due first is served first. An owner's items keep their order.

    Args:
        most_at_once: Items of one owner that may be under way; the owner "" has no limit.
    """

    def __init__(self, most_at_once: int) -> None:
        self._most = most_at_once
        self._waiting: dict[str, deque[tuple[float, T]]] = {}  # with the time at which each is due
        self._due: OrderedDict[str, float] = OrderedDict()  # of each owner's last item
        self._taken: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, owner: str, item: T, seconds: float = 1.0) -> None:
        """Adds an item at the end of its owner's, that will take so long."""
        with self._changed:
            now = time.monotonic()
            begin = min(max(now, self._due.pop(owner, now)), now + LONGEST_DEBT)
            self._due[owner] = due = begin + PATIENCE * seconds
            while self._due[next(iter(self._due))] < now:  # the oldest is forgotten
                self._due.popitem(last=False)
            self._waiting.setdefault(owner, deque()).append((due, item))
            self._changed.notify()  # any waiting thread can take it

    def take(self) -> tuple[str, T] | None:
        """Waits for the next item and returns it with its owner; call ``done`` afterwards. None if none will come."""
        with self._changed:
            while self._waiting or not self._closed:
                if ready := [who for who in self._waiting if not who or self._taken[who] < self._most]:
                    owner = min(ready, key=lambda who: self._waiting[who][0][0])
                    _, item = self._waiting[owner].popleft()
                    if not self._waiting[owner]:
                        del self._waiting[owner]
                    self._taken[owner] += 1
                    return owner, item
                self._changed.wait()
            return None

    def before(self, item: T) -> list[T]:
        """The waiting items that are due before another; all of them if that does not wait."""
        with self._changed:
            waiting = sorted((each for items in self._waiting.values() for each in items), key=lambda each: each[0])
        found = [each for _, each in waiting]
        return found[: found.index(item)] if item in found else found

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
        nbytes: Bytes in all. A job counts as three quarters of them at most; in the last quarter, small jobs go past a
            large one that waits, which finds its room as soon as those end that came before it.
    """

    def __init__(self, nbytes: int) -> None:
        self._free = nbytes
        self._most = nbytes - nbytes // 4
        self._for_passing = nbytes // 4
        self._held: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._waiting: list[tuple[str, object]] = []  # in the order in which they came

    @contextmanager
    def reserve(self, nbytes: int, owner: str = "") -> Iterator[None]:
        """Waits until so many bytes are free, and holds them for their owner while the block runs.

        Who holds least is served first, and among equals who came first: no large job starves.
        """
        nbytes = min(nbytes, self._most)
        ticket = owner, object()

        def may_go() -> bool:
            return self._free >= nbytes and (self._next() is ticket or self._for_passing >= nbytes)

        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(may_go)
            passing = 0 if self._next() is ticket else nbytes
            self._waiting.remove(ticket)
            self._hold(owner, nbytes, passing)
        try:
            yield
        finally:
            with self._changed:
                self._hold(owner, -nbytes, -passing)

    def _next(self) -> tuple[str, object]:
        return min(self._waiting, key=lambda ticket: self._held[ticket[0]])

    def _hold(self, owner: str, nbytes: int, passing: int) -> None:
        self._free -= nbytes
        self._for_passing -= passing
        self._held += Counter({owner: nbytes})  # keeps no zeros
        self._changed.notify_all()
