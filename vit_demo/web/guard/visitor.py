"""Who sends the request that is being handled, and whether anybody still waits for its result."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gradio.context import LocalContext
from starlette.types import Scope

from vit_demo.service.job import owner
from vit_demo.web.guard.headers import client_address, tool_call

UNHEARD_SECONDS = 10.0
"""Time after which an event stops whose stream nobody opened, or opened again."""


def ask_for(scope: Scope | None = None) -> None:
    """Lets the jobs of this context count for the visitor whose request is handled.

    Without ``scope`` that is an event, which runs in a task of Gradio's queue and has its request there.
    """
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
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]
            now = time.monotonic()
            self._left = {one: then for one, then in self._left.items() if now - then < UNHEARD_SECONDS}
            self._left[name] = now

    def is_open(self, name: str | None) -> bool:
        """Whether somebody listens now."""
        return name is not None and name in self._open

    def was_open(self, name: str | None) -> bool:
        """Whether somebody listened within the last ``UNHEARD_SECONDS``."""
        return name is not None and time.monotonic() - self._left.get(name, float("-inf")) < UNHEARD_SECONDS


streams = Streams()
"""Those of this process."""


def is_heard(since: float) -> bool:
    """Whether the result of the event that is handled is still waited for.

    It began at ``since``, in seconds of ``time.monotonic``; its stream may be opened a little later.
    """
    scope = _scope_of_event()
    if scope is not None and (call := tool_call(scope)) is not None:
        return streams.is_open(call[0])  # all tools share one session, whose stream stays open
    event, request = LocalContext.event_id.get(None), LocalContext.request.get(None)
    if event is None or time.monotonic() - since < UNHEARD_SECONDS:
        return True
    names = (event, getattr(request, "session_hash", None))
    return any(streams.is_open(name) or streams.was_open(name) for name in names)
