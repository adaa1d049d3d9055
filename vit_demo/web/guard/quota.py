"""How much each address may upload, and how often it may send something."""

import time
from collections import deque
from collections.abc import Callable

from cachetools import LRUCache

from vit_demo.web.guard.bodies import RequestRefused


class Quota:
    """Limits how many bytes each address may upload within a period.

    Args:
        nbytes: Bytes per address and period.
        seconds: Length of the period.
        addresses: Number of addresses to count; beyond that the least recently seen is discarded.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        nbytes: int,
        seconds: float = 3600.0,
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nbytes, self._seconds, self._clock = nbytes, seconds, clock
        self._used: LRUCache[str, deque[tuple[float, int]]] = LRUCache(addresses)

    def spend(self, address: str, nbytes: int) -> None:
        """Counts an upload; raises ``RequestRefused`` if it is more than the quota allows."""
        used = self._used.setdefault(address, deque())
        now = self._clock()
        while used and used[0][0] < now - self._seconds:
            used.popleft()
        if nbytes + sum(size for _, size in used) > self._nbytes:
            raise RequestRefused(429, "You have reached the upload limit: try again later, or use smaller pictures.")
        minute = now // 60 * 60
        if used and used[-1][0] == minute:
            used[-1] = (minute, used[-1][1] + nbytes)
        else:
            used.append((minute, nbytes))


class Pace:
    """Spreads the requests of each address over time, so that many of them do not delay those of others.

    Args:
        per_second: Requests of one address that may begin in a second.
        burst: How many begin at once after a pause.
        longest: Seconds that a request waits at most; beyond that it is refused.
        addresses: Number of addresses to remember; beyond that the least recently seen is discarded.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        longest: float = 2.0,
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._step, self._burst, self._longest = 1 / per_second, burst, longest
        self._clock = clock
        self._next: LRUCache[str, float] = LRUCache(addresses)  # when the next request of each may begin

    def wait(self, address: str) -> float:
        """How many seconds the request that has come must wait; ``RequestRefused`` if that is too long."""
        now = self._clock()
        begin = max(self._next.get(address, 0.0), now - (self._burst - 1) * self._step)
        if begin - now > self._longest:
            raise RequestRefused(429, "You send too many requests: wait a few seconds, then go on more slowly.")
        self._next[address] = begin + self._step
        return max(0.0, begin - now)


class FileCounter:
    """Counts the files of an upload, or a few more, while its body arrives in pieces.

    Each part of a multipart body needs a header ``Content-Disposition``, so there are never more files than that.
    """

    _HEADER = b"content-disposition"

    def __init__(self) -> None:
        self._tail = b""

    def count(self, piece: bytes) -> int:
        """The number of files that begin in a piece of the body, and in the one before if they end here."""
        text = self._tail + piece.lower()
        self._tail = text[1 - len(self._HEADER) :]
        return text.count(self._HEADER)
