"""Small files that are large or slow to decode, made in memory."""

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from PIL import Image

# What a process has used at its peak counts for its children, too.
WITHOUT_TORCH = """
import sys, types
for name, folder in (("vit_demo", "vit_demo"), ("vit_demo.images", "vit_demo/images")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
"""

GREY, RGB, PALETTE, RGBA = 0, 2, 3, 6  # colour types of PNG
_SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, RGBA: 4}


def run_without_torch(program: str, *arguments: Path) -> str:
    """What a program prints in a fresh process, which may import ``vit_demo.images`` alone."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH + program, *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, colour: int, bits: int = 8, interlaced: bool = False, extra: bytes = b"") -> bytes:
    """All zero, so that a megapixel takes a few kilobytes."""
    pixel = _SAMPLES[colour] * bits
    passes = [(0, 0, 1, 1)]
    if interlaced:  # Adam7: left, top, step across, step down
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    pack, body = zlib.compressobj(1), b""
    for left, top, across, down in passes:
        columns, rows = -(-(width - left) // across), -(-(height - top) // down)
        row = bytes(1 + (columns * pixel + 7) // 8)
        for done in range(0, rows, 64):
            body += pack.compress(row * min(64, rows - done))
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, int(interlaced))
    palette = chunk(b"PLTE", bytes(768)) + chunk(b"tRNS", bytes(256)) if colour == PALETTE else b""
    chunks = chunk(b"IHDR", header) + extra + palette + chunk(b"IDAT", body + pack.flush()) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def png_with_exif_of(values: int, size: int) -> bytes:
    """EXIF whose `values` of `size` bytes all lie at the same place of the file."""
    offset = 8 + 2 + 12 * values + 4
    entries = b"".join(struct.pack("<HHII", 1000 + tag, 7, size, offset) for tag in range(values))
    exif = b"II*\0\x08\0\0\0" + struct.pack("<H", values) + entries + bytes(4) + bytes(size)
    return png(8, 8, RGB, extra=chunk(b"eXIf", exif))


def jpeg_of_scans(side: int, scans: int) -> bytes:
    """A progressive JPEG whose last scan is repeated, which libjpeg accepts as a refinement."""
    data = encoded(Image.new("L", (side, side), 90), "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    return data[:-2] + data[start:-2] * (scans - data.count(b"\xff\xda")) + data[-2:]


def gif_of_comments(blocks: int) -> bytes:
    """Pillow adds block after block to one string, so the time grows with the square of their number."""
    data = encoded(Image.new("P", (8, 8)), "GIF")
    frame = data.index(b",\0\0\0\0")
    return data[:frame] + b"!\xfe" + (b"\xff" + b" " * 255) * blocks + b"\0" + data[frame:]


def text_ppm(side: int) -> bytes:
    return b"P3 %d %d 255 " % (side, side) + b"7 " * (3 * side * side)


def avif_of_false_size(side: int) -> bytes:
    """An AVIF of `side` x `side` pixels whose container declares 16 x 16."""
    data = encoded(Image.new("L", (side, side)), "AVIF", speed=10)
    box = data.index(b"ispe") + 8
    return data[:box] + struct.pack(">II", 16, 16) + data[box + 8 :]


def tiff(width: int, height: int, values: int = 0, size: int = 0, tile: int = 0) -> bytes:
    """A TIFF of one deflated strip (or tile of `tile` x `tile`), and `values` more of `size` bytes at one place."""
    rows = tile or height
    pack = zlib.compressobj(1)
    pixels = b"".join(pack.compress(bytes(3 * (tile or width))) for _ in range(rows)) + pack.flush()
    shape = [(256, 4, 1, width), (257, 4, 1, height), (259, 3, 1, 8), (262, 3, 1, 2), (277, 3, 1, 3)]
    count = len(shape) + 5 + values
    start = 8 + 2 + 12 * count + 4
    entries = [*shape, (258, 3, 3, start)]
    where, length = start + 6, len(pixels)
    if tile:
        entries += [(322, 4, 1, tile), (323, 4, 1, tile), (324, 4, 1, where), (325, 4, 1, length)]
    else:
        entries += [(273, 4, 1, where), (278, 4, 1, rows), (279, 4, 1, length), (284, 3, 1, 1)]
    entries += [(40_000 + tag, 7, size, where) for tag in range(values)]
    directory = b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries))
    header = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + directory + bytes(4)
    return header.ljust(start, b"\0") + struct.pack("<HHH", 8, 8, 8) + pixels + bytes(size)
