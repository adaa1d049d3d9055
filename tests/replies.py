"""Requests of the page in tests: sent once, with the reply unpacked, or after the server forgot its replies."""

import gzip
import json
from typing import Any

from vit_demo.inference.cache import ByteCache
from vit_demo.web.requests import poll

from .asynchronous import run


def unpack(body: bytes) -> dict[str, Any]:
    """Gives the reply in a body, by another library than the one that made it."""
    return json.loads(gzip.decompress(body))


def handle(request: Any) -> dict[str, Any]:
    """Gives the reply to a request: its result, an error, or the progress of its job."""
    return unpack(run(poll.handle(request)))


def complete(request: Any) -> dict[str, Any]:
    """Sends a request until its result is there, as the page does."""
    for _ in range(5000):
        if "done" not in (reply := handle(request)):
            return reply
    raise AssertionError("no result")


def send(source: Any, kind: str, **details: Any) -> dict[str, Any]:
    """Gives the result of a request about a source."""
    return complete({"kind": kind, "source": source, **details})["result"]


def forget(cache: ByteCache[Any]) -> None:
    """Empties a cache."""
    with cache._lock:
        cache._entries.clear()
        cache._sizes.clear()
