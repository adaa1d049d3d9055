"""Keeps the compressed scripts and styles of the page, which Gradio compresses anew for every request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.inference.cache import ByteCache
from vit_demo.web.components import modules
from vit_demo.web.limits import ASSET_CACHE_BYTES

FOLDERS = ("/assets/", f"{modules.PREFIX}/")
"""Gradio's scripts and styles, and ours."""

HASHED_NAME = re.compile(r"/assets/[\w.-]+-[\w-]{8,9}\.(css|js|woff2?)")
"""Gradio's files whose name holds a hash of their content."""

FOREVER = "public, max-age=31536000, immutable"

CONDITIONS = ("range", "if-none-match", "if-modified-since", "if-range")
"""Headers of requests whose response is not the whole file."""


@dataclass(frozen=True)
class _Response:
    start: Message
    body: bytes


class AssetCache:
    """Answers requests for scripts and styles with the response to the first one; all other requests pass through.

    Browsers may also keep Gradio's files whose name changes with their content, as they may keep ours: without it, they
    ask for each of them again on every visit.

    Args:
        app: The application, which compresses what it sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._responses: ByteCache[_Response] = ByteCache(ASSET_CACHE_BYTES, lambda response: len(response.body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request; see ASGI."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        headers = Headers(scope=scope)
        if not path.startswith(FOLDERS) or any(name in headers for name in CONDITIONS):
            return await self._app(scope, receive, send)
        offered = headers.get("accept-encoding", "")
        key = path, "br" in offered, "gzip" in offered  # the encodings that Gradio knows, sought as it seeks them
        response = self._responses.get(key)
        if response is None:
            collector = _Collector(send, is_permanent=HASHED_NAME.fullmatch(path) is not None)
            await self._app(scope, receive, collector)
            if collector.response is not None:
                self._responses.put(key, collector.response)
            return None
        await send({**response.start, "headers": list(response.start["headers"])})
        await send({"type": "http.response.body", "body": response.body})
        return None


class _Collector:
    """Passes a response on, and keeps it."""

    def __init__(self, send: Send, *, is_permanent: bool) -> None:
        self._send = send
        self._is_permanent = is_permanent
        self._start: Message | None = None
        self._body = b""
        self.response: _Response | None = None
        """The response once it is complete, if it is a file for everyone."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = MutableHeaders(raw=list(message["headers"]))
            if self._is_permanent:
                headers["cache-control"] = FOREVER
            message = {**message, "headers": headers.raw}
            self._start = None if "set-cookie" in headers else message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                self.response = _Response(self._start, self._body)
        await self._send(message)
