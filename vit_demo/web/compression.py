"""Compresses the page's HTML, which holds the first result, for browsers that accept gzip; Gradio sends it as it is."""

from __future__ import annotations

import gzip
from functools import lru_cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEVEL = 6


@lru_cache(maxsize=4)
def compressed(content: bytes) -> bytes:
    """Content as gzip; the page is the same for all its visitors, so this is computed once."""
    return gzip.compress(content, LEVEL, mtime=0)


def accepts_gzip(headers: Headers) -> bool:
    """Whether a browser accepts gzip."""
    offered = headers.get("accept-encoding", "").lower().split(",")
    return any(each.strip() in ("gzip", "gzip;q=1.0", "gzip;q=1") for each in offered)


class CompressedPage:
    """Compresses the HTML page of an application; all other responses pass through.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request; see ASGI."""
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        is_page = is_get and scope["path"].removeprefix(scope.get("root_path", "")) in ("", "/")
        if is_page and accepts_gzip(Headers(scope=scope)):
            send = _Compressing(send)
        await self._app(scope, receive, send)


class _Compressing:
    """Holds an HTML response back until it is complete, and sends it compressed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message["headers"])
            if headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers:
                self._start = message
                return
        if self._start is None or message["type"] != "http.response.body":
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = compressed(self._body)
        headers_to_send = MutableHeaders(raw=list(self._start["headers"]))
        headers_to_send["content-encoding"] = "gzip"
        headers_to_send["content-length"] = str(len(body))
        headers_to_send.add_vary_header("accept-encoding")
        await self._send({**self._start, "headers": headers_to_send.raw})
        await self._send({"type": "http.response.body", "body": body})
