"""Replies to the page as they are sent: JSON, compressed once, however often they are sent; and what an error says."""

import logging
import zlib
from typing import Any

import orjson

from vit_demo.errors import InputError

HEADERS = {"content-encoding": "gzip"}
"""Of a response whose body is packed. Every browser accepts gzip."""

GZIP_WINDOW = 31
"""zlib's ``wbits`` for a gzip header."""

INTERNAL_ERROR = "Something went wrong on the server: try another picture or a larger patch size."
"""The message for an unexpected exception, which is logged."""


def pack(reply: dict[str, Any]) -> bytes:
    """A reply as gzipped JSON.

    Nearly all of a large reply is base64 of numbers that hardly repeat. Coding its characters by their frequency undoes
    base64; looking for repetitions as well takes three times as long and makes it larger.
    """
    compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP_WINDOW, strategy=zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(orjson.dumps(reply)) + compressor.flush()


def message_of(error: Exception) -> str:
    """The message of an ``InputError``; for a bug, which is logged, a general one."""
    if isinstance(error, InputError):
        return str(error)
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return INTERNAL_ERROR
