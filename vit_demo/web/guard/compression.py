"""Compresses the page's HTML, which holds the first result, and its JavaScript; Gradio sends the first as it is."""

from __future__ import annotations

import gzip
from functools import lru_cache

import brotli
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEVELS = {"br": 9, "gzip": 6}
"""How hard each encoding tries, the preferred one first; the highest level of brotli takes half a second."""


@lru_cache(maxsize=16)
def compressed(content: bytes, encoding: str) -> bytes:
    """Content in an encoding of ``LEVELS``; it is the same for all visitors, so this is computed once."""
    if encoding == "br":
        return brotli.compress(content, quality=LEVELS[encoding])
    return gzip.compress(content, LEVELS[encoding], mtime=0)


def accepted_encoding(headers: Headers) -> str | None:
    """The best encoding that a browser accepts, or None."""
    offered = headers.get("accept-encoding", "").lower().split(",")
    accepted = {name.strip() for name, _, weight in (each.partition(";") for each in offered) if _is_positive(weight)}
    return next((name for name in LEVELS if name in accepted), None)


def _is_positive(weight: str) -> bool:
    """Whether the weight of an encoding, such as ``q=0.5``, lets it be used; without one it may."""
    try:
        return not weight or float(weight.strip().removeprefix("q=")) > 0
    except ValueError:
        return False


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
        encoding = accepted_encoding(Headers(scope=scope)) if is_page else None
        if encoding:
            send = _Compressing(send, encoding)
        await self._app(scope, receive, send)


class _Compressing:
    """Holds an HTML response back until it is complete, and sends it compressed."""

    def __init__(self, send: Send, encoding: str) -> None:
        self._send = send
        self._encoding = encoding
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
        body = compressed(self._body, self._encoding)
        headers_to_send = MutableHeaders(raw=list(self._start["headers"]))
        headers_to_send["content-encoding"] = self._encoding
        headers_to_send["content-length"] = str(len(body))
        headers_to_send.add_vary_header("accept-encoding")
        await self._send({**self._start, "headers": headers_to_send.raw})
        await self._send({"type": "http.response.body", "body": body})
