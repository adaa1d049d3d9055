"""Writers of picture files that Pillow cannot save, byte by byte from the definitions of the formats."""

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .bombs import chunk


def png(pixels: NDArray[np.uint16]) -> bytes:
    """A PNG of 16 bits: grey ``[H, W]``, colours ``[H, W, 3]`` or with opacity ``[H, W, 4]``."""
    colour_type = {2: 0, 3: 2, 4: 6}[pixels.ndim if pixels.ndim == 2 else pixels.shape[2]]
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 16, colour_type, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(
    pixels: NDArray[np.integer], *, photometric: int | None = None, order: str = "<", deflate: bool = False
) -> bytes:
    """A TIFF of unsigned numbers, grey ``[H, W]`` or colours ``[H, W, 3]``; in photometric 0, 0 is white."""
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    data = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    data = zlib.compress(data) if deflate else data
    bits = 8 * pixels.dtype.itemsize
    photometric = photometric if photometric is not None else 1 if channels == 1 else 2
    fields = {256: pixels.shape[1], 257: pixels.shape[0], 259: 8 if deflate else 1, 262: photometric}
    fields |= {273: 8 + 2 * channels, 277: channels, 278: pixels.shape[0], 279: len(data)}
    entries = {tag: struct.pack(order + "HHII", tag, 4, 1, value) for tag, value in fields.items()}
    where = 8 if channels > 1 else bits << (16 if order == ">" else 0)  # the bits of one channel stand in the entry
    entries[258] = struct.pack(order + "HHII", 258, 3, channels, where)
    directory = struct.pack(order + "H", len(entries)) + b"".join(entries[tag] for tag in sorted(entries)) + bytes(4)
    start = 8 + 2 * channels + len(data)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", start)
    return head + struct.pack(order + "H", bits) * channels + data + directory


def bmp(pixels: NDArray[np.uint8]) -> bytes:
    """A BMP of 32 bits with a mask for opacity, of ``[H, W, 4]``."""
    height, width = pixels.shape[:2]
    masks = struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 108, width, height, 1, 32, 3, 4 * width * height, 0, 0, 0, 0) + masks
    header += b"BGRs" + bytes(108 - 4 - len(header))
    return b"BM" + struct.pack("<IHHI", 14 + 108 + 4 * width * height, 0, 0, 14 + 108) + header + pixels[::-1].tobytes()


def icc_profile(space: bytes, tags: dict[bytes, bytes]) -> bytes:
    """An ICC profile of a display, in version 2, with these tags beside its text."""
    text = b"desc" + bytes(4) + struct.pack(">I", 5) + b"Test\0" + bytes(78)
    tags = {b"desc": text, b"cprt": b"text" + bytes(4) + b"None\0", b"wtpt": xyz(0.9642, 1.0, 0.8249), **tags}
    directory, body = b"", b""
    start = 128 + 4 + 12 * len(tags)
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        directory += name + struct.pack(">II", start + len(body), len(value))
        body += value
    size = struct.pack(">I", start + len(body))
    head = size + bytes(4) + b"\x02\x40\0\0mntr" + space + b"XYZ " + bytes(12) + b"acsp" + bytes(28)
    head += struct.pack(">3i", *(round(65536 * value) for value in (0.9642, 1.0, 0.8249)))
    return head + bytes(128 - len(head)) + struct.pack(">I", len(tags)) + directory + body


def xyz(*values: float) -> bytes:
    """A tag of three numbers."""
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(65536 * value) for value in values))


def curve(values: NDArray[np.floating]) -> bytes:
    """A tag of a curve, from 0 to 1; of one value, its gamma."""
    if len(values) == 1:
        return b"curv" + bytes(4) + struct.pack(">IH", 1, round(256 * float(values[0])))
    return b"curv" + bytes(4) + struct.pack(">I", len(values)) + (65535 * values).round().astype(">u2").tobytes()


def heic_grid(width: int, height: int) -> bytes:
    """A HEIC whose picture is a grid of tiles of 512 x 512 pixels, as a phone's is; each is that of ``tile.heic``."""
    source = Path(__file__).with_name("tile.heic").read_bytes()
    config, tile = source[172:292], source[378:]  # written by libheif, as an item of its own
    columns, rows = -(-width // 512), -(-height // 512)
    tiles = range(1, columns * rows + 1)
    last = len(tiles) + 1  # the item that puts them together
    grid = struct.pack(">BBBBII", 0, 1, rows - 1, columns - 1, width, height)

    def box(kind: bytes, *parts: bytes) -> bytes:
        return struct.pack(">I", 8 + sum(map(len, parts))) + kind + b"".join(parts)

    def item(number: int, kind: bytes) -> bytes:
        return box(b"infe", b"\2\0\0\0", struct.pack(">HH", number, 0), kind, b"\0")

    def meta(start: int) -> bytes:
        places = [(number, start, len(tile)) for number in tiles] + [(last, start + len(tile), len(grid))]
        located = (struct.pack(">HHHII", number, 0, 1, offset, size) for number, offset, size in places)
        sizes = (box(b"ispe", bytes(4), struct.pack(">II", *size)) for size in ((512, 512), (width, height)))
        colours = box(b"colr", b"nclx\0\1\0\r\0\6\x80")
        uses = (struct.pack(">HB3B", number, 3, 0x81, 2, 4) for number in tiles)
        references = struct.pack(f">{2 + len(tiles)}H", last, len(tiles), *tiles)
        return box(
            b"meta",
            bytes(4),
            box(b"hdlr", bytes(8), b"pict", bytes(13)),
            box(b"pitm", bytes(4), struct.pack(">H", last)),
            box(b"iloc", bytes(4), b"\x44\0", struct.pack(">H", last), *located),
            box(b"iinf", bytes(4), struct.pack(">H", last), *(item(i, b"hvc1") for i in tiles), item(last, b"grid")),
            box(b"iref", bytes(4), box(b"dimg", references)),
            box(
                b"iprp",
                box(b"ipco", config, *sizes, colours),
                box(b"ipma", bytes(4), struct.pack(">I", last), *uses, struct.pack(">HB2B", last, 2, 3, 4)),
            ),
        )

    head = box(b"ftyp", b"heic", bytes(4), b"mif1heic")
    return head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", tile, grid)
