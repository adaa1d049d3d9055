"""What ``pictures``, ``truth`` and ``masks`` of an audit stand for: items with a name, and where the object is."""

from __future__ import annotations

import csv
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vit_demo.auditing.record import stamp_of
from vit_demo.defaults import PICTURE_SUFFIXES
from vit_demo.errors import InputError
from vit_demo.images import Geometry, read_image

COLUMNS = {
    "file": ("file", "filename", "file_name", "image", "path"),
    "left": ("left", "xmin", "x0", "x1", "x"),
    "top": ("top", "ymin", "y0", "y1", "y"),
    "right": ("right", "xmax", "x1", "x2"),
    "bottom": ("bottom", "ymax", "y1", "y2"),
}
"""Names by which a table of boxes is understood, the first that it has; all in pixels of the upright picture."""


@dataclass(frozen=True)
class Item:
    """A picture of an audit: its name, what ``Explainer`` takes for it, and the name or index of its true class."""

    name: str
    image: Any
    truth: Any = None


def items_of(pictures: Any, truth: Any = None, limit: int | None = None) -> tuple[Iterator[Item], int | None]:
    """The pictures, one after the other, and how many there are, if that is known.

    Args:
        pictures: A folder with a subfolder for each class, or with pictures alone; a dict from paths to true classes;
            or what gives images, or pairs of an image and its true class, such as a ``Dataset`` of torch.
        truth: The true classes instead: a list in the order of the pictures, or a dict by their names.
        limit: At most so many, spread evenly over a folder or a list.

    Raises:
        InputError: If there is no picture, or not one truth for each.
    """
    if isinstance(pictures, str | os.PathLike):
        pictures = list(_of_folder(Path(pictures)))
    elif isinstance(pictures, Mapping):
        pictures = [(path, of) for path, of in pictures.items()]
    elif not isinstance(pictures, Iterable) and not hasattr(pictures, "__getitem__"):
        raise InputError(f"The pictures are a folder, a list or a data set, not {type(pictures).__name__}.")
    count = len(pictures) if hasattr(pictures, "__len__") else None
    if count == 0:
        raise InputError("There are no pictures: give a folder or a list that holds some.")
    if isinstance(truth, Sequence) and count is not None and len(truth) != count:
        raise InputError(f"There are {len(truth)} truths for {count} pictures: give one for each.")
    few = count if count is None or limit is None else min(limit, count)
    numbered = islice(enumerate(pictures), limit)
    if few is not None and hasattr(pictures, "__getitem__"):
        numbered = ((at, pictures[at]) for at in (number * count // few for number in range(few)))  # type: ignore[operator]
    return (_item(number, given, truth) for number, given in numbered), few


def _item(number: int, given: Any, truth: Any) -> Item:
    if isinstance(given, Item):
        name, image, of = given.name, given.image, given.truth
    else:
        image, of = given if isinstance(given, tuple | list) and len(given) == 2 else (given, None)
        name = os.fsdecode(image) if isinstance(image, str | os.PathLike) else str(number)
    if truth is not None:
        of = truth.get(name) if isinstance(truth, Mapping) else truth[number]
    return Item(name, image, of.item() if hasattr(of, "item") else of)


def _of_folder(folder: Path) -> Iterator[Item]:
    """The pictures of a folder; those of a subfolder have its name as their truth."""
    try:
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file())
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}): give a folder of pictures.") from error
    for path in found:
        inside = path.relative_to(folder)
        if not any(part.startswith(".") for part in inside.parts):
            yield Item(inside.as_posix(), path, inside.parts[0] if len(inside.parts) > 1 else None)


class Objects:
    """Where the object of each picture is.

    Args:
        masks: A folder of pictures named as those of the audit, whatever their suffix, white on the object; a table of
            boxes (``.csv``), annotations of COCO (``.json``); or a dict of masks or boxes by the pictures' names, or a
            list of them.

    Raises:
        InputError: If a file cannot be read as what it should be.
    """

    def __init__(self, masks: Any) -> None:
        self._found: dict[str, Any] = {}
        if isinstance(masks, str | os.PathLike):
            path = Path(masks)
            try:
                if path.is_dir():
                    self._found = {_stem(item.name): item.image for item in _of_folder(path)}
                else:
                    self._read(path)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"{path} holds no masks: give a folder of pictures, a CSV with the columns file, left, top, right "
                    "and bottom, or COCO's JSON."
                ) from error
        elif masks is not None:
            pairs = masks.items() if isinstance(masks, Mapping) else enumerate(masks)
            self._found = {_stem(str(name)): mask for name, mask in pairs}
        known = [(name, stamp_of(mask) or mask) for name, mask in sorted(self._found.items())]
        self.checksum = zlib.crc32(repr(known).encode(errors="backslashreplace"))

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json":
            content = json.loads(text)
            names = {one["id"]: str(one["file_name"]) for one in content["images"]}
            boxes = [(names[one["image_id"]], *map(float, one["bbox"])) for one in content["annotations"]]
            found = [(name, (x, y, x + width, y + height)) for name, x, y, width, height in boxes]
        else:
            rows = list(csv.DictReader(text.splitlines()))
            header, taken = list(rows[0]) if rows else [], list[str]()
            for known in COLUMNS.values():
                taken.append(next(name for name in header if name.lower() in known and name not in taken))
            found = [(row[taken[0]], tuple(float(row[name]) for name in taken[1:])) for row in rows]
        for name, box in found:
            self._found.setdefault(_stem(name), []).append(box)

    def covered(self, item: Item, geometry: Geometry, grid: tuple[int, int]) -> NDArray[np.float64] | None:
        """The share of each patch that the object covers, ``[rows, cols]`` in [0, 1]; None if nothing is known of it.

        Raises:
            InputError: If the mask has another size than the picture, or is none.
        """
        names = (_stem(item.name), _stem(Path(item.name).name))
        given = next((self._found[name] for name in names if name in self._found), None)
        if given is None:
            return None
        if isinstance(given, list | tuple) and np.ndim(given) <= 2 and np.shape(given)[-1:] == (4,):
            mask = Image.new("L", geometry.source_size)
            for left, top, right, bottom in np.reshape(given, (-1, 4)).tolist():
                if left < right and top < bottom:
                    ImageDraw.Draw(mask).rectangle((left, top, right - 1, bottom - 1), fill=255)
        else:
            if hasattr(given, "numpy"):
                given = given.numpy()
            array = np.asarray(given) * 255 if isinstance(given, np.ndarray) and given.dtype == bool else given
            mask = read_image(array.astype(np.uint8) if array is not given else array, trusted=True).convert("L")
        if mask.size != geometry.source_size:
            (w, h), (width, height) = mask.size, geometry.source_size
            raise InputError(f"The mask has {w} x {h} pixels and the picture {width} x {height}: make them equal.")
        left, top, right, bottom = (round(edge) for edge in geometry.box)
        part = mask.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
        return np.asarray(part.resize((grid[1], grid[0]), Image.Resampling.BOX), np.float64) / 255


def _stem(name: str) -> str:
    return Path(name).with_suffix("").as_posix()
