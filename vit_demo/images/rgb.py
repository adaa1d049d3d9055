"""Converts any PIL image to upright 8-bit RGB of bounded size, with few copies in memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PIL import Image

from vit_demo.errors import ImageError

if TYPE_CHECKING:
    import numpy as np

MAX_SIDE = 2048
"""Longest side of a decoded picture, in pixels; larger ones are reduced."""

DAMAGED = "The picture is damaged, incomplete or too complex: save it again or choose another one."

_ORIENTATION = 0x0112  # the EXIF tag
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_STRIP_PIXELS = 2**20


def to_rgb(image: Image.Image, *, metadata: bool = True) -> Image.Image:
    """Converts to RGB, reduces to `MAX_SIDE` and applies the EXIF orientation; always returns a new image.

    Parsing hostile metadata can take gigabytes, so it happens only for trusted pictures and in the decoding process.

    Raises:
        ImageError: The picture is damaged, or contains NaN or infinity.
    """
    try:
        image.load()
        transpose = _orientation(image) if metadata else None
        image = _flatten(image)
        if max(image.size) > MAX_SIDE:
            scale = MAX_SIDE / max(image.size)
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
            image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        if transpose is not None:  # now that the picture is small
            image = image.transpose(transpose)
        return image.convert("RGB")
    except ImageError:
        raise
    except Exception as error:  # decoders raise nearly anything on hostile bytes
        raise ImageError(DAMAGED) from error


def _orientation(image: Image.Image) -> Image.Transpose | None:
    try:
        return _UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a picture with broken metadata is still a picture
        return None


def _flatten(image: Image.Image) -> Image.Image:
    """Converts any mode to L or RGB."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _to_8_bits(image)
    if image.mode == "La":  # grey times opacity, which Pillow converts to nothing else
        image = image.convert("LA")
    if image.has_transparency_data:
        return _over_white(image)
    return image.convert("L") if image.mode == "1" else image if image.mode in ("L", "RGB") else image.convert("RGB")


def _strips(image: Image.Image) -> Iterator[tuple[Image.Image, tuple[int, int]]]:
    """Strips of a picture, each with the position of its top left corner; only one is copied at a time."""
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height))), (0, top)


def _over_white(image: Image.Image) -> Image.Image:
    flat = Image.new("RGB", image.size)
    for strip, place in _strips(image):
        paper = Image.new("RGBA", strip.size, "white")
        flat.paste(Image.alpha_composite(paper, strip.convert("RGBA")).convert("RGB"), place)
    return flat


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Scales grey of more than 8 bits, with a white level guessed from its mode and values."""
    import numpy as np  # imported here, because the decoding process starts faster without it

    def values(strip: Image.Image) -> "np.ndarray":
        return np.asarray(strip).astype(np.float32)

    lows, highs = zip(
        *((part.min(), part.max()) for part in (values(strip) for strip, _ in _strips(image))), strict=True
    )
    low, high = float(np.min(lows)), float(np.max(highs))  # NaN if any value is
    if not np.isfinite((low, high)).all():
        raise ImageError("The picture contains NaN or infinity: save it again without them.")
    whites = {"I": (255.0, 65535.0), "F": (1.0, 255.0, 65535.0)}.get(image.mode, (65535.0,))
    white = next((white for white in whites if low >= 0 and high <= white), None)
    # Values outside every usual range are scaled from their minimum to their maximum.
    black, white = (0.0, white) if white is not None else (low, max(high - low, 1.0))
    grey = Image.new("L", image.size)
    for strip, place in _strips(image):
        grey.paste(Image.fromarray(((values(strip) - black) * (255.0 / white)).round().astype(np.uint8)), place)
    return grey
