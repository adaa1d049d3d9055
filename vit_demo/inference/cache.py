"""A cache bounded by the bytes it holds, not by the number of its entries."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")

ENTRY_BYTES = 1000  # assumed overhead of an entry: its key, and its place in the dictionaries


class ByteCache(Generic[V]):
    """Keeps the most recently used values, within a number of bytes; safe to call from several threads.

    Args:
        max_bytes: Limit of all entries together. A larger entry is not kept.
        size_of: The bytes of a value.
        growing: Whether values grow after they were put in; if so, all are measured again whenever one is added.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[V], int], *, growing: bool = False) -> None:
        self.max_bytes = max_bytes
        self._size_of = size_of
        self._growing = growing
        self._entries: OrderedDict[Hashable, V] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """Bytes of all entries, as measured when they were added."""
        with self._lock:
            return sum(self._sizes.values())

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def list_keys(self) -> list[Any]:
        """The keys, least recently used first."""
        with self._lock:
            return list(self._entries)

    def get(self, key: Hashable) -> V | None:
        """The entry, which becomes the most recently used; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def peek(self, key: Hashable) -> V | None:
        """The entry, without a lock and without counting as used: for a forked process."""
        return self._entries.get(key)

    def put(self, key: Hashable, value: V) -> None:
        """Adds an entry and evicts the least recently used ones beyond the limit."""
        with self._lock:
            self._entries.pop(key, None)
            self._sizes.pop(key, None)
            size = self._size_of(value) + ENTRY_BYTES
            if size > self.max_bytes:
                return
            if self._growing:
                self._sizes = {name: self._size_of(kept) + ENTRY_BYTES for name, kept in self._entries.items()}
            self._entries[key], self._sizes[key] = value, size
            total = sum(self._sizes.values())
            while total > self.max_bytes:
                oldest, _ = self._entries.popitem(last=False)
                total -= self._sizes.pop(oldest)
