"""Compresses the page once per version, and each script and style sheet once, unlike Gradio."""

import gzip
import re
from functools import lru_cache
from typing import Any

import brotli
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.inference.cache import ByteCache

ASSET_CACHE_BYTES = 8 << 20
"""Size of the cache of compressed scripts and style sheets."""

LEVELS = {"br": 8, "gzip": 6}
"""Compression levels, the preferred encoding first. They are moderate: the first visitor waits for dozens of files."""

HASHED_NAME = re.compile(r"/assets/[\w.-]+-[\w-]{8,9}\.(css|js|woff2?)|/gradio_api/vit_demo/[0-9a-f]{16}/.+")
"""Files of Gradio and of ``frontend.modules`` whose address contains a hash of their content."""

ASSET_TYPES = ("text/css", "text/javascript", "application/javascript", "application/json")
"""Media types that are compressed; which of its two types a script has depends on Python's table."""

FOREVER = "public, max-age=31536000, immutable"

CONDITIONS = ("range", "if-none-match", "if-modified-since", "if-range")
"""Request headers that ask for something other than the whole file."""


def compress(content: bytes, encoding: str) -> bytes:
    """Compresses with an encoding of ``LEVELS``."""
    level = LEVELS[encoding]
    return brotli.compress(content, quality=level) if encoding == "br" else gzip.compress(content, level, mtime=0)


compress_page = lru_cache(maxsize=4)(compress)  # once for all visitors


def accepted_encoding(headers: Headers) -> str | None:
    """The best encoding that a browser accepts, or None."""
    offered = (part.partition(";") for part in headers.get("accept-encoding", "").lower().split(","))
    accepted = {name.strip() for name, _, weight in offered if _is_positive(weight)}
    return next((name for name in LEVELS if name in accepted), None)


def _is_positive(weight: str) -> bool:
    """Whether the weight of an encoding, such as ``q=0.5``, is above 0; no weight counts as 1."""
    try:
        return not weight or float(weight.strip().removeprefix("q=")) > 0
    except ValueError:
        return False


async def _send(start: Message, body: bytes, send: Send) -> None:
    await send({**start, "headers": list(start["headers"])})
    await send({"type": "http.response.body", "body": body})


class Compression:
    """ASGI middleware that compresses the page, scripts and style sheets; all other responses pass through.

    Browsers may keep scripts and style sheets for a year, because their names change with their content.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._assets: ByteCache[tuple[Message, bytes]] = ByteCache(ASSET_CACHE_BYTES, lambda kept: len(kept[1]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        headers = Headers(scope=scope) if scope["type"] == "http" and scope["method"] == "GET" else Headers()
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        is_asset = HASHED_NAME.fullmatch(path) is not None
        if not headers or not (is_asset or path in ("", "/")) or any(name in headers for name in CONDITIONS):
            return await self._app(scope, receive, send)
        encoding = accepted_encoding(headers)
        if is_asset and (kept := self._assets.get((path, encoding))) is not None:
            return await _send(*kept, send)
        start, body = dict[str, Any](), b""

        async def collect(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = dict(message)
            elif message["type"] == "http.response.body":
                body += message.get("body", b"")
            if message["type"] != "http.response.body" or message.get("more_body"):
                return
            sent = MutableHeaders(raw=list(start["headers"]))
            is_file = is_asset and start["status"] == 200 and "set-cookie" not in sent
            if is_file:
                sent["cache-control"] = FOREVER
            is_text = sent.get("content-type", "").startswith(ASSET_TYPES if is_asset else "text/html")
            if encoding and is_text:
                body = compress(body, encoding) if is_asset else compress_page(body, encoding)
                sent["content-encoding"], sent["content-length"] = encoding, str(len(body))
                sent.add_vary_header("accept-encoding")
            start["headers"] = sent.raw
            if is_file:
                self._assets.put((path, encoding), (start, body))
            await _send(start, body, send)

        plain = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, receive, collect)
        return None
