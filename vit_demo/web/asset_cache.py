"""Keeps the compressed scripts and styles of the page, which Gradio compresses anew for every request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.inference.cache import ByteCache
from vit_demo.web.frontend import modules
from vit_demo.web.limits import ASSET_CACHE_BYTES

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

    Only files whose name changes with their content are kept, here and, for a year, by browsers, which would otherwise
    ask for each of Gradio's again on every visit.

    Args:
        app: The application, which compresses what it sends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._responses: ByteCache[_Response] = ByteCache(ASSET_CACHE_BYTES, lambda response: len(response.body))
        self._collected: set[tuple[str, bool, bool]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request; see ASGI."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        headers = Headers(scope=scope)
        if not _is_asset(path) or any(name in headers for name in CONDITIONS):
            return await self._app(scope, receive, send)
        offered = headers.get("accept-encoding", "")
        key = path, "br" in offered, "gzip" in offered  # the encodings that Gradio knows, sought as it seeks them
        response = self._responses.get(key)
        if response is not None:
            await send({**response.start, "headers": list(response.start["headers"])})
            return await send({"type": "http.response.body", "body": response.body})
        # One request at a time collects each file, or many slow ones would hold as many copies.
        collector = _Collector(send, keeps_body=key not in self._collected)
        if not collector.keeps_body:
            return await self._app(scope, receive, collector)
        self._collected.add(key)
        try:
            await self._app(scope, receive, collector)
        finally:
            self._collected.discard(key)
        if collector.response is not None:
            self._responses.put(key, collector.response)
        return None


def _is_asset(path: str) -> bool:
    """Whether a path is the only one of a file that never changes, so that the number of entries is limited."""
    ours, _, name = path.removeprefix(f"{modules.PREFIX}/").partition("/")
    return HASHED_NAME.fullmatch(path) is not None or (ours == modules.version() and name in modules.files())


class _Collector:
    """Passes a response on and lets browsers keep it; with ``keeps_body`` it is kept here, too."""

    def __init__(self, send: Send, *, keeps_body: bool) -> None:
        self._send = send
        self.keeps_body = keeps_body
        self._start: Message | None = None
        self._body = bytearray()
        self.response: _Response | None = None
        """The response once it is complete, if it is a file for everyone."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = MutableHeaders(raw=list(message["headers"]))
            if "set-cookie" not in headers:
                headers["cache-control"] = FOREVER
                message = {**message, "headers": headers.raw}
                self._start = message
        elif message["type"] == "http.response.body" and self._start is not None and self.keeps_body:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                self.response = _Response(self._start, bytes(self._body))
        await self._send(message)
