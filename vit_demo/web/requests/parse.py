"""Checks of what the page and callers of the API send: types with pydantic's validators, of which requests are made.

An invalid value raises an ``InputError``: an ``ImageError`` for a picture, a ``PresetError`` for a model or a fit.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from PIL import Image
from pydantic import BeforeValidator, SkipValidation, TypeAdapter, ValidationError

from vit_demo import images
from vit_demo.defaults import MAX_HEADS, MAX_VISITOR_WORDS
from vit_demo.errors import ImageError, InputError, LabelError, PresetError
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.inputs import Fit, Picture, check_fit
from vit_demo.methods import find_method
from vit_demo.service.source import Source
from vit_demo.training.small import NUM_TEST, held_out_digit
from vit_demo.web import settings
from vit_demo.web.catalog.example_digits import example_picture
from vit_demo.web.catalog.example_photos import EXAMPLE_PHOTOS, ExamplePhoto
from vit_demo.web.catalog.visitor_presets import MAX_NAME_LENGTH
from vit_demo.web.guard import uploads
from vit_demo.weights import PRESETS, Preset
from vit_demo.weights.kept_networks import is_trained_name
from vit_demo.words.texts import check_words, split_words

Json = dict[str, Any]  # a JSON object
EXAMPLE_DIGITS = {f"digit-{digit}": digit for digit in range(10)}  # the names of the example digits

TEST_DIGITS = [f"test-{number}" for number in range(NUM_TEST)]  # digits that ``train_small`` does not train on
MAX_WORDS_LENGTH = 20_000  # characters of a text with words, which the event loop cuts
PICTURE_CACHE_BYTES = 48 << 20  # size of the cache of decoded photos, for the next patch size or fit

_pictures: ByteCache[Image.Image] = ByteCache(PICTURE_CACHE_BYTES, lambda picture: 3 * picture.width * picture.height)


def checked(kind: Any, sent: Any, context: Any = None) -> Any:
    """What was sent, as a value of a type with pydantic's validators, or as a dataclass whose fields have such types.

    For a dataclass a JSON object is sent, in which null stands for a field that is left out. Validators get ``context``
    as ``ValidationInfo.context``. The ``InputError`` is that of the first check that fails.
    """
    if is_dataclass(kind):
        required = {field.name: None for field in fields(kind) if field.default is MISSING}  # their checks refuse None
        sent = required | {name: value for name, value in sent.items() if value is not None}
    try:
        return _adapter(kind).validate_python(sent, context=context)
    except ValidationError as error:
        raise error.errors(include_url=False, include_input=False)[0]["ctx"]["error"] from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def short_string(value: Any, field: str) -> str:
    """A string of at most ``MAX_NAME_LENGTH`` characters."""
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH:
        raise InputError(f"The {field} must be a string of at most {MAX_NAME_LENGTH} characters.")
    return value


def integer(value: Any, field: str, lowest: int = 0, highest: int = 1_000_000) -> int:
    """An integer in a range; strings of digits and whole floats are converted."""
    number: float | None = None
    if isinstance(value, str) and re.fullmatch("-?(0|[1-9][0-9]{0,8})", value):
        number = int(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    if number is None or not lowest <= number <= highest or number != int(number):
        raise InputError(f"The {field} must be a whole number from {lowest} to {highest}.")
    return int(number)


def whole_number(name: str, lowest: int = 0, highest: int = 1_000_000) -> BeforeValidator:
    """The check of a whole number in a range."""
    return BeforeValidator(lambda value: integer(value, name, lowest, highest))


def one_of(options: Sequence[str], message: str) -> BeforeValidator:
    """The check of a text that is one of a few."""

    def check(value: Any) -> Any:
        if value not in options:
            raise InputError(message)
        return value

    return BeforeValidator(check)


def method_name(value: Any) -> str:
    """The name of a method, checked."""
    return find_method(short_string(value, "method")).name


def preset_name(value: Any) -> str:
    """The name of a preset or, if custom models are allowed, of a repository; the file system is not accessed."""
    name = short_string(value, "preset")
    if name not in PRESETS and not is_trained_name(name) and not settings.is_allowed_repository(name):
        raise PresetError(f"There is no preset {name!r}: see /presets, or give a repository of the Hub as org/name.")
    return name


def fit(value: Any) -> Fit:
    """How a photo becomes the input; see ``inputs.FITS``."""
    name = short_string(value, "fit")
    check_fit(name)
    return name  # type: ignore[return-value]


def drawing_source(value: Any) -> Source:
    """The drawing of the pad, a PNG as a data URL; it is checked when it is read."""
    if not isinstance(value, str):
        raise ImageError("This is not a drawing: send a PNG as a data URL.")
    return Source(("drawing", _digest(value)), lambda: images.decode_drawing(value))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def upload_source(payload: Any) -> Source:
    """A photo that was uploaded to this server; it is read only if its result is not cached."""
    path = uploads.find(payload)
    return Source(("upload", str(path)), lambda: _decode_once(path), str(path), lambda: path in _pictures)


def example_source(value: Any) -> Source:
    """An example of the page: the name of a photo, ``digit-0`` to ``digit-9``, or one of ``TEST_DIGITS``."""
    name = value if isinstance(value, str) else ""
    if name in EXAMPLE_DIGITS:
        return Source(("example", name), lambda: example_picture(EXAMPLE_DIGITS[name]))
    if name in TEST_DIGITS:
        return Source(("example", name), lambda: held_out_digit(TEST_DIGITS.index(name)))
    photo = EXAMPLE_PHOTOS.get(name)
    if photo is None:
        raise ImageError(f"There is no such example: choose one of {', '.join([*EXAMPLE_DIGITS, *EXAMPLE_PHOTOS])}.")
    return Source(("example", photo.name), lambda: _read_example(photo), photo.name)


@lru_cache
def _read_example(photo: ExamplePhoto) -> Image.Image:
    """Decodes an example in this process, because it is trusted, so that it waits for no visitor's file."""
    return images.read_image(Image.open(photo.path))


def _decode_once(path: Path) -> Image.Image:
    """Decodes an upload, or gets it from the cache."""
    picture = _pictures.get(path)
    if picture is None:
        _pictures.put(path, picture := images.decode_image(uploads.read(path)))
    return picture


def image_source(value: Any) -> Source:
    """The picture of an API call: an upload, or a picture file as a data URL. URLs are not fetched."""
    if not isinstance(value, str) or not value.startswith("data:"):
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            raise ImageError("URLs are not fetched: upload the picture, or send it as a data URL.")
        return upload_source(value)
    head, _, body = value.partition(",")
    if not head.endswith(";base64"):
        raise ImageError("This data URL cannot be read: send data:image/png;base64, followed by the file in Base64.")
    try:
        data = base64.b64decode("".join(body.split()), validate=True)  # tools wrap its lines
    except ValueError as error:
        raise ImageError("This data URL is not valid Base64: send the whole file.") from error
    return Source(("data", hashlib.sha256(data).digest()), lambda: images.decode_image(data), is_decoded=lambda: False)


def digit_source(value: Any) -> Source:
    """A preprocessed digit: a grey PNG of 28 x 28 pixels as a data URL; it is checked when it is read."""
    if not isinstance(value, str) or len(value) > 10_000:
        raise ImageError("This is not a digit of 28 x 28 pixels: draw it again.")

    def read() -> Picture:
        picture = images.decode_drawing(value)
        if picture.size != (28, 28):
            raise ImageError("This is not a digit of 28 x 28 pixels: draw it again.")
        return np.asarray(picture.convert("L"))

    return Source(("digit", _digest(value)), read)


def frame_source(value: Any) -> Source:
    """A frame of a camera, a small JPEG as a data URL; it is checked when it is read."""
    if not isinstance(value, str):
        raise ImageError("This is no frame of a camera: send a JPEG as a data URL.")
    return Source(("frame", _digest(value)), lambda: images.decode_frame(value), is_decoded=lambda: True)


PICTURE_FIELDS: dict[str, Callable[[Any], Source]] = {
    "drawing": drawing_source,
    "digit": digit_source,
    "example": example_source,
    "upload": upload_source,
}
"""The fields of a request that hold its picture; exactly one is sent. A live request may have ``frame`` instead."""


def words(value: Any) -> tuple[str, ...]:
    """Words, each once, or a text with commas between them; at most ``MAX_VISITOR_WORDS``."""
    found = split_words(value) if isinstance(value, str) and len(value) <= MAX_WORDS_LENGTH else value
    if not isinstance(found, list) or len(found) > MAX_VISITOR_WORDS:
        raise LabelError("Write at most {0} words, with commas between them.", MAX_VISITOR_WORDS)
    return check_words(found, is_softmax=False) if found else ()


def patch_indices(value: Any) -> tuple[int, ...]:
    """Indices of patches, sorted and without duplicates."""
    if not isinstance(value, list) or len(value) > 10_000:
        raise InputError("The patches must be a list of at most 10000 numbers.")
    return tuple(sorted({integer(patch, "patch", 0, 10_000) for patch in value}))


def heads(value: Any) -> tuple[tuple[int, int], ...]:
    """(block, head) of each of a list of pairs, from 0, each once, sorted; at most ``MAX_HEADS``."""
    pairs: list[Any] = value if isinstance(value, list) else [None]
    if len(pairs) > MAX_HEADS or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError("The heads must be a list of at most {0} pairs [block, head].", MAX_HEADS)
    found = sorted((integer(block, "block"), integer(head, "head")) for block, head in pairs)
    for one, other in pairwise(found):
        if one == other:
            raise InputError(f"The head {one} is named twice: name each once.")
    return tuple(found)


def patch_size(preset: Preset, value: Any) -> int:
    """A patch size of a preset; the default for None, "" and 0."""
    if value in (None, "", 0):
        return preset.default_patch_size
    return preset.check_patch_size(integer(value, "patch size", 0, 10_000))


PresetName = Annotated[str, BeforeValidator(preset_name)]
MethodName = Annotated[str, BeforeValidator(method_name)]
FitName = Annotated[Fit, BeforeValidator(fit)]
Words = Annotated[tuple[str, ...], BeforeValidator(words)]
Label = Annotated[int | None, whole_number("label")]
Against = Annotated[int | None, whole_number("against")]
Query = Annotated[int | None, whole_number("query")]
Block = Annotated[int, whole_number("block")]
Heads = Annotated[tuple[tuple[int, int], ...], BeforeValidator(heads)]
Patches = Annotated[tuple[int, ...], BeforeValidator(patch_indices)]


@dataclass(frozen=True)
class ResultRequest:
    """Everything that is needed to compute a result, on this server or another one.

    Attributes:
        source: The picture.
        preset: Name of the preset.
        patch_size: In pixels.
        fit: How a photo becomes the input.
        dropped: Indices of the dropped patches, row by row.
        words: The classes of a model that takes words; empty for those that it has.
        silent: (block, head) of the heads that are silent.
    """

    source: SkipValidation[Source]
    preset: PresetName
    patch_size: Annotated[int, whole_number("patch size", 1, 10_000)]
    fit: FitName
    dropped: Patches = ()
    words: Words = ()
    silent: Heads = ()

    @classmethod
    def parse(cls, sent: Any, *, live: bool = False) -> ResultRequest:
        """Checks the description of a result that the page sends; see ``payload.source_of``."""
        if not isinstance(sent, dict):
            raise InputError("The request has no source: reload the page.")
        known = PICTURE_FIELDS | ({"frame": frame_source} if live else {})
        pictures = [name for name in known if sent.get(name) is not None]
        if len(pictures) != 1:
            raise InputError(f"The request must have one picture: {', '.join(known)}.")
        return checked(cls, {**sent, "source": known[pictures[0]](sent[pictures[0]])})

    @property
    def key(self) -> bytes:
        """A hash of all fields, by which results are cached and jobs are shared."""
        choices = (self.preset, self.patch_size, self.fit, self.dropped, self.words, self.silent)
        return _digest(repr((self.source.identity, *choices)))
