"""How much each address may send in a time, counted in requests or in bytes."""

import math
import time
from collections.abc import Callable

from cachetools import LRUCache

from vit_demo.web.guard.bodies import RequestRefused


class Pace:
    """Spreads what each address sends over time, so that much of it does not delay what others send.

    Args:
        per_second: Requests, or bytes, of one address that may begin in a second.
        burst: How many begin at once after a pause.
        longest: Seconds that a request waits at most; beyond that it is refused.
        refusal: What its sender is then told.
        addresses: Number of addresses to remember; beyond that the least recently seen is discarded.
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
        self._used: LRUCache[str, float] = LRUCache(addresses)  # until when each has used up its share

    def wait(self, address: str, count: int = 1) -> float:
        """How many seconds a request must wait that counts so much; ``RequestRefused`` if that is too long."""
        now = self._clock()
        until = max(self._used.get(address, -math.inf), now - self._burst * self._step) + count * self._step
        if until - now > self._longest:
            raise RequestRefused(429, self._refusal)
        self._used[address] = until
        return max(0.0, until - now)
