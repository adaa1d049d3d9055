"""Reading the body of a request within limits."""

import asyncio
import json
import re
from collections import Counter
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from vit_demo.web.guard import uploads

BODY_SECONDS, UPLOAD_SECONDS = 10.0, 60.0  # time within which the whole body of an event, or of an upload, must arrive

PAUSE_SECONDS, LEAST_BYTES_PER_SECOND = 3.0, 10_000  # pauses of a body in all, and its least rate otherwise
MAX_EVENT_BYTES = 1_000_000  # length of the body of a request that is not an upload
MAX_EVENT_VALUES = 20_000  # JSON values in such a body
MAX_UNFINISHED_BYTES = 64_000_000  # bytes that have arrived of incomplete bodies of events, for all visitors together
MAX_DEPTH = 100  # values within values in such a body: a request of the page has six
LENGTH = re.compile("0|[1-9][0-9]{0,14}")  # a length of a body: with zeros before it, it would count as less than it is
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which cannot be encoded

TOO_LARGE = f"The request is larger than {MAX_EVENT_BYTES // 1000} kB: send less at once."
TOO_SLOW = "The request took too long to arrive: send it again."


class RequestRefused(Exception):
    """A request that is not passed on to Gradio, with the status of the response and what the sender can do instead.

    ``closes`` says whether the connection is closed as well, ``wait`` in how many seconds to try again.
    """

    def __init__(self, status: int, message: str, *, closes: bool = False, wait: float = 5.0) -> None:
        super().__init__(message)
        self.status, self.closes, self.wait = status, closes, wait


class Arrivals:
    """Bodies of events that are still arriving, oldest first."""

    def __init__(self) -> None:
        self._held: dict[asyncio.Timeout, tuple[str, int]] = {}

    async def read(self, address: str, receive: Receive) -> bytes:
        """Reads a body that is not an upload; ``RequestRefused`` if it is too large, too slow or incomplete."""
        body, values, more, started = bytearray(), 0, True, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(latest(started, 0, BODY_SECONDS)) as limit:
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RequestRefused(400, "The request is incomplete: send it again.")
                    piece = message.get("body", b"")
                    body += piece
                    more = message.get("more_body", False)
                    # Counted before parsing, which takes long. Those within texts count as well; there are few.
                    values += sum(map(piece.count, (b",", b"[", b"{")))
                    if len(body) > MAX_EVENT_BYTES or values > MAX_EVENT_VALUES:
                        raise RequestRefused(413, TOO_LARGE)
                    limit.reschedule(latest(started, len(body), BODY_SECONDS))
                    self._held[limit] = address, len(body)
                    self._make_room()
        except TimeoutError as error:
            raise RequestRefused(408, TOO_SLOW) from error
        finally:
            self._held.pop(limit, None)
        return bytes(body)

    def _make_room(self) -> None:
        """While all bodies together hold too much, ends the oldest one of the address that holds most."""
        while sum(nbytes for _, nbytes in self._held.values()) > MAX_UNFINISHED_BYTES:
            held = Counter[str]()
            for address, nbytes in self._held.values():
                held[address] += nbytes
            most = max(held, key=held.__getitem__)
            slowest = next(limit for limit, (address, _) in self._held.items() if address == most)
            slowest.reschedule(0.0)
            del self._held[slowest]


def latest(started: float, nbytes: int, seconds: float) -> float:
    """The time by which more than ``nbytes`` of a body must have arrived, at most ``seconds`` after it began."""
    return started + min(seconds, PAUSE_SECONDS + nbytes / LEAST_BYTES_PER_SECOND)


def in_time(receive: Receive) -> Receive:
    """Receives an upload; raises ``RequestRefused`` if it takes too long."""
    started, arrived = asyncio.get_running_loop().time(), 0

    async def receive_in_time() -> Message:
        nonlocal arrived
        try:
            async with asyncio.timeout_at(latest(started, arrived, UPLOAD_SECONDS)):
                message = await receive()
        except TimeoutError as error:
            raise RequestRefused(408, TOO_SLOW) from error
        arrived += len(message.get("body", b""))
        return message

    return receive_in_time


def check_body(body: bytes) -> Any:
    """Parses a JSON body; None if it is empty.

    Invalid JSON, invalid text and paths outside the upload folder raise ``RequestRefused``. The file system is not
    accessed, so the response reveals nothing about it.
    """
    if not body:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, "The body is not valid JSON: send a JSON object.") from error
    stack = [(data, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise RequestRefused(400, "The JSON is nested too deeply: send plain values.")
        if isinstance(value, str) and SURROGATE.search(value):
            raise RequestRefused(400, "A text is not valid Unicode: it holds half of a surrogate pair.")
        if isinstance(value, dict):
            if value.get("path") is not None and not uploads.is_upload_path(value["path"]):
                raise RequestRefused(400, uploads.NOT_AN_UPLOAD)
            stack += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            stack += [(part, depth + 1) for part in value]
    return data


def check_framing(scope: Scope, has_body: bool) -> None:
    """Refuses bodies in chunks, which are expensive to parse, and bodies of requests that need none."""
    if "transfer-encoding" in Headers(scope=scope):
        raise RequestRefused(411, "Send a Content-Length: bodies in chunks are not read.", closes=True)
    if content_length(scope) and not has_body:
        raise RequestRefused(400, "This request has no body: send none.", closes=True)


def content_length(scope: Scope) -> int:
    """The announced length of a body in bytes; 0 if it is missing. ``RequestRefused`` if it is not ``LENGTH``."""
    length = Headers(scope=scope).get("content-length", "0")
    if not LENGTH.fullmatch(length):
        raise RequestRefused(400, "The Content-Length must be a number without leading zeros.", closes=True)
    return int(length)
