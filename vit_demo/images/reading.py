"""Open any picture a person may send, safely, as upright RGB of bounded size."""

import base64
import binascii
import io
import os
import warnings
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageOps

from vit_demo.errors import ImageError

MAX_BYTES = 50_000_000
"""Largest file that is read, in bytes."""

MAX_PIXELS = 100_000_000
"""Largest picture that is decoded, in pixels."""

MAX_SIDE = 2048
"""Longest side of the picture that is handed on, in pixels."""

# Decoders that only decode. Pillow knows more, some of which start other programs (EPS) or are seldom tested.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")

ImageSource: TypeAlias = str | os.PathLike[str] | bytes | Image.Image | np.ndarray


def read_image(source: ImageSource) -> Image.Image:
    """Reads a picture and makes it plain RGB.

    The EXIF orientation is applied, transparency is laid over white, 16-bit and floating-point values are brought to
    8 bits, and an animation gives its first frame. Large pictures are reduced to a longest side of `MAX_SIDE`.

    Args:
        source: a path, the bytes of a file, a `data:image/...;base64,` string, a PIL image, or a uint8 array of
            shape [H, W], [H, W, 3] or [H, W, 4]. None of them is changed.

    Returns:
        A new RGB image, its longest side at most `MAX_SIDE` pixels.

    Raises:
        ImageError: the source is missing, too large, empty, damaged or not a picture.
    """
    if isinstance(source, np.ndarray):
        return _to_rgb(_from_array(source))
    if isinstance(source, Image.Image):
        _check_size(source.size)
        return _to_rgb(source)
    if isinstance(source, str) and source[:5].lower() == "data:":
        source = _from_data_url(source)
    if isinstance(source, str | os.PathLike):
        source = _from_path(source)
    if isinstance(source, bytes | bytearray):
        return _decode(bytes(source))
    raise ImageError(
        f"A picture is a path, bytes, a PIL image or an array: give one of these, not {type(source).__name__}."
    )


def _from_array(array: np.ndarray) -> Image.Image:
    shaped = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if array.dtype != np.uint8 or not shaped:
        given = f"{array.dtype} {list(array.shape)}"
        raise ImageError(f"Give a uint8 array of shape [H, W], [H, W, 3] or [H, W, 4], not {given}.")
    _check_size((array.shape[1], array.shape[0]))
    return Image.fromarray(np.ascontiguousarray(array))


def _from_data_url(url: str) -> bytes:
    header, _, body = url.partition(",")
    if not header.lower().endswith(";base64"):
        raise ImageError("This data URL is not base64: encode the picture in base64 or send it as a file.")
    if len(body) * 3 // 4 > MAX_BYTES:
        raise ImageError(_TOO_MANY_BYTES)
    try:
        return base64.b64decode(body)
    except (binascii.Error, ValueError) as error:
        raise ImageError("The base64 of this data URL is damaged: send the picture again.") from error


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


def _decode(data: bytes) -> Image.Image:
    if not data:
        raise ImageError("The file is empty: choose another picture.")
    if len(data) > MAX_BYTES:
        raise ImageError(_TOO_MANY_BYTES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # our own limit stands in for Pillow's, and odd metadata is not news
        try:
            image = Image.open(io.BytesIO(data), formats=FORMATS)
        except Image.DecompressionBombError as error:
            raise ImageError(_TOO_MANY_PIXELS) from error
        except Exception as error:  # decoders fed with hostile bytes raise nearly anything
            raise ImageError("This is not a picture that can be read: save it as PNG, JPEG or WebP.") from error
        _check_size(image.size)
        scale = min(1.0, MAX_SIDE / max(image.size))
        # JPEG can be decoded at 1/2, 1/4 or 1/8 size, never below what is asked for; other formats ignore this.
        image.draft(None, (round(image.width * scale), round(image.height * scale)))
        return _to_rgb(image)


def _check_size(size: tuple[int, int]) -> None:
    if min(size) < 1:
        raise ImageError("The picture has no pixels: choose another one.")
    if size[0] * size[1] > MAX_PIXELS:
        raise ImageError(_TOO_MANY_PIXELS)


def _to_rgb(image: Image.Image) -> Image.Image:
    """Decodes, turns upright, flattens, and reduces to `MAX_SIDE`; a new image in any case."""
    try:
        image.load()
        image = _flatten(_upright(image))
        if max(image.size) > MAX_SIDE:
            scale = MAX_SIDE / max(image.size)
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
            image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        return image.convert("RGB")
    except ImageError:
        raise
    except Exception as error:
        raise ImageError("The picture is damaged or incomplete: save it again or choose another one.") from error


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a picture with broken metadata is still a picture
        return image


def _flatten(image: Image.Image) -> Image.Image:
    """Brings any mode to L or RGB."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _to_8_bits(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(paper, image).convert("RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Scales deep greyscale by the white that its mode or its values suggest."""
    values = np.asarray(image).astype(np.float32)
    if not np.isfinite(values).all():
        raise ImageError("The picture holds values that are not numbers: save it again without NaN or infinity.")
    low, high = float(values.min()), float(values.max())
    whites = {"I": (255.0, 65535.0), "F": (1.0, 255.0, 65535.0)}.get(image.mode, (65535.0,))
    white = next((white for white in whites if low >= 0 and high <= white), None)
    if white is None:  # no usual scale holds these values, so show all of them
        values, white = values - low, max(high - low, 1.0)
    return Image.fromarray((values * (255.0 / white)).round().astype(np.uint8))


_TOO_MANY_BYTES = f"The file is larger than {MAX_BYTES // 10**6} MB: save a smaller copy and send that."
_TOO_MANY_PIXELS = f"The picture has more than {MAX_PIXELS // 10**6} million pixels: save a smaller copy and send that."
