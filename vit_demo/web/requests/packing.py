"""Replies to the page as compressed JSON, and the messages of errors."""

import logging
import zlib
from typing import Any

import orjson

from vit_demo.errors import InputError

HEADERS = {"content-encoding": "gzip"}  # headers of a response with a packed body; every browser accepts gzip
GZIP_WINDOW = 31  # zlib's ``wbits`` for a gzip header

INTERNAL_ERROR = "Something went wrong on the server: try another picture or a larger patch size."
"""The message for an unexpected exception, which is logged."""


def pack(reply: dict[str, Any]) -> bytes:
    """A reply as gzipped JSON.

    Most of a large reply is base64 of numbers that hardly repeat. Huffman coding alone undoes base64; a search for
    repetitions takes three times as long and makes the reply larger.
    """
    compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP_WINDOW, strategy=zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(orjson.dumps(reply)) + compressor.flush()


def message_of(error: Exception) -> str:
    """The message of an ``InputError``; any other error is logged and gets a general message."""
    if isinstance(error, InputError):
        return error.args[0]
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return INTERNAL_ERROR
