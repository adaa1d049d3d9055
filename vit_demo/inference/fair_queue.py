"""A queue that serves those who wait in turns, however much each of them has put in."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
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
