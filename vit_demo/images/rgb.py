"""Converts any PIL image to upright 8-bit RGB of bounded size, with few copies in memory."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageChops, ImageOps

from vit_demo.errors import ImageError

if TYPE_CHECKING:
    import numpy as np

MAX_SIDE = 2048  # longest side of a decoded picture, in pixels; larger ones are reduced

DAMAGED = "The picture is damaged, incomplete or too complex: save it again or choose another one."

_STRIP_PIXELS = 2**20
_FAINT = 24  # of 255; what differs less from the paper is hardly visible
_MODES = {"RGB ": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # by the colour space of a profile
_PHOTOMETRIC, _SAMPLE_FORMAT = 262, 339  # TIFF tags: 0 in the first is white, 1 in the second is unsigned


def to_rgb(image: Image.Image, *, metadata: bool = True, low: Image.Image | None = None) -> Image.Image:
    """Converts to a new upright sRGB image of at most `MAX_SIDE`; `ImageError` if it is damaged or has NaN.

    Parsing hostile metadata can take gigabytes, so it happens only for trusted pictures and in the decoding process.
    Pillow keeps only the high bytes of colours of 16 bits; `low` has the low ones, for pictures that use few bits.
    """
    try:
        image.load()
        info = image.info
        if low is not None and max(high for _, high in _extremes(image)[:3]) < 16:  # 4095 is the highest of 12 bits
            image = _to_8_bits(image, low)
        image = _flatten(image)
        if max(image.size) > MAX_SIDE:
            scale = MAX_SIDE / max(image.size)
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
            image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        if metadata:  # now that the picture is small
            image.info = info  # which a flat copy loses
            image = _upright(image)
            image = _to_srgb(image, info["icc_profile"]) if info.get("icc_profile") else image
        return image.convert("RGB")
    except ImageError:
        raise
    except Exception as error:  # decoders raise nearly anything on hostile bytes
        raise ImageError(DAMAGED) from error


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # a picture with broken metadata is still a picture
        return image


def _extremes(image: Image.Image) -> Any:
    """The lowest and highest value of each channel of a picture with several."""
    return image.getextrema()


def _to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Converts colours from an embedded profile; a picture stays as it is if the profile does not fit it."""
    from PIL import ImageCms  # few pictures need it

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        mode = _MODES.get(source.profile.xcolor_space)
        coloured = image.convert("RGB") if (mode, image.mode) == ("RGB", "L") else image
        if coloured.mode != mode:
            return image
        converted: Any = ImageCms.profileToProfile(coloured, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):  # a picture with a broken profile is still a picture
        return image
    changed = ImageChops.difference(converted, coloured.convert("RGB"))
    return converted if max(high for _, high in _extremes(changed)) > 1 else image  # what only rounding changes


def _flatten(image: Image.Image) -> Image.Image:
    """Converts any mode to L, RGB or CMYK."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _to_8_bits(image)
    if image.mode == "La":  # grey times opacity, which Pillow converts to nothing else
        image = image.convert("LA")
    if image.format == "BMP" and image.mode == "RGBA" and not _extremes(image)[3][1]:
        image = image.convert("RGB")  # its fourth byte is unused
    if image.has_transparency_data:
        over_white = _over(image, "white")
        if min(low for low, _ in _extremes(over_white)) < 255 - _FAINT:
            return over_white
        over_black = _over(image, "black")  # white ink, if anything
        return over_black if max(high for _, high in _extremes(over_black)) > _FAINT else over_white
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB")


def _strips(image: Image.Image) -> Iterator[tuple[Image.Image, tuple[int, int]]]:
    """Yields copies of a picture's strips, each with the position of its top left corner."""
    rows = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield image.crop((0, top, image.width, min(top + rows, image.height))), (0, top)


def _over(image: Image.Image, paper: str) -> Image.Image:
    flat = Image.new("RGB", image.size)
    for strip, place in _strips(image):
        below = Image.new("RGBA", strip.size, paper)
        flat.paste(Image.alpha_composite(below, strip.convert("RGBA")).convert("RGB"), place)
    return flat


def _to_8_bits(image: Image.Image, low: Image.Image | None = None) -> Image.Image:
    """Scales more than 8 bits to 8, with a white level guessed from mode and values.

    `image` is grey; or it has the high bytes of colours, and `low` the low ones.
    """
    import numpy as np  # imported here, because the decoding process starts faster without it

    tags = getattr(image, "tag_v2", {})
    is_unsigned = image.mode == "I" and tags.get(_SAMPLE_FORMAT, (1 if tags else 2,)) == (1,)

    def parts() -> "Iterator[tuple[np.ndarray, tuple[int, int]]]":
        for strip, place in _strips(image):
            values = np.asarray(strip)
            if low is not None:
                corner = (*place, place[0] + strip.width, place[1] + strip.height)
                values = 256 * values.astype(np.uint16) + np.asarray(low.crop(corner))
            yield values.view(np.uint32).astype(np.float32) if is_unsigned else values.astype(np.float32), place

    colours = (part if low is None else part[..., :3] for part, _ in parts())
    lows, highs = zip(*((part.min(), part.max()) for part in colours), strict=True)
    black, high = float(np.min(lows)), float(np.max(highs))  # NaN if any value is
    if not np.isfinite((black, high)).all():
        raise ImageError("The picture contains NaN or infinity: save it again without them.")
    whites: tuple[float, ...] = {"F": (1.0, 255.0, 65535.0)}.get(image.mode, (255.0, 4095.0, 65535.0))
    if is_unsigned and high >= 2**24:
        whites = (2.0**32,)
    white = next((white for white in whites if black >= 0 and high <= white), None)
    # Values outside every usual range are scaled from their minimum to their maximum.
    black, white = (0.0, white) if white is not None else (black, max(high - black, 1.0))
    flat = Image.new("L" if low is None else image.mode, image.size)
    for part, place in parts():
        flat.paste(Image.fromarray(((part - black) * (255.0 / white)).round().clip(0, 255).astype(np.uint8)), place)
    return ImageChops.invert(flat) if tags.get(_PHOTOMETRIC) == 0 else flat
