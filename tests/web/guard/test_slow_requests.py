"""Bodies that arrive slowly or in tiny pieces, and connections that are only held, keep nobody else waiting."""

import asyncio
import gzip
import json
import time
from collections import Counter
from contextlib import ExitStack
from itertools import count
from typing import Any

import h11
import pytest

from vit_demo.web.guard import bodies, protocol, quota, security
from vit_demo.web.guard.bodies import Arrivals, RequestRefused

from ...asynchronous import run_in_no_time, until
from ..http_requests import connect, guarded, is_open, number_of, request

JOIN = "POST /gradio_api/queue/join HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def head(length: int, address: str = "203.0.113.1") -> bytes:
    return f"{JOIN}X-Forwarded-For: {address}\r\nContent-Length: {length}\r\n\r\n".encode()


def join(page, address: str) -> int:
    body = {"data": [], "fn_index": number_of(page, "presets"), "session_hash": "someone"}
    return request(page, "POST", "/gradio_api/queue/join", body, X_Forwarded_For=address)[0]


@pytest.fixture(autouse=True)
def behind_a_proxy(monkeypatch):
    monkeypatch.setenv("VIT_DEMO_PROXY", "1")


@pytest.fixture
def connections(page):
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(page))


def test_what_is_announced_takes_no_room(page, connections):
    for number in range(80):
        connections().sendall(head(1_000_000, f"203.0.113.{number % 4}") + b"{")
    assert [join(page, f"203.0.113.{number}") for number in range(5)] == [200] * 5


def test_a_body_has_a_least_rate_and_an_end(page, connections, monkeypatch):
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.3)
    slow = connections()
    slow.sendall(head(1000) + b"{")
    assert slow.recv(12) == b"HTTP/1.1 408"
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    late = connections()
    late.sendall(head(1_000_000) + b" " * 500_000)
    assert late.recv(12) == b"HTTP/1.1 408", "however much has arrived"


@pytest.mark.parametrize(("pause", "arrives"), [(0.45, True), (0.9, False)])
def test_a_body_may_take_longer_than_the_pause_at_the_least_rate(pause, arrives):
    async def receive():
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": b" " * 5000, "more_body": next(left) > 0}

    left = iter(range(19, -1, -1))
    if arrives:
        assert len(run_in_no_time(Arrivals().read("a", receive))) == 100_000
    else:
        with pytest.raises(RequestRefused, match="took too long"):
            run_in_no_time(Arrivals().read("a", receive))


def test_an_upload_has_a_least_rate_too(page, connections, monkeypatch):
    monkeypatch.setattr(bodies, "PAUSE_SECONDS", 0.2)
    upload = connections()
    kind = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000"
    upload.sendall(f"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\n{kind}\r\n\r\n--b\r\n".encode())
    assert upload.recv(12) == b"HTTP/1.1 408"


def test_the_slowest_of_who_holds_most_goes_before_a_newcomer(monkeypatch):
    monkeypatch.setattr(bodies, "MAX_UNFINISHED_BYTES", 100_000)
    arrivals = Arrivals()

    def sender(*pieces: int):
        """Sends so many bytes at a time; the end of the body never comes after a 0."""
        left = iter(pieces)

        async def receive():
            size = next(left)
            if not size:
                await asyncio.sleep(30)
            return {"type": "http.request", "body": b" " * size, "more_body": size != 1}

        return receive

    async def run():
        first = [asyncio.create_task(arrivals.read("a", sender(40_000, 0))) for _ in range(2)]
        modest = asyncio.create_task(arrivals.read("b", sender(10_000, 0)))
        await asyncio.sleep(1)
        assert len(await arrivals.read("c", sender(20_000, 1))) == 20_001, "the newcomer"
        done, _ = await asyncio.wait([*first, modest], return_when=asyncio.FIRST_COMPLETED)
        assert done == {first[0]}, "the one that has been arriving longest"
        with pytest.raises(RequestRefused, match="took too long"):
            first[0].result()
        for task in (first[1], modest):
            task.cancel()
        await asyncio.gather(*first, modest, return_exceptions=True)
        assert not arrivals._held, "what has ended is forgotten"

    run_in_no_time(run())


def test_little_is_parsed_at_once(page, connections, monkeypatch):
    most = Counter[str]()
    real = h11.Connection.receive_data

    def receive_data(self, data):
        most["bytes"] = max(most["bytes"], len(data))
        return real(self, data)

    monkeypatch.setattr(protocol.Connection, "receive_data", receive_data)
    sender = connections()
    sender.sendall(head(600_000) + b" " * 600_000)
    assert sender.recv(12) == b"HTTP/1.1 400"
    assert 0 < most["bytes"] <= protocol.READ_BYTES


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_chunks_are_refused_unparsed_and_the_connection_ends(page, connections, method, monkeypatch):
    events: list[type] = []
    real = protocol.Connection.next_event

    def next_event(self):
        event = real(self)
        events.append(type(event))
        return event

    monkeypatch.setattr(protocol.Connection, "next_event", next_event)
    sender = connections()
    path = "/gradio_api/queue/join" if method == "POST" else "/healthz"
    sender.sendall(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + b"1\r\n \r\n" * 99
    )
    reply = b"".join(iter(lambda: sender.recv(4096), b""))  # until it ends
    assert reply.startswith(b"HTTP/1.1 411") and b"Content-Length" in reply
    assert h11.Request in events and h11.Data not in events


def test_a_request_that_needs_no_body_has_none(page, connections):
    sender = connections()
    sender.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
    assert b"".join(iter(lambda: sender.recv(4096), b"")).startswith(b"HTTP/1.1 400")
    assert request(page, "GET", "/healthz", Content_Length="0")[0] == 200


def replies_of(
    addresses: tuple[bytes, ...], method: str, path: str, body: bytes = b"", more: tuple[tuple[bytes, bytes], ...] = ()
) -> list[tuple[int, float]]:
    """Status and seconds of a request from each address to an application behind the guard that answers at once."""
    replies = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        if status := message.get("status"):
            replies.append((status, asyncio.get_running_loop().time() - begun[-1]))

    async def run():
        guard = guarded(app)
        sent = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")] if body else []
        for address in addresses:
            headers = [(b"host", b"x"), (b"x-forwarded-for", address), *sent, *more]
            scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
            begun.append(asyncio.get_running_loop().time())
            await guard(scope, receive, send)

    begun = list[float]()
    run_in_no_time(run())
    return replies


def statuses_of(*request: Any) -> list[int]:
    return [status for status, _ in replies_of(*request)]


def test_files_have_a_pace_that_other_addresses_do_not_share(page, monkeypatch):
    monkeypatch.setattr(security, "FILES_PER_SECOND", 0.1)
    monkeypatch.setattr(security, "FILES_AT_ONCE", 4)
    monkeypatch.setattr(security, "FILES_WAIT_SECONDS", 0.0)
    found = statuses_of((b"203.0.113.1",) * 5 + (b"203.0.113.2",), "GET", "/healthz")
    assert found == [200, 200, 200, 200, 429, 200]


REFUSED = {
    "a closed route": ("GET", "/nothing", b"", (), 404),
    "a closed method": ("PUT", "/gradio_api/queue/join", b"{}", (), 404),
    "a file of the server": ("GET", "/gradio_api/file=/etc/passwd", b"", (), 404),
    "a long path": ("GET", "/assets/" + "a" * 3000, b"", (), 404),
    "a long header": ("GET", "/", b"", ((b"x-other", b"a" * 5000),), 431),
    "no host": ("GET", "/", b"", ((b"x-forwarded-host", b"a b"),), 400),
    "another site": ("POST", "/gradio_api/cancel", b"{}", ((b"origin", b"http://evil.example"),), 403),
    "chunks": ("POST", "/gradio_api/queue/join", b"", ((b"transfer-encoding", b"chunked"),), 411),
    "a body of a request that has none": ("GET", "/healthz", b"{}", (), 400),
    "a length with zeros": ("POST", "/gradio_api/queue/join", b"", ((b"content-length", b"04"),), 400),
    "no JSON": ("POST", "/gradio_api/vit_demo/request", b"{", (), 400),
    "deep JSON": ("POST", "/gradio_api/vit_demo/request", b"[" * 200 + b"]" * 200, (), 400),
    "too much JSON": ("POST", "/gradio_api/queue/join", b"[" + b"[]," * 30_000 + b"[]]", (), 413),
    "no such endpoint": ("POST", "/gradio_api/call/nothing", b"{}", (), 404),
    "no such stream": ("GET", "/gradio_api/call/predict/nothing", b"", (), 404),
    "an upload without a length": ("POST", "/gradio_api/vit_demo/photo", b"", (), 411),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_the_pace_of_what_is_served(name, monkeypatch):
    for pace in ("FILES", "REQUESTS"):
        monkeypatch.setattr(security, f"{pace}_PER_SECOND", 0.1)
        monkeypatch.setattr(security, f"{pace}_AT_ONCE", 2)
    monkeypatch.setattr(security, "FILES_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(security, "REFUSED_SECONDS", 0.0)
    method, path, body, more, status = REFUSED[name]
    found = statuses_of((b"203.0.113.1",) * 3 + (b"203.0.113.2",), method, path, body, more)
    assert found == [status, status, 429, status]


def test_too_many_requests_wait_before_they_are_refused(monkeypatch):
    monkeypatch.setattr(security, "FILES_PER_SECOND", 0.1)
    monkeypatch.setattr(security, "FILES_AT_ONCE", 1)
    monkeypatch.setattr(security, "FILES_WAIT_SECONDS", 0.0)
    late = security.REFUSED_SECONDS
    assert replies_of((b"203.0.113.1",) * 3, "GET", "/healthz") == [(200, 0.0), (429, late), (429, late)]


def test_what_is_not_http_waits_before_it_is_refused(page, connections, monkeypatch, capfd):
    monkeypatch.setattr(protocol, "INVALID_SECONDS", 0.4)
    good = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for sent, first in ((b"x\r\n\r\n", b"400"), (good + b"x\r\n\r\n" * 9, b"200"), (b"\0" * 6000, b"400")):
        sender, started = connections(), time.monotonic()
        sender.sendall(sent)
        reply = b"".join(iter(lambda sender=sender: sender.recv(4096), b""))  # until it ends
        assert reply.startswith(b"HTTP/1.1 " + first) and reply.count(b"HTTP/1.1 400") <= 1
        assert time.monotonic() - started >= 0.4
    assert "Traceback" not in capfd.readouterr().err


def test_requests_under_way_have_a_limit_in_all_and_for_an_address(page, connections, monkeypatch):
    for name, most in (("MAX_REQUESTS", 6), ("MAX_REQUESTS_OF_ONE", 4), ("MAX_REQUESTS_WHEN_FULL", 1)):
        monkeypatch.setattr(security, name, most)
    numbers = count()

    def stream(address: str) -> bytes:
        opened = connections()
        path = f"/gradio_api/heartbeat/s{next(numbers)}"
        opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {address}\r\n\r\n".encode())
        return opened.recv(12)[-3:]

    assert [stream("203.0.113.1") for _ in range(6)] == [b"200"] * 4 + [b"429"] * 2
    assert [stream("203.0.113.2") for _ in range(4)] == [b"200"] * 2 + [b"429"] * 2, "now there are six"
    assert stream("203.0.113.3") == b"200" and stream("203.0.113.3") == b"429", "a newcomer has one"


def test_connections_have_a_limit_and_silent_ones_end_first(page, connections, monkeypatch):
    until(lambda: not page.server.server_state.connections)  # those of other tests are idle, and end after five seconds
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 4)
    busy = connections()
    busy.sendall(head(1_000_000) + b"{" + b" " * 60_000)
    until(lambda: any(peer.cycle for peer in page.server.server_state.connections))
    silent = [connections() for _ in range(6)]
    until(lambda: sum(map(is_open, silent)) == 3)
    assert is_open(busy)
    assert request(page, "GET", "/healthz")[0] == 200, "a newcomer is served"


def test_connections_of_one_address_have_a_limit(page, connections, monkeypatch):
    monkeypatch.setattr(protocol, "client_address", lambda scope: "203.0.113.1")
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS_OF_ONE", 2)
    of_a_proxy = [connections() for _ in range(5)]
    until(lambda: len(page.server.server_state.connections) >= 5)
    assert all(map(is_open, of_a_proxy)), "a proxy has its own limits"
    monkeypatch.setenv("VIT_DEMO_PROXY", "0")
    own = [connections() for _ in range(5)]
    until(lambda: sum(map(is_open, own)) == 2)


def test_the_bytes_of_bodies_have_a_pace_that_other_addresses_do_not_share(monkeypatch):
    monkeypatch.setattr(security, "BODY_BYTES_PER_SECOND", 1000)
    monkeypatch.setattr(security, "BODY_BYTES_AT_ONCE", 30_000)
    body = json.dumps({"data": "x" * 10_000}).encode()
    found = statuses_of((b"203.0.113.1",) * 6 + (b"203.0.113.2",), "POST", "/mcp/", body)
    assert found == [200, 200, 200, 429, 429, 429, 200]


def live(*lengths: int, address: bytes = b"203.0.113.1", path: str = "/gradio_api/vit_demo/live") -> list[int]:
    return [statuses_of((address,), "POST", path, b'"' + b"x" * (length - 2) + b'"')[0] for length in lengths]


def test_live_requests_count_by_their_bytes_and_no_other_request_waits_for_them(monkeypatch):
    """Each way through the guard is a new one here, so all of them share what it counts."""
    paces: dict[tuple[float, float], quota.Pace] = {}
    monkeypatch.setattr(
        security, "Pace", lambda *given: paces.setdefault(given[:2], quota.Pace(*given, clock=lambda: 0.0))
    )
    monkeypatch.setattr(security, "LIVE_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(security, "LIVE_BYTES_AT_ONCE", 40_000)
    assert live(*[1000] * 11) == [200] * 10 + [429], "a drawing counts at least 4 kB"
    assert live(20_000, 20_000, 100, address=b"203.0.113.2") == [200, 200, 429], "a frame counts as five"
    other = "/gradio_api/vit_demo/request"
    assert live(*[1000] * 50, path=other) == [200] * 50, "the address that is told to wait works on"
    assert live(security.MAX_LIVE_BYTES + 1, address=b"203.0.113.3") == [413]


def test_a_class_behind_one_address_draws_live():
    """30 pupils, four drawings of 4 kB a second each, for a minute, beside a few ordinary requests."""
    now = [0.0]
    pace = quota.Pace(
        security.LIVE_BYTES_PER_SECOND,
        security.LIVE_BYTES_AT_ONCE,
        security.LIVE_WAIT_SECONDS,
        clock=lambda: now[0],
    )
    for _ in range(60 * 4):
        assert max(pace.wait("a school", security.LIVE_DRAWING_BYTES) for _ in range(30)) < 0.1
        now[0] += 0.25


def test_the_route_of_live_requests_answers_them_and_nothing_else(page):
    source = {"example": "digit-3", "preset": "digits-tiny", "patch_size": 14, "fit": "crop"}

    def post(**fields) -> dict:
        status, headers, reply = request(page, "POST", "/gradio_api/vit_demo/live", {"source": source, **fields})
        assert status == 200 and headers["content-encoding"] == "gzip"
        return json.loads(gzip.decompress(reply))

    assert post(kind="result", live="page")["result"]["predictions"]["labels"][0] == "3"
    for other in (
        {"kind": "result"},
        {"kind": "faithfulness", "live": "page", "method": "rollout"},
        {"kind": "models"},
    ):
        assert "A live request is for a result" in post(**other)["error"]
    sent = {"kind": "result", "live": "page", "source": source}
    refused = request(page, "POST", "/gradio_api/vit_demo/request", sent)[2]
    assert b"A live request is for a result" in gzip.decompress(refused), "which would count for less"
