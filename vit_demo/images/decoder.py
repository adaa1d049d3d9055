"""The decoding process: the bytes of a picture file on stdin, upright RGB pixels or one sentence on stdout.

It binds itself with limits of the kernel, because a decoder cannot be stopped from within, and some can be made to
ask for gigabytes, or minutes, by a file of a few kilobytes. `decoder_process` starts it.
"""

import io
import re
import sys
import warnings

from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images import limits
from vit_demo.images.rgb import to_rgb

# Decoders that only decode. Pillow knows more, some of which start other programs (EPS) or are seldom tested.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")

NOT_A_PICTURE = "This is not a picture that can be read: save it as PNG, JPEG or WebP."
TOO_COMPLEX = "The picture takes too much time or memory to read: save it as an ordinary PNG or JPEG and send that."

OK, REFUSED = b"pixels", b"refused"

# A marker of JPEG, but none of those that may stand within a scan: FF 00 is a value, FF D0 to FF D7 are restarts.
_MARKER = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)


def main() -> None:
    """Answers stdin on stdout: `OK width height` and a line feed before the pixels, or `REFUSED` and the sentence."""
    _bind()
    try:
        image = decode(sys.stdin.buffer.read())
        answer = b"%s %d %d\n%s" % (OK, *image.size, image.tobytes())
    except ImageError as error:
        answer = REFUSED + b" " + str(error).encode()
    except MemoryError:
        answer = REFUSED + b" " + TOO_COMPLEX.encode()
    sys.stdout.buffer.write(answer)


def decode(data: bytes) -> Image.Image:
    """Decodes the first frame of a picture file.

    Returns:
        A new RGB image, upright, its longest side at most `MAX_SIDE` pixels.

    Raises:
        ImageError: this is not a picture, or a damaged one, or one above the limits.
        MemoryError: it needs more memory than there is.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # our own limit stands in for Pillow's, and odd metadata is not news
        try:
            image = Image.open(io.BytesIO(data), formats=FORMATS)
        except Image.DecompressionBombError as error:
            raise ImageError(too_many_pixels(limits.MAX_PIXELS)) from error
        except MemoryError:
            raise
        except Exception as error:  # decoders fed with hostile bytes raise nearly anything
            raise ImageError(NOT_A_PICTURE) from error
        check_size(image.size, _most_pixels(image))
        if image.format in ("JPEG", "MPO"):
            if _more_scans_than(limits.MAX_JPEG_SCANS, data):
                raise ImageError(TOO_COMPLEX)
            scale = min(1.0, limits.MAX_SIDE / max(image.size))
            # Decoded at 1/2, 1/4 or 1/8 of its size, never below what is asked for.
            image.draft(None, (round(image.width * scale), round(image.height * scale)))
        return to_rgb(image)


def check_size(size: tuple[int, int], most_pixels: int = limits.MAX_PIXELS) -> None:
    """Refuses a (width, height) without pixels or with too many.

    Raises:
        ImageError: so it is.
    """
    if min(size) < 1:
        raise ImageError("The picture has no pixels: choose another one.")
    if size[0] * size[1] > most_pixels:
        raise ImageError(too_many_pixels(most_pixels))
    if max(size) > limits.MAX_DIMENSION:
        raise ImageError(f"A side of the picture has more than {limits.MAX_DIMENSION} pixels: send a smaller copy.")


def too_many_pixels(most: int) -> str:
    """Gives the sentence about a picture of more than so many pixels."""
    return f"The picture has more than {most / 1e6:g} million pixels: save a smaller copy and send that."


def _most_pixels(image: Image.Image) -> int:
    if image.format in ("JPEG", "MPO") or image.mode in ("1", "L"):
        return limits.MAX_PIXELS
    return limits.MAX_WEBP_PIXELS if image.format == "WEBP" else limits.MAX_COLOUR_PIXELS


def _more_scans_than(most: int, jpeg: bytes) -> bool:
    position = 2
    while (marker := _MARKER.search(jpeg, position)) and marker[1] != b"\xd9":  # D9 is the end
        position = marker.end()
        most -= marker[1] == b"\xda"
        if most < 0:
            return True
        position += int.from_bytes(jpeg[position : position + 2])  # over the segment
    return False


def _bind() -> None:
    """Has the kernel end this process where it exceeds its memory or time; Windows knows no such limits."""
    if sys.platform != "win32":
        import resource
        import signal

        for kind, most in ((resource.RLIMIT_AS, limits.MAX_DECODER_MEMORY), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
        signal.setitimer(signal.ITIMER_PROF, limits.MAX_CPU_SECONDS)
