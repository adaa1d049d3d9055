"""The program of the decoding process: an image file on stdin, upright RGB pixels or an error message on stdout.

It runs under resource limits of the kernel, because a decoder cannot be interrupted from within, and a file of a few
kilobytes can make some decoders allocate gigabytes or run for minutes. `reading` starts it. The limits on pixels
refuse most decompression bombs before that, with a message that gives the reason.
"""

import io
import re
import sys
import warnings
from typing import Any

from PIL import Image

from vit_demo.checks import require
from vit_demo.errors import ImageError
from vit_demo.images.rgb import DAMAGED, MAX_SIDE, to_rgb
from vit_demo.sentences import marked

MAX_DIMENSION = 65_535  # longest side of a picture before it is reduced, in pixels: the limit of JPEG

MAX_PIXELS = 100_000_000  # pixels of a JPEG, decoded at a fraction of its size, or of grey, at one byte each
MAX_COLOUR_PIXELS = 37_500_000  # pixels with colour, transparency or more than 8 bits, at four bytes each

MOST_PIXELS = {"WEBP": 25_000_000, "HEIF": 50_000_000}
"""Pixels of formats whose decoder holds four copies of the picture (WebP) or two (HEIF; phones take 48 million)."""

MAX_DECODER_MEMORY = 640_000_000  # address space of the decoding process, in bytes

MAX_CPU_SECONDS = 2.5  # of the decoding process; a 24-megapixel PNG, the slowest ordinary picture, takes about 1
MAX_HEIF_CPU_SECONDS = 6.0  # for HEIF and AVIF, the formats of phones: 48 megapixels take about 3.5

# Decoders that only decode. Pillow has more; some start other programs (EPS), some are seldom tested.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")

NOT_A_PICTURE = "This file cannot be read as a picture: save it as PNG, JPEG or WebP."
TOO_COMPLEX = "The picture takes too much time or memory to decode: save it as an ordinary PNG or JPEG and send that."

_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)
_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000  # CLONE_NEWUSER, CLONE_NEWNET

OK, REFUSED = b"pixels", b"refused"


def main() -> None:
    """Writes to stdout `OK width height`, a line feed and the pixels; or `REFUSED` and the error message."""
    data = sys.stdin.buffer.read()
    _set_resource_limits(MAX_HEIF_CPU_SECONDS if added_formats(data) else MAX_CPU_SECONDS)
    try:
        image = decode(data)
        output = b"%s %d %d\n%s" % (OK, *image.size, image.tobytes())
    except ImageError as error:
        output = REFUSED + b" " + marked(error.args[0]).encode()
    except MemoryError:
        output = REFUSED + b" " + TOO_COMPLEX.encode()
    sys.stdout.buffer.write(output)


def decode(data: bytes) -> Image.Image:
    """Decodes the first frame of a picture file to a new RGB image, upright, of at most `MAX_SIDE` pixels a side.

    `ImageError` says why it cannot, `MemoryError` that it takes more than the limit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of sizes that our own limits check, and of odd metadata
        image = _open(data)
        if image.format in ("JPEG", "MPO") and not _is_complete(data):
            # If only the last marker is missing, it does not matter which bits would follow.
            ends = (data.rstrip(b"\xff") + more + b"\xff\xd9" for more in (b"", b"\x55" * 64, b"\xaa" * 64))
            first, *others = (to_rgb(_open(end)) for end in ends)
            if others != [first, first]:
                raise ImageError(DAMAGED)
            return first
        return to_rgb(image, low=_low_bytes(data, image))


def _open(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=(*FORMATS, *added_formats(data)))
    except Image.DecompressionBombError as error:
        raise too_many_pixels(MAX_PIXELS) from error
    except MemoryError:
        raise
    except Exception as error:  # decoders raise nearly anything on hostile bytes
        raise ImageError(NOT_A_PICTURE) from error
    is_light = image.format in ("JPEG", "MPO") or image.mode in ("1", "L")
    check_size(image.size, MAX_PIXELS if is_light else MOST_PIXELS.get(image.format or "", MAX_COLOUR_PIXELS))
    if image.format in ("JPEG", "MPO"):
        scale = min(1.0, MAX_SIDE / max(image.size))
        # Decodes at 1/2, 1/4 or 1/8 of the size, never below the requested size.
        image.draft(None, (round(image.width * scale), round(image.height * scale)))
    return image


def _low_bytes(data: bytes, image: Image.Image) -> Image.Image | None:
    """The low bytes of 16-bit colours, because Pillow reads only the high bytes; None for other pictures."""
    tiles = getattr(image, "tile", [])
    if not re.search("'RGBA?;16[BLN]'", str(tiles[:1])):
        return None
    low: Any = _open(data)
    other = {"B": "L", "L": "B", "N": "LB"[sys.byteorder == "little"]}
    for i, tile in enumerate(tiles):
        mode, *rest = (tile.args,) if isinstance(tile.args, str) else tile.args
        low.tile[i] = tile._replace(args=(mode[:-1] + other[mode[-1]], *rest))
    return low


def check_size(size: tuple[int, int], max_pixels: int = MAX_PIXELS) -> None:
    """Checks a picture's (width, height); `ImageError` if it is empty or too large."""
    if min(size) < 1:
        raise ImageError("The picture has no pixels: choose another one.")
    if size[0] * size[1] > max_pixels:
        raise too_many_pixels(max_pixels)
    if max(size) > MAX_DIMENSION:
        raise ImageError("A side of the picture has more than {0} pixels: send a smaller copy.", MAX_DIMENSION)


def too_many_pixels(max_pixels: int) -> ImageError:
    """The error of a picture with more pixels than a limit."""
    template = "The picture has more than {0} million pixels: save a smaller copy and send that."
    return ImageError(template, f"{max_pixels / 1e6:g}")


def added_formats(data: bytes) -> tuple[str, ...]:
    """Registers the decoder of HEIF, the format of many phones, where a file may need it: importing it takes time.

    It applies the file's own rotation and resets the EXIF orientation.
    """
    if data[4:8] != b"ftyp" or data[8:12] in (b"avif", b"avis"):  # the box that starts every ISO media file
        return ()
    require("pi_heif", "A picture of this format")
    import pi_heif

    pi_heif.register_heif_opener(thumbnails=False)
    return ("HEIF",)


def _is_complete(jpeg: bytes) -> bool:
    """Whether the marker of a JPEG's end is found."""
    position = 2
    while (marker := _MARKER.search(jpeg, position)) and marker[1] != b"\xd9":
        position = marker.end() + int.from_bytes(jpeg[marker.end() : marker.end() + 2])  # length of the segment
    return marker is not None


def _set_resource_limits(seconds: float) -> None:
    """Makes the kernel end this process when it exceeds its memory or CPU time; Windows has no such limits.

    On Linux it also loses the network, unless the kernel lets no unprivileged process have one of its own.
    """
    if sys.platform != "win32":
        import resource
        import signal

        for kind, limit in ((resource.RLIMIT_AS, MAX_DECODER_MEMORY), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (limit, limit))
        signal.setitimer(signal.ITIMER_PROF, seconds)
    if sys.platform == "linux":
        import ctypes

        unshare = ctypes.CDLL(None).unshare  # not 0 if it is not allowed; root needs no namespace of users
        _ = unshare(_NEW_NETWORK) and unshare(_NEW_USER | _NEW_NETWORK)
