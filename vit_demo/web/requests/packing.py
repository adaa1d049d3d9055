"""Replies to the page as they are sent: JSON, compressed once, however often they are sent."""

import zlib
from typing import Any

import orjson

HEADERS = {"content-encoding": "gzip"}
"""Of a response whose body is packed. Every browser accepts gzip."""

GZIP_WINDOW = 31
"""zlib's ``wbits`` for a gzip header."""


def pack(reply: dict[str, Any]) -> bytes:
    """A reply as gzipped JSON.

    Nearly all of a large reply is base64 of numbers that hardly repeat. Coding its characters by their frequency undoes
    base64; looking for repetitions as well takes three times as long and makes it larger.
    """
    compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP_WINDOW, strategy=zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(orjson.dumps(reply)) + compressor.flush()
