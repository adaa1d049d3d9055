"""A Hub on this machine, with the protocol by which files are downloaded, and with failures on demand."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from vit_demo.inference import explainer, networks
from vit_demo.weights.hub import repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
"""The commit of ``main``; any other commit exists as well."""
LARGE = 5000
"""Size in bytes from which a file is large: behind a redirect to another host, with a SHA-256 as its etag."""


class HubServer:
    """Serves the files in ``repositories``.

    Attributes:
        repositories: ``{"org/name": {"file": bytes}}``.
        seen: Every request as ``"GET file"``; for large files only the redirected one.
        ranges: The Range header of each GET that had one.
        cuts: Number of coming responses that break off in the middle.
        forged: Headers that replace those of every response.
        tampered: Large files are sent with one byte changed.
        tokens: The token that each private repository requires.
        answers: By name of a file a status and headers that are sent instead of it; a header of None is left out.
        authorizations: The Authorization header of every request, None if it had none.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.seen: list[str] = []
        self.ranges: list[str] = []
        self.cuts = 0
        self.tampered = False
        self.forged: dict[str, str] = {}
        self.answers: dict[str, tuple[int, dict[str, str | None]]] = {}
        self.tokens: dict[str, str] = {}
        self.authorizations: list[str | None] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()  # closes within 10 ms

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def gets(self, filename: str) -> int:
        return self.seen.count(f"GET {filename}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            commit = COMMIT

            def log_message(self, *_: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                self.respond(with_body=False)

            def do_GET(self) -> None:
                self.respond(with_body=True)

            def respond(self, with_body: bool) -> None:
                moved = self.path.startswith("/moved")
                repo, _, rest = self.path.removeprefix("/moved").strip("/").partition("/resolve/")
                revision, _, filename = rest.partition("/")
                files = hub.repositories.get(repo)
                authorization = self.headers.get("Authorization")
                hub.authorizations.append(authorization)
                if repo in hub.tokens and not moved and authorization != f"Bearer {hub.tokens[repo]}":
                    files = None
                if filename in hub.answers:
                    hub.seen.append(f"{self.command} {filename}")
                    return self.head(hub.answers[filename][0], 0, hub.answers[filename][1])
                if files is None:
                    return self.refuse("RepoNotFound")
                if revision != "main" and not re.fullmatch("[0-9a-f]{40}", revision):
                    return self.refuse("RevisionNotFound")
                self.commit = COMMIT if revision == "main" else revision
                if filename not in files:
                    hub.seen.append(f"{self.command} {filename}")
                    return self.refuse("EntryNotFound")
                content = files[filename]
                if len(content) >= LARGE and not moved:
                    digest = hashlib.sha256(content).hexdigest()
                    headers = {"X-Linked-ETag": f'"{digest}"', "X-Linked-Size": str(len(content))}
                    return self.head(302, 0, headers | {"Location": hub.redirect_url() + self.path})
                hub.seen.append(f"{self.command} {filename}")
                etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
                start = 0
                if "Range" in self.headers and with_body:
                    hub.ranges.append(self.headers["Range"])
                    start = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
                headers = {"ETag": f'"{etag}"'}
                if start:
                    headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.head(206 if start else 200, len(content) - start, headers)
                if with_body:
                    self.send(bytes([content[0] ^ 1]) + content[1:] if hub.tampered and moved else content, start)

            def send(self, content: bytes, start: int) -> None:
                if hub.cuts:
                    hub.cuts -= 1
                    self.wfile.write(content[start : start + (len(content) - start) // 2])
                    self.wfile.flush()
                    self.close_connection = True
                else:
                    self.wfile.write(content[start:])

            def head(self, status: int, length: int, headers: dict[str, Any]) -> None:
                self.send_response(status)
                for name, value in (
                    {"Content-Length": str(length), "X-Repo-Commit": self.commit} | headers | hub.forged
                ).items():
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()

            def refuse(self, code: str) -> None:
                self.head(404, 0, {"X-Error-Code": code})

        return Handler

    def redirect_url(self) -> str:
        """The URL of large files: the same server under another name."""
        return f"http://localhost:{self.server.server_port}/moved"


@contextmanager
def served(cache: Path) -> Iterator[HubServer]:
    """A Hub on this machine in the place of the real one, with its cache in a folder."""
    server = HubServer()
    with pytest.MonkeyPatch.context() as patch, forgotten():
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("HF_HUB_CACHE", str(cache))
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)  # a test of the page may have set it
        yield server
    server.close()


@contextmanager
def forgotten() -> Iterator[None]:
    """Nothing is known of what was had before under the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explainer, "_presets", {})
        patch.setattr(networks, "_networks", networks.Networks())
        patch.setattr(repository, "_repositories", {})
        yield
