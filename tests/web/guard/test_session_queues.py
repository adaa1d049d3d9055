"""The messages that wait for their sessions: bounded in number, bytes and time."""

from __future__ import annotations

import asyncio
import time

from gradio.server_messages import ProcessCompletedMessage

from vit_demo.web.guard import session_queues, visitor
from vit_demo.web.guard.session_queues import MAX_SESSION_MESSAGES, MAX_UNCOLLECTED_MESSAGES, SessionQueues


def test_results_that_nobody_collects_are_bounded_in_bytes(monkeypatch):
    assert session_queues.MAX_SESSION_BYTES <= 16_000_000 and session_queues.MAX_UNCOLLECTED_BYTES <= 64_000_000
    monkeypatch.setattr(session_queues, "MAX_SESSION_BYTES", 1000)
    monkeypatch.setattr(session_queues, "MAX_UNCOLLECTED_BYTES", 2500)
    queues = SessionQueues({})

    def add(session: str, size: int) -> None:
        queues.setdefault(session, asyncio.Queue())
        output = {"data": [{"tokens": "x" * size, "scores": [0.5] * 4}]}
        queues[session].put_nowait(ProcessCompletedMessage(output=output, success=True))

    add("one", 900)
    assert queues.has_room("one") and queues.has_room(None)
    add("one", 900)
    assert not queues.has_room("one") and queues.has_room("two")
    queues["one"].get_nowait()
    assert queues.has_room("one"), "what was collected no longer counts"
    queues["one"].get_nowait()
    assert queues["one"].bytes == 0
    for session in ("one", "two", "three"):
        add(session, 900)
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
    monkeypatch.setattr(session_queues, "MAX_SESSIONS", 3)
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
    assert MAX_SESSION_MESSAGES <= MAX_UNCOLLECTED_MESSAGES
