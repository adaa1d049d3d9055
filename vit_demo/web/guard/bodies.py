"""Reading the body of a request within limits."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from vit_demo.web.guard import uploads

BODY_TIMEOUT_SECONDS = 60.0
"""Time within which the whole body of a request must arrive."""

MAX_EVENT_BYTES = 1_000_000
"""Body of a request that is not an upload."""

MAX_EVENT_VALUES = 20_000
"""JSON values in such a body."""

MAX_UNFINISHED_BYTES = 64_000_000
"""Bodies of events that are still arriving, of all visitors together."""

MAX_UNFINISHED_BYTES_OF_ONE = 16_000_000
"""The same of one address."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""What no text can be encoded with."""

TOO_LARGE = f"The request is larger than {MAX_EVENT_BYTES // 1000} kB: send less at once."


class RequestRefused(Exception):
    """A request that is not passed on to Gradio: the status of the response, and what the sender can do instead."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnfinishedBodies:
    """Counts the bytes of bodies that are still arriving, of all requests together and of each address."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def room(self, address: str, nbytes: int) -> Iterator[None]:
        """Holds room for a body while it arrives; ``RequestRefused`` if there is none."""
        is_full = self._held.total() + nbytes > MAX_UNFINISHED_BYTES
        if is_full or self._held[address] + nbytes > MAX_UNFINISHED_BYTES_OF_ONE:
            raise RequestRefused(503, "Too many requests are arriving at once: try again in a moment.")
        self._held[address] += nbytes
        try:
            yield
        finally:
            self._held[address] -= nbytes
            if not self._held[address]:
                del self._held[address]


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body of a request that is not an upload.

    ``RequestRefused`` if it is too large, too slow or broken off, or has too many JSON values.
    """
    body, values, more = b"", 0, True
    deadline = time.monotonic() + BODY_TIMEOUT_SECONDS
    while more:
        message = await receive_before(receive, deadline)
        if message["type"] != "http.request":
            raise RequestRefused(400, "The request is incomplete: send it again.")
        piece = message.get("body", b"")
        body += piece
        more = message.get("more_body", False)
        # Counted before they are parsed, which takes long; those within texts count as well, and are few.
        values += sum(map(piece.count, (b",", b"[", b"{")))
        if len(body) > MAX_EVENT_BYTES or values > MAX_EVENT_VALUES:
            raise RequestRefused(413, TOO_LARGE)
    return body


def check_body(body: bytes) -> Any:
    """The values of a JSON body, None for an empty one.

    Invalid JSON or text, and paths outside the upload folder, are refused by ``RequestRefused``. The file system is not
    accessed, so the response reveals nothing about it.
    """
    if not body:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, "The body is not valid JSON: send a JSON object.") from error
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, str) and SURROGATE.search(value):
            raise RequestRefused(400, "A text is not valid Unicode: it holds half of a surrogate pair.")
        if isinstance(value, dict):
            if value.get("path") is not None and not uploads.is_upload_path(value["path"]):
                raise RequestRefused(400, uploads.NOT_AN_UPLOAD)
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value
    return data


def event_size(scope: Scope) -> int:
    """The bytes that the body of an event may have: what it announces, or the limit if it announces nothing.

    ``RequestRefused`` if it announces more.
    """
    length = content_length(scope)
    if length > MAX_EVENT_BYTES:
        raise RequestRefused(413, TOO_LARGE)
    return length or MAX_EVENT_BYTES


def content_length(scope: Scope) -> int:
    """The length of a body in bytes; 0 if it is not known, as that of a body in chunks, whatever it claims."""
    headers = Headers(scope=scope)
    length = "0" if "transfer-encoding" in headers else headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0


async def receive_before(receive: Receive, deadline: float) -> Message:
    """The next message of a body; ``RequestRefused`` if it does not come by a time of ``time.monotonic``."""
    try:
        return await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
    except TimeoutError as error:
        raise RequestRefused(408, "The request took too long to arrive: send it again.") from error
