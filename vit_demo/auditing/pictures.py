"""What ``pictures``, ``truth`` and ``masks`` of an audit stand for."""

from __future__ import annotations

import csv
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vit_demo.auditing.record import stamp_of
from vit_demo.checks import composed
from vit_demo.errors import InputError
from vit_demo.folders import pictures_by_class, pictures_in
from vit_demo.images import Geometry, read_image

COLUMNS = ("file", "left", "top", "right", "bottom")
NO_MASKS = "{0} holds no masks: give a folder of them, COCO's JSON, or a CSV of file, left, top, right, bottom."


class Item(NamedTuple):
    """A picture of an audit: its name, what ``Explainer`` takes for it, its true class by whatever name, its place."""

    name: str
    image: Any
    truth: Any = None
    number: int = 0


def mark_of(item: Item) -> list[Any]:
    """What tells whether a picture, or what is said of it, has changed since another run."""
    return [stamp_of(item.image), None if item.truth is None else str(item.truth)]


def items_of(pictures: Any, truth: Any, limit: int | None) -> tuple[Iterator[Item], int | None, set[str]]:
    """The pictures, one after the other, how many there are, if that is known, and the folders that name a class."""
    folders = set[str]()
    if isinstance(pictures, str | os.PathLike):
        folder = Path(pictures)
        found = {"": pictures_in(folder)} if truth is not None and folder.is_dir() else pictures_by_class(folder)
        pictures = [Item(_name(path, folder), path, name or None) for name, files in found.items() for path in files]
        folders = {item.truth for item in pictures if item.truth}
    elif isinstance(pictures, Mapping):
        pictures = list(pictures.items())
    elif not isinstance(pictures, Iterable) and not hasattr(pictures, "__getitem__"):
        raise InputError(f"The pictures are a folder, a list or a data set, not {type(pictures).__name__}.")
    if isinstance(truth, Mapping):
        truth = {
            composed(os.fsdecode(name) if isinstance(name, os.PathLike) else str(name)): of
            for name, of in truth.items()
        }
    count = len(pictures) if hasattr(pictures, "__len__") else None
    if isinstance(truth, Sequence) and count is not None and len(truth) != count:
        raise InputError(f"There are {len(truth)} truths for {count} pictures: give one for each.")
    if count is None or not hasattr(pictures, "__getitem__"):
        return (_item(*one, truth) for one in islice(enumerate(pictures), limit)), count, folders
    few = count if limit is None else min(limit, count)
    return (_item(at, pictures[at], truth) for at in (number * count // few for number in range(few))), few, folders


def _item(number: int, given: Any, truth: Any) -> Item:
    item = given._replace(number=number) if isinstance(given, Item) else given
    if not isinstance(given, Item):
        image, of = given if isinstance(given, tuple | list) and len(given) == 2 else (given, None)
        name = os.fsdecode(image) if isinstance(image, str | os.PathLike) else str(number)
        item = Item(composed(name), image, of, number)
    if truth is not None:
        try:
            item = item._replace(truth=truth.get(item.name) if isinstance(truth, Mapping) else truth[number])
        except (IndexError, TypeError) as error:
            raise InputError(
                "Truths are a list with one for each picture, or a dict by the pictures' names."
            ) from error
    return item._replace(truth=item.truth.item()) if hasattr(item.truth, "item") else item


def _name(path: Path, folder: Path) -> str:
    return composed(path.relative_to(folder).as_posix())


class Objects:
    """Where the object of each picture is, from ``masks`` as in ``audit``."""

    def __init__(self, masks: Any) -> None:
        found: Any = {} if masks is None else masks
        if isinstance(masks, str | os.PathLike):
            path = Path(masks)
            try:
                found = {_name(one, path): one for one in pictures_in(path)} if path.is_dir() else _boxes(path)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(NO_MASKS, path) from error
        by_name = found if isinstance(found, Mapping) else {f"#{number}": mask for number, mask in enumerate(found)}
        self._found = {_stem(str(name)): mask for name, mask in by_name.items()}
        if masks is not None and not self._found:
            raise InputError(NO_MASKS, masks)
        self.names = sorted(self._found)
        known = [(name, stamp_of(self._found[name]) or self._found[name]) for name in self.names]
        self.checksum = zlib.crc32(repr(known).encode(errors="backslashreplace"))

    def name_of(self, item: Item) -> str | None:
        """The name of the mask of a picture; None if there is none."""
        names = (_stem(item.name), _stem(Path(item.name).name), f"#{item.number}")
        return next((name for name in names if name in self._found), None)

    def covered(self, item: Item, geometry: Geometry, grid: tuple[int, int]) -> NDArray[np.float64] | None:
        """The share of each patch that the object covers, ``[rows, cols]`` in [0, 1]; None if nothing is known of it.

        ``InputError`` if the mask has another size than the picture, or is none.
        """
        given = self._found.get(self.name_of(item) or "")
        if given is None:
            return None
        if isinstance(given, list | tuple) and np.shape(given)[-1:] == (4,):
            mask = Image.new("L", geometry.source_size)
            for left, top, right, bottom in np.clip(np.reshape(given, (-1, 4)), 0, geometry.source_size * 2).tolist():
                if left < right and top < bottom:
                    ImageDraw.Draw(mask).rectangle((left, top, right - 1, bottom - 1), fill=255)
        else:
            if not isinstance(given, str | os.PathLike | Image.Image):
                given = np.asarray(given)
                given = (255 * given).astype(np.uint8) if given.dtype == bool else given
            mask = read_image(given, trusted=True).convert("L")
        if mask.size != geometry.source_size:
            sizes = (f"{width} x {height}" for width, height in (mask.size, geometry.source_size))
            raise InputError("The mask has {0} pixels and the picture {1}: make them equal.", *sizes)
        part = mask.crop(tuple(map(round, geometry.box)))  # type: ignore[arg-type]
        return np.asarray(part.convert("F").resize(grid[::-1], Image.Resampling.BOX), np.float64) / 255


def _boxes(path: Path) -> dict[str, list[list[float]]]:
    """The boxes of each picture: left, top, right and bottom in pixels."""
    text, found = path.read_text(encoding="utf-8-sig"), dict[str, list[list[float]]]()
    if path.suffix.lower() == ".json":
        content = json.loads(text)
        names = {one["id"]: str(one["file_name"]) for one in content["images"]}
        for one in content["annotations"]:
            x, y, width, height = map(float, one["bbox"])
            found.setdefault(names[one["image_id"]], []).append([x, y, x + width, y + height])
    else:
        for row in csv.DictReader(text.splitlines()):
            name, *box = (row[column] for column in COLUMNS)
            found.setdefault(name, []).append([float(edge) for edge in box])
    return found


def _stem(name: str) -> str:
    return composed(Path(name).as_posix()).removesuffix(Path(name).suffix)
