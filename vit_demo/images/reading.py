"""Reads any picture as an upright RGB image of bounded size.

Visitors' input goes to `decode_image` or `decode_drawing`, neither of which ever opens a file, and untrusted files are
decoded in separate processes, two at a time. `read_image`, which opens files, is for the Python package and the command
line.
"""

import base64
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import ExifTags, Image

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.errors import ImageError
from vit_demo.images.decoder import FORMATS, NOT_A_PICTURE, OK, REFUSED, TOO_COMPLEX, added_formats, check_size, decode
from vit_demo.images.rgb import DAMAGED, MAX_SIDE, to_rgb
from vit_demo.sentences import Sentence

MAX_DECODE_SECONDS = 20.0  # elapsed time of the decoding process, in seconds; more than CPU time if the machine is busy
MAX_WAIT_SECONDS = 20.0  # time that a picture may wait for others to be decoded, in seconds
MAX_DRAWING_CHARACTERS = 1_000_000  # a drawing's data URL; the pad sends a PNG of a few hundred pixels per side
MAX_DRAWING_SIDE = 560  # longest side of a drawing's canvas, in pixels: twice that of the pad

MAX_DRAWING_CHUNKS = 1000  # chunks of this PNG; browsers write a few for every 10 kB, and each takes long
MAX_FRAME_CHARACTERS = 100_000  # length of a frame's data URL; the page sends a JPEG of about 20 kB
MAX_FRAME_SIDES = 256, 640  # short and long side of a frame, in pixels

MAX_FRAME_SEGMENTS, MAX_FRAME_SCANS = 64, 12
"""Segments of this JPEG before its picture, and scans, each of which may cost as much as the whole: progressive ones
have 10."""

_HERE = Path(__file__).parent

# Empty packages replace vit_demo and vit_demo.images, whose own __init__ would import torch, which takes seconds.
_START = """
import sys, types
for name, folder in zip(("vit_demo", "vit_demo.images"), sys.argv[1:]):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from vit_demo.images.decoder import main
main()
"""

_pictures = threading.BoundedSemaphore(2)  # so that one that takes long does not stop all others
_drawings = threading.BoundedSemaphore(2)

ImageSource: TypeAlias = str | os.PathLike[str] | bytes | Image.Image | np.ndarray

_DRAWING = "data:image/png;base64,"
_FRAME = "data:image/jpeg;base64,"
_BAD_FRAME = "The frame of the camera cannot be read: start the camera again, or choose a photo."
_BAD_DRAWING = "The drawing cannot be read: clear the pad and draw again."


@contextmanager
def decoding_slot(*, drawing: bool = False) -> Iterator[None]:
    """Waits until nothing else is being decoded, or raises `ImageError`; drawings, which are quick, pass photos."""
    slot = _drawings if drawing else _pictures
    if not slot.acquire(timeout=MAX_WAIT_SECONDS):
        raise ImageError("Too many pictures are being decoded right now: try again in a few seconds.")
    try:
        yield
    finally:
        slot.release()


def decode_in_process(data: bytes) -> Image.Image:
    """Decodes a picture file, or raises `ImageError`, in a process that the kernel ends when it exceeds its limits."""
    command = [sys.executable, "-P", "-c", _START, str(_HERE.parent), str(_HERE)]
    try:
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MAX_DECODE_SECONDS,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ImageError(TOO_COMPLEX) from error
    head, _, pixels = done.stdout.partition(b"\n")
    if done.returncode == 0 and head.startswith(REFUSED):
        raise ImageError(Sentence(done.stdout[len(REFUSED) + 1 :].decode()))
    if done.returncode == 0 and head.startswith(OK):
        width, height = (int(word) for word in head.split()[1:])
        if 1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE and len(pixels) == width * height * 3:
            return Image.frombytes("RGB", (width, height), pixels)
    # By the timer, or by the kernel where memory is short.
    killed = sys.platform != "win32" and done.returncode in (-signal.SIGPROF, -signal.SIGKILL)
    raise ImageError(TOO_COMPLEX if killed else DAMAGED)


def _environment() -> dict[str, str]:
    """The variables that Python needs to start, and none of the server's secrets."""
    names = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    # numpy would reserve memory for one thread per core, and malloc for each thread of the HEIF decoder.
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return kept | threads | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def decode_image(data: bytes) -> Image.Image:
    """Decodes an untrusted picture file (PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF, HEIC or PPM), within limits.

    The EXIF orientation is applied, transparency is blended over white, 16-bit and floating-point values are scaled to
    8 bits, and of an animation the first frame is taken. Large pictures are reduced to a longest side of `MAX_SIDE`.
    `ImageError` says what is wrong with the data, or that decoding takes too much time or memory.
    """
    if not isinstance(data, bytes):
        raise ImageError(NOT_A_PICTURE)
    _check_bytes(data)
    with decoding_slot():
        return decode_in_process(data)


def decode_drawing(url: str) -> Image.Image:
    """Decodes the value of the pad, a small PNG as a data URL, to RGB, transparency blended over white.

    One with more pixels than the pad's 280 x 280 is halved; anything else, or one too large, is an `ImageError`.
    """
    if isinstance(url, str) and len(url) > MAX_DRAWING_CHARACTERS:
        raise ImageError("The drawing is too large: clear the pad and draw again.")
    data = _bytes_of(url, _DRAWING, MAX_DRAWING_CHARACTERS, _BAD_DRAWING)
    position = 8
    for _ in range(MAX_DRAWING_CHUNKS):
        position += 12 + int.from_bytes(data[position : position + 4])
        if position >= len(data):
            break
    else:
        raise ImageError(_BAD_DRAWING)
    with decoding_slot(drawing=True):
        try:
            image = Image.open(io.BytesIO(data), formats=("PNG",))
            if max(image.size) > MAX_DRAWING_SIDE:
                raise ImageError(_BAD_DRAWING)
            # So small a PNG takes milliseconds, less than starting a process; only its metadata could be a bomb.
            drawing = to_rgb(image, metadata=False)
            # The pad sends half as many; to find the ink of all would take longer than the network does.
            return drawing.reduce(2) if max(drawing.size) > MAX_DRAWING_SIDE // 2 else drawing
        except Exception as error:  # decoders raise nearly anything on hostile bytes
            raise ImageError(_BAD_DRAWING) from error


def decode_frame(url: str) -> Image.Image:
    """Decodes a frame of a camera, a small JPEG as a data URL, to RGB; `ImageError` for anything else or too large."""
    data = _without_metadata(_bytes_of(url, _FRAME, MAX_FRAME_CHARACTERS, _BAD_FRAME))
    if not data or data.count(b"\xff\xda") > MAX_FRAME_SCANS:
        raise ImageError(_BAD_FRAME)
    with decoding_slot(drawing=True):
        try:
            image = Image.open(io.BytesIO(data), formats=("JPEG",))
            if any(side > most for side, most in zip(sorted(image.size), MAX_FRAME_SIDES, strict=True)):
                raise ImageError(_BAD_FRAME)
            return to_rgb(image, metadata=False)
        except Exception as error:  # decoders raise nearly anything on hostile bytes
            raise ImageError(_BAD_FRAME) from error


def _without_metadata(jpeg: bytes) -> bytes:
    """A JPEG without segments for applications and comments before its first scan; empty if it is none."""
    kept, at = [jpeg[:2]], 2
    for _ in range(MAX_FRAME_SEGMENTS):
        mark, kind, length = jpeg[at : at + 1], jpeg[at + 1 : at + 2], int.from_bytes(jpeg[at + 2 : at + 4])
        if mark != b"\xff" or length < 2:
            break
        if kind == b"\xda":
            return b"".join([*kept, jpeg[at:]])
        if not b"\xe0" <= kind <= b"\xef" and kind != b"\xfe":
            kept.append(jpeg[at : at + 2 + length])
        at += 2 + length
    return b""


def _bytes_of(url: str, head: str, most: int, refusal: str) -> bytes:
    """The bytes of a data URL of one kind and of so many characters; others are refused."""
    if not isinstance(url, str) or not url.startswith(head) or len(url) > most:
        raise ImageError(refusal)
    try:
        return base64.b64decode(url[len(head) :], validate=True)
    except ValueError as error:
        raise ImageError(refusal) from error


def read_image(source: ImageSource, *, trusted: bool = False) -> Image.Image:
    """Reads a picture as a new RGB image, with the conversions of `decode_image`; `ImageError` if that is not possible.

    Never pass it a string from a visitor: it opens paths. A PIL image is decoded in this process, without limits on
    time and memory, and so are the bytes of a file that is `trusted`; an array of shape [H, W], [H, W, 3] or [H, W, 4]
    is uint8, or float from 0 to 1.
    """
    if isinstance(source, np.ndarray):
        return to_rgb(_from_array(source))
    if isinstance(source, Image.Image):
        check_size(source.size)
        return to_rgb(source)
    if trusted and isinstance(source, str | os.PathLike | bytes | bytearray):
        data = bytes(source) if isinstance(source, bytes | bytearray) else _from_path(source)
        _check_bytes(data)
        try:
            return decode(data)
        except MemoryError as error:
            raise ImageError(TOO_COMPLEX) from error
    if isinstance(source, str | os.PathLike):
        with decoding_slot():  # wait before reading, so that waiting files take no memory
            data = _from_path(source)
            _check_bytes(data)
            return decode_in_process(data)
    if isinstance(source, bytes | bytearray):
        return decode_image(bytes(source))
    raise ImageError(f"A picture must be a path, bytes, a PIL image or an array, not {type(source).__name__}.")


def stored_size(source: object) -> tuple[tuple[int, int], int] | None:
    """Width and height of a trusted picture as it is stored, and its EXIF orientation; None for what is no picture."""
    if isinstance(source, np.ndarray):
        return (source.shape[1], source.shape[0]), 1
    if isinstance(source, str | os.PathLike | bytes | bytearray):
        data = bytes(source) if isinstance(source, bytes | bytearray) else _from_path(source)
        source = Image.open(io.BytesIO(data), formats=(*FORMATS, *added_formats(data)))
    turn = 1
    if isinstance(source, Image.Image) and source.format != "TIFF":  # which Pillow turns by itself
        with suppress(Exception):  # a picture with broken metadata is still a picture
            turn = source.getexif().get(ExifTags.Base.Orientation, 1)
    return (source.size, turn) if isinstance(source, Image.Image) else None


def _check_bytes(data: bytes) -> None:
    if not data:
        raise ImageError("The file is empty: choose another picture.")
    if len(data) > MAX_PICTURE_BYTES:
        raise ImageError(
            "The file is larger than {0} MB: save a smaller copy and send that.", MAX_PICTURE_BYTES // 10**6
        )


def _from_array(array: np.ndarray) -> Image.Image:
    shaped = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    is_share = array.dtype.kind == "f" and bool(((array >= 0) & (array <= 1)).all())
    if not shaped or not (array.dtype == np.uint8 or is_share):
        kinds = "uint8, or float from 0 to 1, of shape [H, W], [H, W, 3] or [H, W, 4]"
        raise ImageError(f"An array must be {kinds}, not {array.dtype} {list(array.shape)}.")
    check_size((array.shape[1], array.shape[0]))
    if is_share:
        array = (255 * array.astype(np.float64)).round().astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(array))


def _from_path(source: str | os.PathLike[str]) -> bytes:
    # Messages show only the last part of the path.
    path = Path(source)
    name = repr(path.name[:80])
    try:
        # Only regular files: a pipe or a device could block or never end.
        if not path.is_file():
            what = (
                ("a folder" if os.access(path, os.R_OK) else "a folder that cannot be read")
                if path.is_dir()
                else "missing"
            )
            raise ImageError(f"{name} is {what}: give the path of a picture file.")
        with path.open("rb") as file:
            return file.read(MAX_PICTURE_BYTES + 1)
    except ImageError:
        raise
    except (OSError, ValueError) as error:
        raise ImageError(f"{name} cannot be opened: check the path and that you may read it.") from error
