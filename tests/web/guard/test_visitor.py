"""Whose request it is, and that nothing goes on for a visitor who has left."""

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from vit_demo.service import job, jobs
from vit_demo.service.engine import get_engine
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.guard import visitor
from vit_demo.web.guard.quota import Pace
from vit_demo.web.requests.payload import data_url

from ...asynchronous import PATIENCE, until
from ..http_requests import ask, request

DRAWING = data_url(example_picture(3))


@pytest.fixture
def page(page, monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    return page


def begin(page, address: str, endpoint: str = "predict") -> tuple[int, bytes]:
    """Begins an event for an address, and collects nothing."""
    data = [DRAWING, "digits-tiny", 4]
    headers = {"Content_Type": "application/json", "X_Forwarded_For": address}
    body = json.dumps({"data": data}).encode()
    return request(page, "POST", f"/gradio_api/call/{endpoint}", body, **headers)[::2]


@pytest.fixture
def blocked(page, monkeypatch):
    """Every job reports, and does nothing else until it is told; gives the owners of those that began.

    No event is left to begin in the next test.
    """
    owners, go_on, stopped = [], threading.Event(), []
    real = job.Job.execute

    def execute(self):
        def work():
            owners.append(set(self.owners))
            try:
                until(lambda: job.report(1, 2) or go_on.is_set())
            except job.Cancelled:
                stopped.append(self)
                raise

        self._work = work
        return real(self)  # whether it is over

    monkeypatch.setattr(jobs.Job, "execute", execute)
    yield owners, stopped
    go_on.set()
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.0)  # nobody collects their results
    until(lambda: not len(page._queue) and not any(page._queue.active_jobs) and not get_engine().jobs._active)


def test_a_job_ends_when_nobody_opens_the_stream_of_its_event(page, blocked, monkeypatch):
    owners, stopped = blocked
    status, reply = begin(page, "203.0.113.1")
    assert status == 200 and json.loads(reply)["event_id"]
    until(lambda: owners)
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.0)
    monkeypatch.setattr(job, "GRACE", 0.0)
    until(lambda: stopped)
    assert owners == [{"203.0.113.1"}], "it counts for the visitor who asked"


def test_an_event_has_a_limit_of_time_although_its_stream_is_open(page, blocked, monkeypatch):
    owners, stopped = blocked
    name = json.loads(begin(page, "203.0.113.1")[1])["event_id"]
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(request, page, "GET", f"/gradio_api/call/predict/{name}")
        until(lambda: owners)
        monkeypatch.setattr("vit_demo.web.api.registration.EVENT_SECONDS", 0.0)
        monkeypatch.setattr(job, "GRACE", 0.0)
        reply = stream.result()[2]
    assert b"event: error" in reply and b"choose a smaller model" in reply
    until(lambda: stopped)


def test_a_request_of_the_page_counts_for_the_visitor_who_sends_it(page, blocked):
    owners, _ = blocked
    source = {"drawing": DRAWING, "preset": "digits-tiny", "patch_size": 2, "fit": "crop"}
    assert ask(page, {"kind": "result", "source": source}, X_Forwarded_For="203.0.113.4")[0] == 200
    assert owners == [{"203.0.113.4"}]


def test_a_job_ends_when_the_caller_of_its_tool_leaves_and_others_may_call_tools(page, blocked, monkeypatch):
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    monkeypatch.setattr("vit_demo.web.api.mcp.MAX_TOOL_CALLS_OF_ONE", 1)
    owners, stopped = blocked

    def connected(address: str, tool: str, **arguments: Any) -> http.client.HTTPConnection:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=PATIENCE)
        connection.request("POST", "/gradio_api/mcp/", json.dumps(body), {**headers, "X-Forwarded-For": address})
        return connection

    with closing(connected("203.0.113.8", "predict", image=DRAWING, preset="digits-tiny", patch_size=14)):
        until(lambda: owners == [{"203.0.113.8"}])
        for address, expected in (("203.0.113.8", b"Too many tools"), ("203.0.113.9", b"tabby cat")):
            with closing(connected(address, "presets")) as other:
                assert expected in other.getresponse().read()
        monkeypatch.setattr(job, "GRACE", 0.0)
    until(lambda: stopped)


def test_an_address_has_its_share_of_events(page, blocked, monkeypatch):
    monkeypatch.setattr("vit_demo.web.guard.event_checks.MAX_EVENTS_OF_ONE", 2)
    replies = [begin(page, "203.0.113.42") for _ in range(3)]
    assert [status for status, _ in replies] == [200, 200, 429], replies
    assert begin(page, "203.0.113.43")[0] == 200


def test_requests_with_a_body_keep_the_pace_of_their_address(page, blocked, monkeypatch):
    monkeypatch.setattr("vit_demo.web.guard.security.REFUSED_SECONDS", 0.0)
    wait = Pace(per_second=0.1, burst=4).wait  # each has a number and a length
    monkeypatch.setattr("vit_demo.web.guard.security.Pace.wait", lambda _, address, count=1: wait(address))
    assert [begin(page, "203.0.113.5")[0] for _ in range(3)] == [200, 200, 429]
    assert begin(page, "203.0.113.6")[0] == 200


def test_requests_without_a_body_keep_the_pace_of_their_address(page, monkeypatch):
    monkeypatch.setattr("vit_demo.web.guard.security.REFUSED_SECONDS", 0.0)
    monkeypatch.setattr("vit_demo.web.guard.security.Pace.wait", Pace(per_second=0.1, burst=2).wait)
    found = [request(page, "GET", "/healthz", X_Forwarded_For="203.0.113.29")[0] for _ in range(3)]
    assert found == [200, 200, 429]


def test_streams_are_counted_while_they_are_open(monkeypatch):
    streams = visitor.Streams()
    with streams.listening("one"), streams.listening("one"):
        assert streams.is_open("one") and not streams.is_open("other")
    assert not streams.is_open("one") and streams.was_open("one") and not streams.was_open(None)
    monkeypatch.setattr(visitor, "STREAM_SECONDS", 0.0)
    assert not streams.was_open("one")
