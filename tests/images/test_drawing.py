"""The pad's data URLs are decoded, and nothing else is: no path, no other format, no large canvas."""

import base64
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images import decode_drawing
from vit_demo.images.reading import MAX_DRAWING_CHARACTERS, MAX_DRAWING_SIDE
from vit_demo.images.rgb import to_rgb

from .bombs import chunk, encoded

PREFIX = "data:image/png;base64,"


def url(data: bytes, prefix: str = PREFIX) -> str:
    return prefix + base64.b64encode(data).decode()


PNG = encoded(Image.new("RGB", (8, 8), "red"))


def test_transparency_is_blended_over_white():
    pixels = np.zeros((280, 280, 4), dtype=np.uint8)
    pixels[100:120, 50:200] = (0, 0, 0, 255)
    drawing = decode_drawing(url(encoded(Image.fromarray(pixels))))
    assert drawing.mode == "RGB"
    assert np.array_equal(np.asarray(drawing)[..., 0], 255 - pixels[..., 3])


def test_the_largest_canvas_is_halved_to_that_of_the_pad():
    pixels = np.zeros((280, 280, 3), dtype=np.uint8)
    pixels[100:121, 51:200] = (20, 30, 200)
    for scale in (1, 2):
        drawing = decode_drawing(url(encoded(Image.fromarray(pixels.repeat(scale, 0).repeat(scale, 1)))))
        assert np.array_equal(np.asarray(drawing), pixels)
    assert MAX_DRAWING_SIDE == 2 * 280


@pytest.mark.parametrize(
    "source",
    [
        None,
        3,
        b"data:image/png;base64,",
        "",
        "data:",
        "/etc/passwd",
        "data:image/png,abc",
        PREFIX,
        PREFIX + "abcde",
        PREFIX + "!!!!",
        url(PNG) + "\n",
        url(PNG, "data:image/jpeg;base64,"),
        url(PNG, "data:text/html;base64,"),
        url(encoded(Image.new("RGB", (8, 8)), "JPEG")),
        url(encoded(Image.new("RGB", (8, 8)), "GIF")),
        url(PNG[:-30]),
        url(b"P5 8 8 255 " + bytes(64)),
        url(encoded(Image.new("1", (MAX_DRAWING_SIDE + 1, 1)))),
        url(encoded(Image.new("1", (9000, 9000)))),
        url(PNG[:33] + chunk(b"IHDR", struct.pack(">IIBBBBB", 9000, 9000, 8, 2, 0, 0, 0)) + PNG[33:]),
        url(PNG[:33] + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**7))) + PNG[33:]),
    ],
    ids=lambda source: repr(source)[:40],
)
def test_anything_else_gets_the_same_message(source: object):
    with pytest.raises(ImageError, match=r"^The drawing cannot be read: clear the pad and draw again\.$"):
        decode_drawing(source)  # type: ignore[arg-type]


def test_the_message_for_a_path_reveals_nothing(tmp_path: Path):
    (tmp_path / "drawing.png").write_bytes(PNG)
    sentences = set()
    for name in ("drawing.png", "missing.png", "."):
        with pytest.raises(ImageError) as caught:
            decode_drawing(str(tmp_path / name))
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_long_strings_are_refused_before_they_are_decoded():
    with pytest.raises(ImageError, match="too large"):
        decode_drawing(PREFIX + "A" * MAX_DRAWING_CHARACTERS)


def test_metadata_is_not_parsed():
    """A thousand EXIF values of half a megabyte each, all at the same place of the file."""
    body = struct.pack("<H", 1000)
    for tag in range(1000):
        body += struct.pack("<HHII", 2000 + tag, 7, 500_000, 12100)
    exif = b"II*\0\x08\0\0\0" + body + bytes(4) + bytes(501_000)
    drawing = Image.open(io.BytesIO(PNG[:33] + chunk(b"eXIf", exif) + PNG[33:]))
    called = []
    drawing.getexif = lambda: called.append(1)  # type: ignore[assignment,return-value]
    assert to_rgb(drawing, metadata=False).size == (8, 8) and not called
