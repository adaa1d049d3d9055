"""The messages that wait for their sessions: bounded in number, bytes and time."""

from __future__ import annotations

import asyncio
import time

from gradio.server_messages import ProcessCompletedMessage

from vit_demo.web.guard import session_queues, visitor
from vit_demo.web.guard.limits import MAX_SESSION_MESSAGES, MAX_UNCOLLECTED_MESSAGES
from vit_demo.web.guard.session_queues import Mailboxes


def test_results_that_nobody_collects_are_bounded_in_bytes(monkeypatch):
    assert session_queues.MAX_SESSION_BYTES <= 16_000_000 and session_queues.MAX_UNCOLLECTED_BYTES <= 64_000_000
    monkeypatch.setattr(session_queues, "MAX_SESSION_BYTES", 1000)
    monkeypatch.setattr(session_queues, "MAX_UNCOLLECTED_BYTES", 2500)
    boxes = Mailboxes({})

    def add(session: str, size: int) -> None:
        boxes.setdefault(session, asyncio.Queue())
        output = {"data": [{"tokens": "x" * size, "scores": [0.5] * 4}]}
        boxes[session].put_nowait(ProcessCompletedMessage(output=output, success=True))

    add("one", 900)
    assert boxes.has_room("one") and boxes.has_room(None)
    add("one", 900)
    assert not boxes.has_room("one") and boxes.has_room("two")
    boxes["one"].get_nowait()
    assert boxes.has_room("one"), "what was collected no longer counts"
    boxes["one"].get_nowait()
    assert boxes["one"].bytes == 0
    for session in ("one", "two", "three"):
        add(session, 900)
    assert boxes.has_room("four") and list(boxes) == ["two", "three"], "the oldest were dropped"


def test_mailboxes_forget_what_was_collected_and_what_nobody_collects(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    event_ids = {name: {f"event of {name}"} for name in ("full", "running", "lost")} | {"collected": set()}
    boxes = Mailboxes(event_ids)
    for name in ("collected", "full", "running"):
        boxes[name] = asyncio.Queue()
    boxes["full"].put_nowait("a message")
    boxes.forget()
    assert set(boxes) == set(event_ids) == {"full", "running"}
    now[0] += session_queues.UNCOLLECTED_SECONDS - 1
    boxes.forget()
    assert "full" in boxes
    now[0] += 1
    boxes.forget()
    assert list(boxes) == list(event_ids) == ["running"]
    boxes["full"].put_nowait("too late")  # as Gradio does when an event ends whose session is gone
    del boxes["full"]
    assert list(boxes) == ["running"]


def test_mailboxes_are_bounded_in_number(monkeypatch):
    monkeypatch.setattr(session_queues, "MAX_MAILBOXES", 3)
    event_ids: dict[str, set[str]] = {}
    boxes = Mailboxes(event_ids)
    for name in "abcde":
        boxes[name], event_ids[name] = asyncio.Queue(), {name}
    assert list(boxes) == ["c", "d", "e"] and not {"a", "b"} & event_ids.keys()
    with visitor.streams.listening("c"):
        event_ids["d"].clear()
        boxes["f"] = asyncio.Queue()
        assert list(boxes) == ["c", "e", "f"], "the idle one first"
        boxes["g"] = asyncio.Queue()
        boxes["h"] = asyncio.Queue()
        assert "c" in boxes, "never one whose stream is open"
    assert MAX_SESSION_MESSAGES <= MAX_UNCOLLECTED_MESSAGES
