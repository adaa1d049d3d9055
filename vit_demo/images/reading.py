"""Open any picture a person may send, safely, as upright RGB of bounded size.

Bytes and paths have functions of their own: what a visitor sends is decoded by `decode_image` or `decode_drawing`,
neither of which opens a file. `read_image` is for the Python package and the command line.
"""

import base64
import io
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image

from vit_demo.errors import ImageError
from vit_demo.images.decoder import NOT_A_PICTURE, check_size
from vit_demo.images.decoder_process import decode_in_process, decoding_slot
from vit_demo.images.limits import MAX_BYTES, MAX_DRAWING_CHARACTERS, MAX_DRAWING_SIDE
from vit_demo.images.rgb import to_rgb

ImageSource: TypeAlias = str | os.PathLike[str] | bytes | Image.Image | np.ndarray

_DRAWING = "data:image/png;base64,"
_BAD_DRAWING = "The drawing cannot be read: clear the pad and draw again."


def decode_image(data: bytes) -> Image.Image:
    """Decodes a picture that a stranger sent, within the bounds of `limits`.

    The EXIF orientation is applied, transparency is laid over white, 16-bit and floating-point values are brought to
    8 bits, and an animation gives its first frame. Large pictures are reduced to a longest side of `MAX_SIDE`.

    Args:
        data: a PNG, JPEG, WebP, GIF, BMP, TIFF, AVIF or PPM file.

    Returns:
        A new RGB image, its longest side at most `MAX_SIDE` pixels.

    Raises:
        ImageError: the data are not bytes, too large, empty, damaged or not a picture; or they cost too much time or
            memory; or too many pictures are being read.
    """
    if not isinstance(data, bytes):
        raise ImageError(NOT_A_PICTURE)
    _check_bytes(data)
    with decoding_slot():
        return decode_in_process(data)


def decode_drawing(url: str) -> Image.Image:
    """Decodes what the pad sends: a small PNG as a data URL.

    Args:
        url: `data:image/png;base64,` and at most `MAX_DRAWING_CHARACTERS` characters in all.

    Returns:
        A new RGB image, transparency over white.

    Raises:
        ImageError: it is anything else, or its canvas is larger than `MAX_DRAWING_SIDE` on a side.
    """
    if not isinstance(url, str) or not url.startswith(_DRAWING):
        raise ImageError(_BAD_DRAWING)
    if len(url) > MAX_DRAWING_CHARACTERS:
        raise ImageError("The drawing is too large: clear the pad and draw again.")
    try:
        data = base64.b64decode(url[len(_DRAWING) :], validate=True)
    except ValueError as error:
        raise ImageError(_BAD_DRAWING) from error
    with decoding_slot(drawing=True):
        try:
            image = Image.open(io.BytesIO(data), formats=("PNG",))
            if max(image.size) > MAX_DRAWING_SIDE:
                raise ImageError(_BAD_DRAWING)
            # So small a PNG takes milliseconds, less than to start a process; only its metadata could be a bomb.
            return to_rgb(image, metadata=False)
        except Exception as error:  # a decoder fed with hostile bytes raises nearly anything
            raise ImageError(_BAD_DRAWING) from error


def read_image(source: ImageSource) -> Image.Image:
    """Reads a picture of the user's own and makes it plain RGB, as `decode_image` does.

    Never call it with a string that a stranger sent: it opens paths.

    Args:
        source: a path, the bytes of a file, a PIL image, or a uint8 array of shape [H, W], [H, W, 3] or [H, W, 4].
            None of them is changed. A PIL image is decoded by this process, without limits on time and memory.

    Returns:
        A new RGB image, its longest side at most `MAX_SIDE` pixels.

    Raises:
        ImageError: the source is missing, too large, empty, damaged or not a picture.
    """
    if isinstance(source, np.ndarray):
        return to_rgb(_from_array(source))
    if isinstance(source, Image.Image):
        check_size(source.size)
        return to_rgb(source)
    if isinstance(source, str | os.PathLike):
        with decoding_slot():  # files wait on the disk, not in memory
            data = _from_path(source)
            _check_bytes(data)
            return decode_in_process(data)
    if isinstance(source, bytes | bytearray):
        return decode_image(bytes(source))
    raise ImageError(
        f"A picture is a path, bytes, a PIL image or an array: give one of these, not {type(source).__name__}."
    )


def _check_bytes(data: bytes) -> None:
    if not data:
        raise ImageError("The file is empty: choose another picture.")
    if len(data) > MAX_BYTES:
        raise ImageError(f"The file is larger than {MAX_BYTES // 10**6} MB: save a smaller copy and send that.")


def _from_array(array: np.ndarray) -> Image.Image:
    shaped = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if array.dtype != np.uint8 or not shaped:
        given = f"{array.dtype} {list(array.shape)}"
        raise ImageError(f"Give a uint8 array of shape [H, W], [H, W, 3] or [H, W, 4], not {given}.")
    check_size((array.shape[1], array.shape[0]))
    return Image.fromarray(np.ascontiguousarray(array))


def _from_path(source: str | os.PathLike[str]) -> bytes:
    # Only the last part of the path is shown: on a server the rest is nobody's business.
    path = Path(source)
    name = repr(path.name[:80])
    try:
        # A pipe or a device would block or never end, hence files only.
        if not path.is_file():
            what = "a folder" if path.is_dir() else "missing"
            raise ImageError(f"{name} is {what}: give the path of a picture file.")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except ImageError:
        raise
    except (OSError, ValueError) as error:
        raise ImageError(f"{name} cannot be opened: check the path and that you may read it.") from error
