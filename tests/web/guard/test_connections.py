"""Connections that nobody needs, or that are read too slowly, end before a newcomer is turned away."""

import asyncio
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from vit_demo.web.guard import bodies, protocol
from vit_demo.web.guard.headers import VISITOR

from ...asynchronous import PATIENCE, until
from ..http_requests import connect, is_open, request
from .test_slow_requests import head
from .test_uploads import send_photo


@pytest.fixture
def connections(page, monkeypatch):
    """Opens connections behind a proxy, which last; those of other tests have ended."""
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")
    for module, name in ((protocol, "IDLE_SECONDS"), (bodies, "PAUSE_SECONDS"), (bodies, "BODY_SECONDS")):
        monkeypatch.setattr(module, name, PATIENCE)
    until(lambda: not page.server.server_state.connections)
    with ExitStack() as stack:

        def start(sent: bytes) -> socket.socket:
            opened = stack.enter_context(connect(page))
            opened.sendall(sent)
            return opened

        yield start


def stream(address: str, path: str = "/gradio_api/heartbeat/abc") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {address}\r\n\r\n".encode()


def opened(page) -> int:
    return len(page.server.server_state.connections)


def test_idle_streams_end_before_a_newcomer_is_turned_away(page, connections, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 5)
    busy = connections(head(1_000_000, "203.0.113.9") + b"{" + b" " * 60_000)
    other = connections(stream("203.0.113.8"))
    assert other.recv(12) == b"HTTP/1.1 200"
    idle = []
    for number in range(6):
        idle.append(connections(stream("203.0.113.1")))
        until(lambda number=number: opened(page) >= min(5, 3 + number))
        assert idle[-1].recv(12) == b"HTTP/1.1 200"
    assert request(page, "GET", "/healthz")[0] == 200, "a newcomer is served"
    assert is_open(busy) and is_open(other), "of who holds most one ends first"
    until(lambda: sum(map(is_open, idle)) == 2)


def test_who_holds_many_makes_room_although_all_are_busy(page, connections, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 5)
    monkeypatch.setattr(protocol, "FEW_CONNECTIONS", 1)
    modest = connections(head(1_000_000, "203.0.113.9") + b"{" + b" " * 90_000)
    greedy = [connections(head(1_000_000, "203.0.113.1") + b"{" + b" " * 90_000) for _ in range(4)]
    until(lambda: opened(page) == 5 and all(peer.visitor for peer in page.server.server_state.connections))
    assert request(page, "GET", "/healthz")[0] == 200
    assert is_open(modest)
    until(lambda: sum(map(is_open, greedy)) == 3)


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Dripped: ", stream("203.0.113.1")],
    ids=["silent", "headers", "stream"],
)
def test_what_is_idle_ends(page, connections, monkeypatch, sent):
    monkeypatch.setattr(protocol, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "READER_SECONDS", 0.1)
    idle, busy = connections(sent), connections(head(1_000_000) + b"{" + b" " * 90_000)
    until(lambda: not is_open(idle))
    assert is_open(busy)


@pytest.fixture
def photo(page):
    """An address from which much can be read."""
    return f"/gradio_api/file={send_photo(page, bytes(20_000_000))}"


def unread(connections, path: str, address: str = "203.0.113.1") -> socket.socket:
    """A connection on which a response waits."""
    connection = connections(stream(address, path))
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_a_response_that_is_not_read_ends_and_one_that_is_read_slowly_arrives(page, photo, connections, monkeypatch):
    monkeypatch.setattr(protocol, "READER_SECONDS", PATIENCE)  # it looks when it is told to
    slow, stuck = unread(connections, photo), unread(connections, photo)
    until(lambda: opened(page) == 2)
    peers = {peer.client[1]: peer for peer in page.server.server_state.connections}
    peer, nbytes = peers[slow.getsockname()[1]], 12
    until(lambda: all(one.unread for one in peers.values()))

    def look() -> None:
        looked = threading.Event()
        peer.loop.call_soon_threadsafe(lambda: [[one._check() for one in peers.values()], looked.set()])
        assert looked.wait(PATIENCE)

    for turn in range(5):
        if turn > 1 and nbytes > 8_000_000:
            break  # the system may hold all that is left, so that nothing waits in the server again
        until(lambda: peer.unread)
        look()
        while peer._unread:
            nbytes += len(slow.recv(1_000_000))
    assert not is_open(stuck)
    while nbytes < 20_000_000:
        piece = slow.recv(1_000_000)
        assert piece
        nbytes += len(piece)


def test_whose_unread_responses_are_largest_loses_one(monkeypatch):
    monkeypatch.setattr(protocol, "MAX_UNREAD_BYTES", 100)
    config, state = uvicorn.Config(lambda: None), ServerState()  # type: ignore[arg-type]

    class Transport:
        """What was written, and whether it was given up."""

        def __init__(self, nbytes: int) -> None:
            self.nbytes, self.is_aborted = nbytes, False

        def get_write_buffer_size(self) -> int:
            return 0 if self.is_aborted else self.nbytes

        def abort(self) -> None:
            self.is_aborted = True

    def peer(address: str, nbytes: int) -> protocol.Protocol:
        made = protocol.Protocol(config, state, {}, _loop=asyncio.new_event_loop())
        made.transport, made.scope = Transport(nbytes), {VISITOR: address}
        made.flow = FlowControl(made.transport)
        state.connections.add(made)
        return made

    greedy = [peer("203.0.113.1", nbytes) for nbytes in (20, 29, 22)]
    modest = peer("203.0.113.2", 28)
    modest.pause_writing()
    assert not any(one.transport.is_aborted for one in (*greedy, modest)), "99 bytes are not too many"
    latest = peer("203.0.113.3", 2)
    latest.pause_writing()
    assert [one.transport.is_aborted for one in (*greedy, modest, latest)] == [False, True, False, False, False]
    for one in (*greedy, modest, latest):
        one.loop.close()


LIMITED = """
import os, resource, subprocess, sys, urllib.request
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from vit_demo.web.server import launch
page = launch("127.0.0.1", wait=False)
flood = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(page.server_port)], stdout=subprocess.PIPE)
flood.stdout.read(1)
for _ in range(3):
    print(urllib.request.urlopen(f"{page.local_url}healthz").status, flush=True)
flood.kill()
os._exit(0)
"""
FLOOD = """
import socket, sys, time
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(240)]
print(1, flush=True)
time.sleep(100)
"""


def test_connections_follow_a_hard_limit_on_descriptors():
    done = subprocess.run([sys.executable, "-c", LIMITED, FLOOD], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split()[-3:] == ["200"] * 3 and "Too many open files" not in done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize(("allowed", "most"), [(64, 8), (256, 78), (1024, 462), (8192, 800)])
def test_each_connection_has_two_descriptors(page, connections, monkeypatch, allowed, most):
    monkeypatch.setattr(protocol, "descriptor_limit", lambda: allowed)
    found = []
    real = protocol.Protocol._peers

    def peers(self):
        found.append(self)
        return real(self)

    monkeypatch.setattr(protocol.Protocol, "_peers", peers)
    opened_now = [connections(b"") for _ in range(min(most, 90) + 3)]
    until(lambda: len(found) >= len(opened_now))
    until(lambda: opened(page) <= most)  # which is told to the loop after the look at all
