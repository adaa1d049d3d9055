"""What a page may send, checked field by field: nothing else of a request is ever looked at or kept."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from vit_demo import images
from vit_demo.errors import ImageError, InputError, PresetError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.inputs import Fit, Picture, Source, check_fit
from vit_demo.web import settings, uploads
from vit_demo.web.limits import NAME_LENGTH, PICTURE_BYTES
from vit_demo.weights import PRESETS, Preset

_pictures: ByteCache[Image.Image] = ByteCache(PICTURE_BYTES, lambda picture: 3 * picture.width * picture.height)


def text(value: Any, what: str) -> str:
    """A short string.

    Raises:
        InputError: If it is none.
    """
    if not isinstance(value, str) or len(value) > NAME_LENGTH:
        raise InputError(f"The {what} is not a short text: send a string of at most {NAME_LENGTH} characters.")
    return value


def integer(value: Any, what: str, lowest: int = 0, highest: int = 1_000_000) -> int:
    """A whole number, also one written as a string or as 4.0.

    Raises:
        InputError: If it is none, or out of range.
    """
    number: float | None = None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        number = int(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if number is None or not lowest <= number <= highest or number != int(number):
        raise InputError(f"The {what} is not a whole number from {lowest} to {highest}: send one.")
    return int(number)


def preset_name(value: Any) -> str:
    """The name of a preset, or of a repository of the Hub where visitors may bring their own models.

    Raises:
        PresetError: If it is neither; the file system is not asked.
    """
    name = text(value, "preset")
    if name not in PRESETS and not settings.is_repository(name):
        raise PresetError(f"There is no preset {name!r}: see /presets, or name a repository of the Hub as org/name.")
    return name


def fit_of(value: Any) -> Fit:
    """How a photo is fitted.

    Raises:
        PresetError: If there is no such way.
    """
    fit = text(value, "fit")
    check_fit(fit)
    return fit  # type: ignore[return-value]


def drawing_source(value: Any) -> Source:
    """The drawing of the pad: a data URL of a PNG, and nothing else.

    Raises:
        ImageError: If it is anything else.
    """
    if not isinstance(value, str):
        raise ImageError("This is not a drawing: send the data URL of a PNG.")
    digest = hashlib.sha256(value.encode(errors="replace")).digest()
    return Source(("drawing", digest), lambda: images.decode_drawing(value))


def upload_source(payload: Any) -> Source:
    """An uploaded photo; it is read only when its result is not cached.

    Raises:
        ImageError: If it was not uploaded here.
    """
    path = uploads.find(payload)

    def read() -> Image.Image:
        picture = _pictures.get(path)
        if picture is None:
            _pictures.put(path, picture := images.decode_image(uploads.read(path)))
        return picture

    return Source(("upload", str(path)), read, reference=str(path))


def digit_source(value: Any) -> Source:
    """A digit as the model saw it: the data URL of a grey PNG of 28 x 28 pixels.

    Raises:
        ImageError: If it is anything else.
    """
    if not isinstance(value, str) or len(value) > 10_000:
        raise ImageError("This is not a digit of 28 x 28 pixels: draw it again.")

    def read() -> Picture:
        picture = images.decode_drawing(value)
        if picture.size != (28, 28):
            raise ImageError("This is not a digit of 28 x 28 pixels: draw it again.")
        return np.asarray(picture.convert("L"))

    return Source(("digit", hashlib.sha256(value.encode(errors="replace")).digest()), read)


@dataclass(frozen=True)
class ResultRequest:
    """Which result a page means: everything that it takes to compute it again, on any server.

    Attributes:
        source: The picture.
        name: Of the preset.
        patch_size: In pixels.
        fit: How a photo is fitted.
        dropped: Patches that are left out, counted row by row.
    """

    source: Source
    name: str
    patch_size: int
    fit: Fit
    dropped: tuple[int, ...] = ()

    @classmethod
    def of(cls, sent: Any) -> ResultRequest:
        """Reads what ``payload.source_of`` has given to the page.

        Raises:
            InputError: If a field is missing or is not what it should be.
        """
        if not isinstance(sent, dict):
            raise InputError("The request does not say which result it is about: reload the page.")
        source = digit_source(sent.get("digit")) if sent.get("digit") is not None else upload_source(sent.get("upload"))
        return cls(
            source,
            preset_name(sent.get("preset")),
            integer(sent.get("patch_size"), "patch size", 1, 10_000),
            fit_of(sent.get("fit")),
            patches(sent.get("dropped", [])),
        )

    @property
    def key(self) -> bytes:
        """Equal keys mean equal results; as short for a long request as for a short one."""
        fields = self.source.identity, self.name, self.patch_size, self.fit, self.dropped
        return hashlib.sha256(repr(fields).encode(errors="replace")).digest()


def patches(value: Any) -> tuple[int, ...]:
    """Some patches of a grid, counted row by row.

    Raises:
        InputError: If it is not a list of them.
    """
    if not isinstance(value, list) or len(value) > 10_000:
        raise InputError("The patches are not a list of numbers: send one.")
    return tuple(sorted({integer(patch, "patch", 0, 10_000) for patch in value}))


def check_size(preset: Preset, value: Any) -> int:
    """The patch size, or the preset's default for 0 and nothing.

    Raises:
        PresetError: If the preset has no such size.
    """
    if value in (None, "", 0):
        return preset.default_patch_size
    return preset.check_patch_size(integer(value, "patch size", 0, 10_000))
