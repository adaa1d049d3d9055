"""A mirror that keeps its clients waiting, lies about sizes, or sends them elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

from vit_demo.errors import CheckpointError
from vit_demo.weights.hub.download import SLACK, fetch

from ..asynchronous import until
from .hub_server import COMMIT

REPO, CONFIG = "some/model", "config.json"
FILE = b'{"a": 1}' * 125
SHA = hashlib.sha1(b"blob %d\0" % len(FILE) + FILE).hexdigest()
ABOUT = {"X-Repo-Commit": COMMIT, "ETag": f'"{SHA}"', "Content-Length": str(len(FILE))}


class Mirror(BaseHTTPRequestHandler):
    """Answers the first request about a file with ``about``, and the others by ``act``."""

    protocol_version = "HTTP/1.1"
    about: dict[str, str]
    act: Callable[[Mirror], None]
    ended: list[bool]

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.reply(200, self.about)

    def do_GET(self) -> None:
        self.act()

    def reply(self, status: int, headers: dict[str, str | None], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def drip(self, piece: bytes = b"x") -> None:
        """Sends a byte after the other until its client has gone."""
        with suppress(OSError):
            until(lambda: self.wfile.write(piece) and None)
        self.ended.append(True)
        self.close_connection = True


@contextmanager
def mirror(about, act, head=None) -> Iterator[type[Mirror]]:
    methods = {"about": about, "act": act, "ended": [], **({"do_HEAD": head} if head else {})}
    kind = type("Kind", (Mirror,), methods)
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        kind.url = f"http://127.0.0.1:{server.server_port}"
        yield kind
        server.shutdown()


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 14)


def of_first_line(self):
    self.drip(b"H")


def of_a_header(self):
    self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    self.drip()


def of_headers(self):
    self.wfile.write(b"HTTP/1.1 200 OK\r\n")
    self.drip(b"A: b\r\n")


def of_body(self):
    self.reply(200, self.about)
    self.drip()


def of_chunks(self):
    self.reply(200, {**self.about, "Content-Length": None, "Transfer-Encoding": "chunked"})
    self.drip(b"1\r\nx\r\n")


def of_another_host(self):
    if self.path.startswith("/moved"):
        return self.drip(b"H")
    return self.reply(302, {"Location": self.url.replace("127.0.0.1", "localhost") + "/moved", "Content-Length": "0"})


DRIPS = [of_first_line, of_a_header, of_headers, of_body, of_chunks, of_another_host]


@pytest.mark.parametrize("drip", DRIPS)
@pytest.mark.parametrize("request_", ["HEAD", "GET"])
def test_what_is_given_up_ends_with_its_connection_and_its_thread(monkeypatch, drip, request_):
    """By a clock that is ahead once the first byte has come, for no byte counts before a header is whole."""
    if request_ == "HEAD" and drip in DRIPS[3:]:
        pytest.skip("has no body, and is sent nowhere")
    monkeypatch.setattr("vit_demo.weights.hub.connection.SILENCE", 0.3)
    about = {**ABOUT, "Content-Length": str(10**6)}
    with mirror(about, drip, drip if request_ == "HEAD" else None) as kind:
        monkeypatch.setenv("HF_ENDPOINT", kind.url)
        with pytest.raises(CheckpointError, match=r"the Hub does not respond|could not be downloaded"):
            fetch(REPO, CONFIG, "main")
        until(lambda: kind.ended)
        until(lambda: not [thread for thread in threading.enumerate() if thread.name == "hub"])
        assert len(kind.ended) == 1, "no second attempt by a thread that was given up"


def longer(self):
    self.reply(200, {**self.about, "Content-Length": str(10**7)}, b"0" * 10**6)
    self.drip(b"0" * 10**5)


def without_a_length(self):
    self.reply(200, {**self.about, "Content-Length": None, "Connection": "close"}, b"0" * 10**6)
    self.drip(b"0" * 10**5)


def in_chunks(self):
    self.reply(200, {**self.about, "Content-Length": None, "Transfer-Encoding": "chunked"})
    self.drip(b"%x\r\n%s\r\n" % (10**5, b"0" * 10**5))


def compressed(self):
    body = gzip.compress(b"0" * 10**8)
    self.reply(200, {**self.about, "Content-Length": str(len(body)), "Content-Encoding": "gzip"}, body)


@pytest.mark.parametrize("send", [longer, without_a_length, in_chunks, compressed])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_file_that_is_longer_than_announced_ends_there(monkeypatch, tmp_path, send, trusted):
    largest = [0]

    def watch(_: str, done: int, __: int) -> None:
        files = [path.stat().st_size for path in tmp_path.rglob("*.incomplete")]
        largest[0] = max([done, largest[0], *files])

    with mirror(ABOUT, send) as kind:
        monkeypatch.setenv("HF_ENDPOINT", kind.url)
        with pytest.raises(CheckpointError, match=f"{CONFIG} of {REPO} is larger than the Hub said"):
            fetch(REPO, CONFIG, "main", watch, trusted=trusted, max_bytes=10**9)
    assert largest[0] <= len(FILE) + SLACK
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= len(FILE) + SLACK


def test_a_little_more_than_announced_is_nothing(monkeypatch):
    def send(self):
        self.reply(200, {**self.about, "Content-Length": str(len(FILE) + 10)}, FILE + b" " * 10)

    with mirror({**ABOUT, "ETag": '"v1"'}, send) as kind:
        monkeypatch.setenv("HF_ENDPOINT", kind.url)
        with pytest.raises(CheckpointError, match="could not be downloaded"):  # the client compares both lengths
            fetch(REPO, CONFIG, "main")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("etag", ['"v1"', None, 'W/"abc-1"', SHA])
@pytest.mark.parametrize("trusted", [True, False])
def test_no_text_of_another_host_is_taken_for_a_file(monkeypatch, tmp_path, status, etag, trusted):
    asked, secret = [], b"x" * (len(FILE) - 6) + b"secret"

    def answer(self):
        asked.append(self.path)
        self.reply(200, {"Content-Length": str(len(secret))}, secret)

    with mirror({}, answer) as inside:

        def send_on(self):
            self.reply(status, {"Location": f"{inside.url}/latest/meta-data", "Content-Length": "0"})

        with mirror({**ABOUT, "ETag": etag}, send_on) as kind:
            monkeypatch.setenv("HF_ENDPOINT", kind.url)
            with pytest.raises(CheckpointError) as refused:
                fetch(REPO, CONFIG, "main", trusted=trusted)
    assert "secret" not in str(refused.value) and "Error" not in str(refused.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


@pytest.mark.parametrize("etag", [f'"{SHA}"', '"v1"'])
def test_another_place_on_the_same_host_is_the_same_mirror(monkeypatch, etag):
    def send(self):
        if self.path.startswith("/elsewhere"):
            return self.reply(200, {"Content-Length": str(len(FILE))}, FILE)
        return self.reply(307, {"Location": "/elsewhere", "Content-Length": "0"})

    with mirror({**ABOUT, "ETag": etag}, send) as kind:
        monkeypatch.setenv("HF_ENDPOINT", kind.url)
        assert fetch(REPO, CONFIG, "main").read_bytes() == FILE


def test_another_host_may_send_what_a_hash_proves(monkeypatch):
    def send(self):
        if self.path.startswith("/moved"):
            return self.reply(200, {"Content-Length": str(len(FILE))}, FILE)
        return self.reply(
            302, {"Location": self.url.replace("127.0.0.1", "localhost") + "/moved", "Content-Length": "0"}
        )

    with mirror(ABOUT, send) as kind:
        monkeypatch.setenv("HF_ENDPOINT", kind.url)
        assert fetch(REPO, CONFIG, "main").read_bytes() == FILE
