"""The configurations in docs/haproxy keep a visitor with one server, and move to another when it fails."""

import re
import shutil
import socket
import subprocess
import threading
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from ..asynchronous import PATIENCE, until
from ..servers import free_port

FOLDER = Path(__file__).parents[2] / "docs" / "haproxy"

pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")


class Replies(BaseHTTPRequestHandler):
    """Replies with the name of the server, the session header and the visitor's address."""

    def do_GET(self) -> None:
        body = f"{self.server.name} {self.headers.get('x-session-id')} {self.headers['x-forwarded-for']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.posts.append(sorted(name.lower() for name in self.headers))
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


def serve(name: str) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replies)
    server.name, server.posts = name, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


@pytest.fixture
def proxy(tmp_path):
    """Starts HAProxy with one of the configurations and other addresses; gives its own."""
    running = []

    def start(name: str, *servers: ThreadingHTTPServer, timeout: str = "300ms") -> str:
        port = free_port()
        text = (FOLDER / name).read_text().replace("bind :8080", f"bind 127.0.0.1:{port}")
        for given in ("http-request 10s", "http-keep-alive 15s"):
            assert f"timeout {given}" in text
            text = text.replace(given, f"{given.split()[0]} {timeout}")  # shorter, for most tests
        ports = iter([server.server_port for server in servers])
        text = re.sub(r"(server \w+ 127\.0\.0\.1:)\d+", lambda found: f"{found[1]}{next(ports)}", text)
        (tmp_path / name).write_text(text)
        running.append(subprocess.Popen(["haproxy", "-db", "-f", str(tmp_path / name)], stderr=subprocess.DEVNULL))
        address = f"http://127.0.0.1:{port}"

        def is_served() -> bool:
            with suppress(httpx.HTTPError):
                return bool(httpx.get(address, timeout=PATIENCE))
            assert running[-1].poll() is None
            return False

        until(is_served)
        return address

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_a_visitor_stays_with_one_server_until_it_fails(proxy):
    servers = {name: serve(name) for name in ("one", "two")}
    address = proxy("pages.cfg", *servers.values())
    visitors = [httpx.Client(base_url=address, timeout=PATIENCE) for _ in range(6)]
    homes = [visitor.get("/").text.split()[0] for visitor in visitors]
    assert set(homes) == {"one", "two"}, "visitors are spread"
    for visitor, home in zip(visitors, homes, strict=True):
        assert {visitor.get("/").text for _ in range(5)} == {f"{home} None 127.0.0.1"}
    servers["one"].shutdown()
    servers["one"].server_close()
    for visitor in visitors:
        assert visitor.get("/").text.split()[0] == "two"
    for visitor in visitors:
        visitor.close()


def test_for_ray_a_cookie_becomes_the_session_header(proxy):
    address = proxy("ray.cfg", serve("ray"))
    sessions = []
    for _ in range(3):
        with httpx.Client(base_url=address, timeout=PATIENCE) as visitor:
            seen = {visitor.get("/").text.split()[1] for _ in range(4)}
            assert len(seen) == 1 and "None" not in seen
            sessions += seen
            assert visitor.cookies["vit_demo"] in seen
    assert len(set(sessions)) == 3
    assert httpx.get(address, headers={"x-session-id": "mine"}, timeout=PATIENCE).text.split()[1] != "mine", (
        "a visitor cannot choose it"
    )


@pytest.mark.parametrize("name", ["pages.cfg", "ray.cfg"])
def test_headers_that_never_end_are_given_up_and_connections_that_are_idle_ended(proxy, name):
    address = urlsplit(proxy(name, serve("one"), serve("two")))
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Dripped: ")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as idle:
        idle.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in idle.recv(1000)
        while idle.recv(1000):  # whatever is left of the reply, and then its end
            pass


FORGED = b"X-Forwarded-Host: evil\r\nX-Forwarded-For: ::ffff:192.0.2.1\r\nForwarded: for=x\r\n"
HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\n" + FORGED


@pytest.mark.parametrize("name", ["pages.cfg", "ray.cfg"])
def test_bodies_that_are_slow_or_in_chunks_reach_no_server(proxy, name):
    servers = serve("one"), serve("two")
    address = urlsplit(proxy(name, *servers))
    endings = []
    for rest in (b"Content-Length: 1000000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n"):
        with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as sender:
            sender.sendall(HEAD + rest)
            endings.append(sender.recv(12)[9:])
    assert endings == [b"408", b"411"]
    assert not [one.posts for one in servers if one.posts]
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as sender:
        sender.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        reply = sender.recv(1000)
        assert reply[9:12] == b"200" and reply.endswith(b"127.0.0.1"), "the address that HAProxy sees"
    [names] = [one.posts[0] for one in servers if one.posts]
    assert [one for one in names if "forwarded" in one] == ["x-forwarded-for"], "what a visitor says is dropped"


@pytest.mark.parametrize("name", ["pages.cfg", "ray.cfg"])
def test_an_address_has_a_limit_of_connections(proxy, name):
    address = urlsplit(proxy(name, serve("one"), serve("two"), timeout="60s"))
    with ExitStack() as stack:
        opened, statuses = [], []
        for _ in range(130):
            with suppress(OSError):  # it may be refused at once
                opened.append(socket.create_connection((address.hostname, address.port), timeout=PATIENCE))
                stack.enter_context(opened[-1])
        for one in opened:
            try:
                one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                statuses.append(one.recv(12)[9:])
            except OSError:
                statuses.append(b"")
    assert statuses.count(b"200") == 100
