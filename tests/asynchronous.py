"""Waiting in tests: for coroutines, and for what other threads do."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 300
"""Seconds after which a test gives up on a state that does not come: far more than any busy machine needs."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Gives what a coroutine returns, run in another thread, since Playwright keeps a loop running in the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class _Timers(asyncio.SelectorEventLoop):
    """A loop whose time passes only from one of its timers to the next."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._now = max(self._now, self._scheduled[0]._when)
        super()._run_once()


def run_in_no_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """As ``run``, but whoever sleeps is woken at once, in the right order, however busy the machine is."""

    def work() -> T:
        with asyncio.Runner(loop_factory=_Timers) as runner:
            return runner.run(coroutine)

    return at_once(work)[0]


def delay_servers(seed: str) -> None:
    """Makes servers slow at random: what their event loops call comes late, as on a machine that is busy just then."""
    chance, main, run_now = random.Random(seed), threading.main_thread(), asyncio.Handle._run

    def run_late(handle: asyncio.Handle) -> None:
        if threading.current_thread() is not main and chance.random() < 0.03:
            time.sleep(0.04 * chance.random())
        run_now(handle)

    asyncio.Handle._run = run_late


def until(condition: Callable[[], object], pause: Callable[[float], object] = time.sleep) -> None:
    """Waits until a condition holds; pauses in between as another loop has to."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        pause(0.01)


def a_moment(pause: Callable[[float], object] = time.sleep) -> None:
    """Gives what must not happen time to happen: whoever is slow passes the test, too."""
    pause(0.3)


def at_once(*calls: Callable[[], T]) -> list[T]:
    """Gives what functions return that run in as many threads."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]
