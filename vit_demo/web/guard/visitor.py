"""The visitor who sends the request being handled, and whether that visitor still waits for its result."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gradio.context import LocalContext
from starlette.types import Scope

from vit_demo.service.job import owner
from vit_demo.web.guard.headers import client_address, tool_call

STREAM_SECONDS = 10.0  # time after which an event stops if nobody opens its stream, or opens it again
MAX_UNCOLLECTED = 16  # results of all visitors that wait for a stream; beyond, the oldest is dropped


def set_owner(scope: Scope | None = None) -> None:
    """Assigns the jobs of this context to who sends a request; for None, the event that Gradio's queue handles."""
    scope = _scope_of_event() if scope is None else scope
    if scope is not None:
        owner.set(client_address(scope))


def _scope_of_event() -> Scope | None:
    request = LocalContext.request.get(None)
    return getattr(getattr(request, "request", None), "scope", None)


class Streams:
    """The open streams of results, by session or event."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._left: dict[str, float] = {}

    @contextmanager
    def listening(self, name: str) -> Iterator[None]:
        """Counts a stream while it is open."""
        self._open[name] += 1
        try:
            yield
        finally:
            self._open -= Counter([name])  # keeps no zeros
            now = time.monotonic()
            self._left = {left: end for left, end in self._left.items() if now - end < STREAM_SECONDS}
            self._left[name] = now

    def is_open(self, name: str | None) -> bool:
        """Whether a stream is open."""
        return name is not None and name in self._open

    def was_open(self, name: str | None) -> bool:
        """Whether a stream was closed within the last ``STREAM_SECONDS``."""
        return name is not None and time.monotonic() - self._left.get(name, float("-inf")) < STREAM_SECONDS


streams = Streams()  # the streams of this process


_uncollected: list[object] = []


def is_awaited(since: float) -> bool:
    """Whether somebody still waits for the result of the event being handled, which began at ``since``, monotonic."""
    names, is_tool = _stream_names()
    if not names or (not is_tool and time.monotonic() - since < STREAM_SECONDS):
        return True
    return any(streams.is_open(name) or (not is_tool and streams.was_open(name)) for name in names)


async def wait_for_stream() -> bool:
    """Waits until the stream for the result of the event being handled is open; False if it is not opened in time.

    Gradio would keep the result until somebody collects it.
    """
    names, _ = _stream_names()
    since = time.monotonic()
    _uncollected.append(place := object())
    try:
        while names and not any(map(streams.is_open, names)):
            if time.monotonic() - since > STREAM_SECONDS or place not in _uncollected[-MAX_UNCOLLECTED:]:
                return False
            await asyncio.sleep(0.01)
        return True
    finally:
        _uncollected.remove(place)


def _stream_names() -> tuple[list[str], bool]:
    """The names under which the result of the event being handled may be collected, and whether a tool was called."""
    scope = _scope_of_event()
    if scope is not None and (call := tool_call(scope)) is not None:
        return [call[0]], True  # all tools share one session, whose stream stays open
    event, request = LocalContext.event_id.get(None), LocalContext.request.get(None)
    return [name for name in (event, getattr(request, "session_hash", None)) if name] if event else [], False
