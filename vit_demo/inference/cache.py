"""A cache bounded by the bytes it holds, not by the number of its entries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ByteCache(Generic[V]):
    """Keeps what was used last, within a number of bytes; safe to call from several threads.

    Args:
        max_bytes: What all entries may hold together. An entry that is larger alone is not kept.
        size_of: The bytes of an entry. They are counted anew when room is made, since an entry may have grown.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[V], int]) -> None:
        self.max_bytes = max_bytes
        self._size_of = size_of
        self._entries: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """What the entries hold together."""
        with self._lock:
            return sum(map(self._size_of, self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def list_keys(self) -> list[Any]:
        """The keys, the one used longest ago first."""
        with self._lock:
            return list(self._entries)

    def get(self, key: Hashable) -> V | None:
        """The entry, which is then the last to make room; None where there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def clear(self) -> None:
        """Lets everything go."""
        with self._lock:
            self._entries.clear()

    def peek(self, key: Hashable) -> V | None:
        """The entry without a lock and without a trace of having been used: for a forked process."""
        return self._entries.get(key)

    def put(self, key: Hashable, value: V) -> None:
        """Keeps an entry; what was used longest ago makes room for it."""
        with self._lock:
            self._entries.pop(key, None)
            if self._size_of(value) > self.max_bytes:
                return
            self._entries[key] = value
            sizes = {name: self._size_of(entry) for name, entry in self._entries.items()}
            total = sum(sizes.values())
            while total > self.max_bytes:
                oldest, _ = self._entries.popitem(last=False)
                total -= sizes[oldest]
