"""Bounded queues of the messages that Gradio keeps for each session until it collects them.

Gradio limits only the number of sessions, not the messages of each or the time for which they are kept.
"""

import sys
import time
from asyncio import Queue
from collections import OrderedDict
from typing import Any

import gradio as gr

from vit_demo.web.guard.visitor import streams

MAX_SESSION_BYTES = 16_000_000
"""What one session may leave uncollected; beyond that its events are refused."""

MAX_UNCOLLECTED_BYTES = 64_000_000
"""What all sessions may hold; beyond that the oldest are dropped."""

SESSION_BYTES, MESSAGE_BYTES = 32_000, 128_000
"""What each session and each message count besides the bytes of results: 2,000 sessions or 500 messages fit."""

UNCOLLECTED_SECONDS = 300.0
"""Time after which a session that does not collect its messages is dropped."""


class SessionQueue(Queue[Any]):
    """The messages of one session, and the ``bytes`` that they and the session count together."""

    bytes = SESSION_BYTES

    def _put(self, item: Any) -> None:
        size = MESSAGE_BYTES + _size(getattr(item, "output", None))
        self.bytes += size
        super()._put((item, size))

    def _get(self) -> Any:
        item, size = super()._get()
        self.bytes -= size
        return item


class SessionQueues(OrderedDict[str, SessionQueue]):
    """The queue of each session, oldest first; to be used in the event loop of the server.

    Args:
        event_ids: Gradio's record of the events of each session whose results were not collected.
    """

    def __init__(self, event_ids: dict[str, set[str]]) -> None:
        super().__init__()
        self._event_ids = event_ids
        self._full_since: dict[str, float] = {}

    def __setitem__(self, session: str, messages: Queue[Any]) -> None:
        super().__setitem__(session, SessionQueue())  # instead of Gradio's, which is still empty
        self._make_room(session)

    def __missing__(self, session: str) -> SessionQueue:
        """A queue that nobody reads, for an event whose session was dropped."""
        return SessionQueue()

    def __delitem__(self, session: str) -> None:
        # Gradio deletes a session once for every stream that breaks off; a KeyError would stop its cleanup.
        if session in self:
            super().__delitem__(session)

    def has_room(self, session: str | None) -> bool:
        """Whether a session may begin another event; drops the oldest sessions if all hold too much."""
        self._make_room(session)
        return session is None or session not in self or self[session].bytes < MAX_SESSION_BYTES

    def forget(self) -> None:
        """Drops sessions with nothing to collect, and those that did not collect in time."""
        now = time.monotonic()
        full = {session: messages.qsize() > 0 for session, messages in self.items()}
        self._full_since = {session: self._full_since.get(session, now) for session, is_full in full.items() if is_full}
        for session, is_full in full.items():
            is_late = is_full and now - self._full_since[session] >= UNCOLLECTED_SECONDS
            if is_late or not (is_full or self._event_ids.get(session)):
                self._drop(session)
        for session in [session for session in self._event_ids if session not in self]:
            del self._event_ids[session]

    def _make_room(self, kept: str | None) -> None:
        """While all sessions hold too much, drops the oldest others without a stream, first those with no event."""
        size = sum(messages.bytes for messages in self.values())
        if size <= MAX_UNCOLLECTED_BYTES:
            return
        others = [session for session in self if session != kept and not streams.is_open(session)]
        for session in sorted(others, key=lambda session: bool(self._event_ids.get(session))):
            if size <= MAX_UNCOLLECTED_BYTES:
                break
            size -= self[session].bytes
            self._drop(session)

    def _drop(self, session: str) -> None:
        del self[session]
        self._event_ids.pop(session, None)


def _size(value: Any) -> int:
    """The approximate bytes of a result: those of its texts, and 8 for each other value."""
    if isinstance(value, dict):
        return sum(map(_size, value)) + sum(map(_size, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return len(value) if isinstance(value, (str, bytes)) else 8


def of(page: gr.Blocks) -> SessionQueues:
    """The session queues that ``install`` gave a page."""
    queues = page._queue.pending_messages_per_session
    assert isinstance(queues, SessionQueues)
    return queues


def install(page: gr.Blocks) -> None:
    """Replaces Gradio's collection by ``SessionQueues``, before the first request."""
    queue = page._queue
    queue.pending_messages_per_session = SessionQueues(queue.pending_event_ids_session)  # type: ignore[assignment]
    # For each event Gradio recomputes statistics of the last 10,000, which only the closed /monitoring shows.
    queue.ANALYTICS_MAX_EVENTS = 1
    queue.ANAYLTICS_CACHE_FREQUENCY = sys.maxsize
