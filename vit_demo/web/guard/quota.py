"""Rate limits per address, counted in requests or bytes."""

import math
import time
from collections.abc import Callable

from cachetools import LRUCache

from vit_demo.web.guard.bodies import RequestRefused


class Pace:
    """A rate limit that delays the requests of each address, and refuses those that would wait too long.

    Args:
        per_second: Requests, or bytes, that an address may send per second.
        burst: How many it may send at once after a pause.
        longest: The longest wait in seconds.
        refusal: The message of a refused request.
        addresses: How many addresses are remembered, the most recently seen.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        longest: float = 2.0,
        refusal: str = "You send too many requests: wait a few seconds, then go on more slowly.",
        addresses: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._step, self._burst, self._longest, self._refusal = 1 / per_second, burst, longest, refusal
        self._clock = clock
        self._used: LRUCache[str, float] = LRUCache(addresses)  # the time until which each has used up its share

    def wait(self, address: str, count: int = 1) -> float:
        """The seconds that a request of this size must wait; ``RequestRefused`` if that is too long."""
        now = self._clock()
        until = max(self._used.get(address, -math.inf), now - self._burst * self._step) + count * self._step
        if until - now > self._longest:
            raise RequestRefused(429, self._refusal, wait=until - now - self._longest)
        self._used[address] = until
        return max(0.0, until - now)
