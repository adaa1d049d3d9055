"""Renders and compresses the page once, and each script and style sheet, unlike Gradio."""

import asyncio
import gzip
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import brotli
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_demo.inference.cache import ByteCache
from vit_demo.web.guard.headers import client_address
from vit_demo.web.guard.quota import Pace

ASSET_CACHE_BYTES, RENDERED_CACHE_BYTES = 8 << 20, 4 << 20  # caches of scripts and styles, and of what is rendered

RENDERED = re.compile(
    r"/?|(/gradio_api)?/(config|info|openapi\.json|mcp/schema)/?|/theme\.css/?|/gradio_api/vit_demo/see/[^/]+\.jpg"
)
"""Paths whose content is rendered for each request. It depends on them and the server's address alone."""

VARYING = ("host", "x-forwarded-proto", "origin")  # headers on which what is rendered depends

RENDERED_PER_SECOND, RENDERED_AT_ONCE = 2, 20
"""How often an address may have something rendered that is not in the cache. The page takes 11 milliseconds, a preview
of a drawing as long."""

LEVELS = {"br": 8, "gzip": 6}
"""Compression levels, the preferred encoding first. They are moderate: the first visitor waits for dozens of files."""

LATER_LEVEL = 11  # level of brotli at which all of it is compressed again, for the next visitors
MAX_LATER = 64  # replies that may wait for that, since anyone can have something rendered anew

HASHED_NAME = re.compile(r"/assets/[\w.-]+-[\w-]{8,9}\.(css|js|woff2?)|/gradio_api/vit_demo/[0-9a-f]{16}/.+")
"""Files of Gradio and of ``frontend.modules`` whose address contains a hash of their content."""

TEXT_TYPES = ("text/html", "text/css", "text/javascript", "application/javascript", "application/json")
"""Media types that are compressed; which of its two types a script has depends on Python's table."""

FOREVER = "public, max-age=31536000, immutable"

Reply = tuple[dict[str, Any], bytes]  # the first ASGI message of a response, and its body

CONDITIONS = ("range", "if-none-match", "if-modified-since", "if-range")  # headers that ask for less than a file


def compress(content: bytes, encoding: str) -> bytes:
    """Compresses with an encoding of ``LEVELS``."""
    level = LEVELS[encoding]
    return brotli.compress(content, quality=level) if encoding == "br" else gzip.compress(content, level, mtime=0)


def _smallest(content: bytes) -> bytes:
    return brotli.compress(brotli.decompress(content), quality=LATER_LEVEL)


def _lower_priority() -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 12)


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


class Compression:
    """ASGI middleware that compresses and keeps the page, scripts and style sheets; other responses pass through.

    Browsers may keep scripts and style sheets for a year, because their names change with their content.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._assets: ByteCache[Reply] = ByteCache(ASSET_CACHE_BYTES, lambda kept: len(kept[1]))
        self._rendered: ByteCache[Reply] = ByteCache(RENDERED_CACHE_BYTES, lambda kept: len(kept[1]))
        self._pace = Pace(RENDERED_PER_SECOND, RENDERED_AT_ONCE)
        self._later = ThreadPoolExecutor(1, "compression", _lower_priority)
        self._tasks = set[asyncio.Task[None]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request; ``RequestRefused`` if an address has too much rendered anew."""
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        headers = Headers(scope=scope) if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else Headers()
        is_rendered = bool(headers) and RENDERED.fullmatch(path) is not None
        is_asset = bool(headers) and HASHED_NAME.fullmatch(path) is not None and scope["method"] == "GET"
        if not (is_rendered or (is_asset and not any(name in headers for name in CONDITIONS))):
            await self._app(scope, receive, send)
            return
        encoding, cache = accepted_encoding(headers), self._rendered if is_rendered else self._assets
        key = (path, encoding, *(headers.get(name) for name in VARYING if is_rendered))
        if (reply := cache.get(key)) is None:
            if is_rendered and (address := client_address(scope)):
                await asyncio.sleep(self._pace.wait(address))
            reply = await self._fetch(scope, encoding, is_asset)
            if _is_for_everyone(reply[0]):
                cache.put(key, reply)
                if encoding == "br" and len(self._tasks) < MAX_LATER:
                    self._tasks.add(task := asyncio.create_task(self._compress_again(cache, key, reply)))
                    task.add_done_callback(self._tasks.discard)
        start, body = reply
        await send({**start, "headers": list(start["headers"])})
        await send({"type": "http.response.body", "body": body})

    async def _compress_again(self, cache: ByteCache[Reply], key: tuple[str | None, ...], reply: Reply) -> None:
        """Puts a smaller reply into its cache in place of one that is compressed quickly."""
        start, content = reply
        headers = MutableHeaders(raw=list(start["headers"]))
        if headers.get("content-encoding") == "br":
            work = asyncio.get_running_loop().run_in_executor(self._later, _smallest, content)
            headers["content-length"] = str(len(content := await work))
            cache.put(key, ({**start, "headers": headers.raw}, content))

    async def _fetch(self, scope: Scope, encoding: str | None, is_asset: bool) -> Reply:
        """The whole response of the application, compressed. It goes on if the visitor leaves: others get it, too."""
        start, body = dict[str, Any](), bytearray()

        async def collect(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = dict(message)
            else:
                body.extend(message.get("body", b""))

        plain = [
            header for header in scope["headers"] if header[0].decode("latin-1") not in ("accept-encoding", *CONDITIONS)
        ]
        await self._app({**scope, "method": "GET", "headers": plain, "query_string": b""}, _nothing, collect)
        content, headers = bytes(body), MutableHeaders(raw=list(start["headers"]))
        if is_asset and _is_for_everyone(start):
            headers["cache-control"] = FOREVER
        if encoding and headers.get("content-type", "").startswith(TEXT_TYPES):
            content = await asyncio.to_thread(compress, content, encoding)
            headers["content-encoding"], headers["content-length"] = encoding, str(len(content))
            headers.add_vary_header("accept-encoding")
        return {**start, "headers": headers.raw}, content


async def _nothing() -> Message:
    """What a visitor sends who stays: a GET has no body."""
    return await asyncio.Future()


def _is_for_everyone(start: Message) -> bool:
    return start["status"] == 200 and all(name != b"set-cookie" for name, _ in start["headers"])
