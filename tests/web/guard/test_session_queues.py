"""The messages that wait for their sessions: bounded in number, bytes and time."""

from __future__ import annotations

import asyncio
import time

from gradio.server_messages import ProcessCompletedMessage

from vit_demo.web.guard import session_queues, visitor
from vit_demo.web.guard.session_queues import MESSAGE_BYTES, SESSION_BYTES, SessionQueues


def test_results_that_nobody_collects_are_bounded(monkeypatch):
    monkeypatch.setattr(session_queues, "MAX_SESSION_BYTES", SESSION_BYTES + 2 * MESSAGE_BYTES)
    monkeypatch.setattr(session_queues, "MAX_UNCOLLECTED_BYTES", 3 * (SESSION_BYTES + MESSAGE_BYTES))
    queues = SessionQueues({})

    def add(session: str, size: int) -> None:
        queues.setdefault(session, asyncio.Queue())
        output = {"data": [{"tokens": "x" * size, "scores": [0.5] * 4}]}
        queues[session].put_nowait(ProcessCompletedMessage(output=output, success=True))

    for size, fits in ((MESSAGE_BYTES, 0), (8, 1)):  # one large result, or the number of small ones
        add("one", size)
        assert queues.has_room("one") == bool(fits) and queues.has_room("two") and queues.has_room(None)
        add("one", size)
        assert not queues.has_room("one"), size
        queues["one"].get_nowait()
        queues["one"].get_nowait()
        assert queues.has_room("one") and queues["one"].bytes == SESSION_BYTES, "what was collected no longer counts"
    for session in ("one", "two", "three"):
        add(session, 8)
    assert queues.has_room("four") and list(queues) == ["two", "three"], "the oldest were dropped"


def test_session_queues_forget_what_was_collected_and_what_nobody_collects(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    event_ids = {name: {f"event of {name}"} for name in ("full", "running", "lost")} | {"collected": set()}
    queues = SessionQueues(event_ids)
    for name in ("collected", "full", "running"):
        queues[name] = asyncio.Queue()
    queues["full"].put_nowait("a message")
    queues.forget()
    assert set(queues) == set(event_ids) == {"full", "running"}
    now[0] += session_queues.UNCOLLECTED_SECONDS - 1
    queues.forget()
    assert "full" in queues
    now[0] += 1
    queues.forget()
    assert list(queues) == list(event_ids) == ["running"]
    queues["full"].put_nowait("too late")  # as Gradio does when an event ends whose session is gone
    del queues["full"]
    assert list(queues) == ["running"]


def test_session_queues_are_bounded_in_number(monkeypatch):
    monkeypatch.setattr(session_queues, "MAX_UNCOLLECTED_BYTES", 3 * SESSION_BYTES)
    event_ids: dict[str, set[str]] = {}
    queues = SessionQueues(event_ids)
    for name in "abcde":
        queues[name], event_ids[name] = asyncio.Queue(), {name}
    assert list(queues) == ["c", "d", "e"] and not {"a", "b"} & event_ids.keys()
    with visitor.streams.listening("c"):
        event_ids["d"].clear()
        queues["f"] = asyncio.Queue()
        assert list(queues) == ["c", "e", "f"], "the idle one first"
        queues["g"] = asyncio.Queue()
        queues["h"] = asyncio.Queue()
        assert "c" in queues, "never one whose stream is open"
