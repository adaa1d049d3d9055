"""A corpus of hostile pictures, made by this script: small files that are damaged, deceptive, or expensive to decode.

python -m tests.images.corpus FOLDER        # writes them, to try them on a page
"""

import struct
import sys
import zlib
from functools import cache
from pathlib import Path

from PIL import Image, ImageCms

from . import bombs, odd_files


def _photo(**options: object) -> bytes:
    return bombs.encoded(Image.effect_noise((60, 40), 80).convert("RGB"), "JPEG", **options)


def _png(**options: object) -> bytes:
    return bombs.encoded(Image.effect_noise((60, 40), 80), "PNG", **options)


def _large_picture(kind: str, **options: object) -> bytes:
    return bombs.encoded(Image.effect_noise((2_000, 2_000), 80).convert("RGB"), kind, **options)


def _jpeg_of_size(width: int, height: int) -> bytes:
    """A JPEG whose frame declares another size than its data has."""
    data = _photo()
    frame = data.index(b"\xff\xc0") + 5
    return data[:frame] + struct.pack(">HH", height, width) + data[frame + 4 :]


def _png_of_chunk(kind: bytes, body: bytes) -> bytes:
    """A PNG with one more chunk before its data."""
    data = _png()
    return data[:33] + bombs.chunk(kind, body) + data[33:]


def _gif_of_frames(count: int) -> bytes:
    """An animation whose frames declare the largest screen."""
    data = bombs.encoded(Image.new("P", (8, 8)), "GIF")
    frame = data[data.index(b",\0\0\0\0") : -1]
    return data[:6] + struct.pack("<HH", 65_535, 65_535) + data[10:-1] + frame * count + b";"


def _icc() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _icc_of_a_table(points: int) -> bytes:
    """A profile with a table of so many points in each of three dimensions."""
    head = b"mft2" + bytes(4) + bytes([3, 3, points, 0]) + struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    ends = struct.pack(">6H", 0, 65535, 0, 65535, 0, 65535)
    return odd_files.icc_profile(
        b"RGB ", {b"A2B0": head + struct.pack(">2H", 2, 2) + ends + bytes(6 * points**3) + ends}
    )


def _mode(mode: str, kind: str) -> bytes:
    return bombs.encoded(Image.new(mode, (60, 40)), kind)


def _loop_of_exif() -> bytes:
    """EXIF whose directories refer to themselves."""
    entry = struct.pack("<HHII", 0x8769, 4, 1, 8)
    return b"Exif\0\0" + b"II*\0\x08\0\0\0" + struct.pack("<H", 1) + entry + struct.pack("<I", 8)


ENDED_BY_THE_KERNEL = ("many-comments.gif", "many-values.tiff", "text.ppm")
"""The files that are too slow to decode; ``test_hostile.py`` tests that the decoding process ends."""


@cache
def corpus() -> dict[str, bytes]:
    """The files by name. A name says what is hostile about it."""
    icc = _icc()
    svg = b'<?xml version="1.0"?><!DOCTYPE s [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><svg>&b;</svg>'
    files = {
        "bomb-100-megapixels.png": bombs.png(10_000, 10_000, bombs.RGBA),
        "bomb-just-below.png": bombs.png(6_100, 6_100, bombs.PALETTE),
        "bomb-interlaced-16-bit.png": bombs.png(4_000, 4_000, bombs.RGBA, bits=16, interlaced=True),
        "bomb-of-text.png": _png_of_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(50_000_000), 1)),
        "bomb-of-icc.png": _png_of_chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(50_000_000), 1)),
        "bomb-of-strips.tiff": bombs.tiff(6_100, 6_100),
        "bomb-of-a-tile.tiff": bombs.tiff(16, 16, tile=16_000),
        "false-size.avif": bombs.avif_of_false_size(3_000),
        "false-size.jpg": _jpeg_of_size(65_000, 65_000),
        "no-size.jpg": _jpeg_of_size(0, 0),
        "false-screen.gif": _gif_of_frames(2_000),
        "many-comments.gif": bombs.gif_of_comments(50_000),
        "many-values.tiff": bombs.tiff(100, 100, values=3_000, size=1_000_000),
        "many-values-of-exif.png": bombs.png_with_exif_of(3_000, 1_000_000),
        "text.ppm": bombs.text_ppm(2_500),
        "negative.ppm": b"P6 -10 -10 255 " + bytes(300),
        "huge.ppm": b"P6 99999999999 99999999999 255 " + bytes(300),
        "exif-turns-upside-down.jpg": _photo(exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\1\3\0\1\0\0\0\3\0\0\0\0\0\0\0"),
        "exif-of-itself.jpg": _photo(exif=_loop_of_exif()),
        "exif-of-nothing.jpg": _photo(exif=b"Exif\0\0II*\0\xff\xff\xff\xff"),
        "icc.jpg": _photo(icc_profile=icc),
        "icc-cut-off.jpg": _photo(icc_profile=icc[: len(icc) // 2]),
        "icc-of-a-table.tiff": _large_picture("TIFF", icc_profile=_icc_of_a_table(128)),
        "icc-of-a-table.png": _large_picture("PNG", icc_profile=_icc_of_a_table(54)),
        "icc-of-noise.png": _png(icc_profile=bytes(range(256)) * 40),
        "polyglot-of-html.png": _png() + b"<script>alert(1)</script>",
        "polyglot-of-zip.jpg": _photo() + b"PK\3\4" + bytes(200) + b"PK\5\6" + bytes(18),
        "polyglot-of-gif.js": b"GIF89a/*" + _png() + b"*/=1;",
        "polyglot-of-pdf.jpg": b"%PDF-1.7\n" + _photo(),
        "entities.svg": svg,
        "script.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n(/etc/passwd) run\n",
        "link.wmf": b"\xd7\xcd\xc6\x9a" + bytes(60),
        "empty.png": b"",
        "one-byte.png": b"\x89",
        "path.png": b"/etc/passwd",
    }
    modes = {"1": "PNG", "LA": "PNG", "P": "GIF", "I;16": "PNG", "CMYK": "JPEG"}
    modes |= dict.fromkeys(("LAB", "F", "I"), "TIFF")
    files |= {f"mode-{mode.replace(';', '-')}.{kind.lower()}": _mode(mode, kind) for mode, kind in modes.items()}
    for kind, data in {"jpg": _photo(), "png": _png(), "gif": _mode("P", "GIF"), "webp": _mode("RGB", "WEBP")}.items():
        files |= {f"cut-off-at-{share}-percent.{kind}": data[: len(data) * share // 100] for share in (10, 50, 95)}
    return files


def main() -> None:
    """Writes the corpus into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in corpus().items():
        (folder / name).write_bytes(data)
        print(f"{len(data):>9,}  {name}")


if __name__ == "__main__":
    main()
