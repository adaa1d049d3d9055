"""Reads where the object of each picture is, from what ``masks`` of an audit stands for."""

from __future__ import annotations

import csv
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from vit_demo.auditing.pictures import Item
from vit_demo.auditing.record import stamp_of
from vit_demo.checks import composed
from vit_demo.errors import InputError
from vit_demo.folders import pictures_in
from vit_demo.images import MAX_SIDE, Geometry, check_size, stored_size
from vit_demo.training.labelled_folder import plain

COLUMNS = ("file", "left", "top", "right", "bottom")
NO_MASKS = "{0} holds no masks: give a folder of them, COCO's JSON, or a CSV of file, left, top, right, bottom."
UNREADABLE = OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, csv.Error
TURNS = (Image.Transpose.TRANSPOSE, Image.Transpose.ROTATE_270, Image.Transpose.TRANSVERSE, Image.Transpose.ROTATE_90)
"""What makes a picture of the EXIF orientations 5 to 8 upright."""
EDGES: dict[str, NDArray[Any]] = {
    "XYWH": np.kron([[1, 1], [0, 1]], np.eye(2)),
    "CXCYWH": np.kron([[1, 1], [-0.5, 0.5]], np.eye(2)),
}
"""What makes left, top, right and bottom of other forms of torchvision's boxes."""
VOID, LEAST_GREY, LEAST_WHITE = 255, 64, 250
"""Beside numbers of classes, the first is their border; greys of a mask exceed the second and reach the third."""


class Boxes(NamedTuple):
    """Boxes of a picture ``[N, 4]``: left, top, right, bottom; what is in each, and whose pixels they count."""

    edges: list[list[float]]
    names: list[str]
    categories: tuple[str, ...] = ()
    size: tuple[int, int] | None = None


class Objects:
    """Where the object of each picture is, from ``masks`` as in ``audit``."""

    def __init__(self, masks: Any) -> None:
        found: Any = {} if masks is None else masks
        if isinstance(masks, str | os.PathLike):
            path = Path(masks)
            try:
                files = pictures_in(path) if path.is_dir() else None
                found = _boxes(path) if files is None else {one.relative_to(path).as_posix(): one for one in files}
            except UNREADABLE as error:
                raise InputError(NO_MASKS, path) from error
        if not isinstance(found, Iterable):
            raise InputError(NO_MASKS, repr(masks))
        by_name = found if isinstance(found, Mapping) else {f"#{number}": mask for number, mask in enumerate(found)}
        self._found = {_stem(str(name)): _given(mask) for name, mask in by_name.items()}
        if masks is not None and not self._found:
            raise InputError(NO_MASKS, masks)
        self.names = sorted(self._found)
        known = [(name, stamp_of(self._found[name]) or self._found[name]) for name in self.names]
        self.checksum = zlib.crc32(repr(known).encode(errors="backslashreplace"))
        boxes = [one for one in self._found.values() if isinstance(one, Boxes)]
        self._are_shares = all(0 <= edge <= 1 for one in boxes for box in one.edges for edge in box)
        self._categories = {plain(name) for one in boxes for name in one.categories}

    def name_of(self, item: Item) -> str | None:
        """The name of the mask of a picture; None if there is none."""
        names = (_stem(item.name), _stem(Path(item.name).name), f"#{item.number}")
        return next((name for name in names if name in self._found), None)

    def covered(self, item: Item, geometry: Geometry, grid: tuple[int, int], label: str) -> NDArray[np.float64] | None:
        """The share of each patch that the object covers, ``[rows, cols]`` in [0, 1]; None if nothing is known of it.

        Boxes of other categories than the class do not count where one is called like it. ``InputError`` says what of
        a mask or box cannot be used.
        """
        given = self._found.get(self.name_of(item) or "")
        if given is None:
            return None
        size, turn = stored_size(item.image) or (geometry.source_size, 1)
        upright = size[::-1] if turn > 4 else size
        scale = min(1, MAX_SIDE / max(upright))
        if any(abs(scale * side - own) > 2 for side, own in zip(upright, geometry.source_size, strict=True)):
            size = upright = geometry.source_size  # a transform gave another picture
        left, top, right, bottom = np.array(geometry.box) / (geometry.source_size * 2)
        if isinstance(given, Boxes):
            edges = self._edges(given, label)
            of = (1, 1) if self._are_shares else given.size or upright
            shares = edges / (of * 2)
            is_inside = (shares[:, :2] < 1).all(1) & (shares[:, 2:] > 0).all(1) & (edges[:, :2] < edges[:, 2:]).all(1)
            if not is_inside.all():
                wrong = ", ".join(f"{edge:g}" for edge in edges[~is_inside][0])
                raise InputError("Its box {0} is no box in it: left < right and top < bottom are needed.", wrong)
            if of == size != upright:
                x, y = shares[:, ::2], shares[:, 1::2]
                x, y = (1 - x[:, ::-1] if turn in (7, 8) else x), (1 - y[:, ::-1] if turn in (6, 7) else y)
                shares = np.stack([y[:, 0], x[:, 0], y[:, 1], x[:, 1]], 1)
            elif of != (1, 1) and abs(of[0] * upright[1] - of[1] * upright[0]) > max(*of, *upright):
                raise InputError("Its boxes are in a picture of {0} pixels, and it has {1}.", *_pixels(of, upright))
            rows, cols = np.linspace(top, bottom, grid[0] + 1), np.linspace(left, right, grid[1] + 1)
            return _covered(shares.clip(0, 1), rows, cols)
        mask = _mask(given)
        if mask.size == size != upright:
            mask = mask.transpose(TURNS[turn - 5])
        if mask.size not in (upright, geometry.source_size):
            raise InputError(
                "The mask has {0} pixels and the picture {1}: make them equal.", *_pixels(mask.size, upright)
            )
        corners = np.array((left, top, right, bottom)) * (mask.size * 2)
        part = mask.crop(tuple(map(round, corners)))
        return np.asarray(part.convert("F").resize(grid[::-1], Image.Resampling.BOX), np.float64) / 255

    def _edges(self, given: Boxes, label: str) -> NDArray[np.float64]:
        """The boxes of a class, or all where none of the file is called like it and those of the picture are of one."""
        called = {plain(name) for name in (label, *label.split(","))} & self._categories
        edges = [box for box, name in zip(given.edges, given.names, strict=True) if not called or plain(name) in called]
        names = " and ".join(sorted(set(given.names))) or "nothing"
        if not edges or (not called and len(set(given.names)) > 1):
            raise InputError("Its boxes are of {0}, and it is counted as {1}.", names, label)
        return np.array(edges, np.float64)


def _pixels(*sizes: Sequence[float]) -> list[str]:
    return [f"{width} x {height}" for width, height in sizes]


def _given(mask: Any) -> Any:
    """A mask, or boxes, also as an array; a box alone is a list of one."""
    is_list, size = isinstance(mask, list | tuple), getattr(mask, "canvas_size", None)
    form = "XYXY" if size is None else str(getattr(getattr(mask, "format", None), "value", None))  # of torchvision
    if isinstance(mask, torch.Tensor):
        mask = mask.detach().cpu()
        mask = mask.float() if mask.is_floating_point() else mask  # numpy has no bfloat16
    if isinstance(mask, Boxes) or not (is_list or hasattr(mask, "tolist")):
        return mask
    try:
        if np.shape(mask)[-1:] == (4,) and (is_list or np.ndim(mask) < 3):
            edges = np.reshape(np.asarray(mask, np.float64), (-1, 4))
            edges = edges if form == "XYXY" else edges @ EDGES[form]
            return Boxes(edges.tolist(), [""] * len(edges), size=size and (size[1], size[0]))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("Boxes are a list of left, top, right and bottom, each a number.") from error
    return mask


def _covered(boxes: NDArray[np.float64], rows: NDArray[np.float64], cols: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of each patch between edges of rows and columns that boxes ``[N, 4]`` cover together, exactly."""
    xs, ys = np.unique([*cols, *boxes[:, ::2].flat]), np.unique([*rows, *boxes[:, 1::2].flat])
    inside = np.zeros((len(ys) - 1, len(xs) - 1))
    for left, top, right, bottom in boxes:
        inside[slice(*np.searchsorted(ys, (top, bottom))), slice(*np.searchsorted(xs, (left, right)))] = 1
    for axis, (fine, edges) in enumerate(((ys, rows), (xs, cols))):
        overlap = np.minimum(edges[1:, None], fine[1:]) - np.maximum(edges[:-1, None], fine[:-1])
        inside = np.moveaxis(np.tensordot(overlap.clip(0) / np.diff(edges)[:, None], inside, (1, axis)), 0, axis)
    return inside


def _mask(given: Any) -> Image.Image:
    """A mask as a grey picture of its size, white on the object."""
    try:
        if isinstance(given, str | os.PathLike):
            given = Image.open(given)
        elif not isinstance(given, Image.Image):
            given = np.squeeze(np.asarray(given))
            given = Image.fromarray(given) if given.dtype == np.uint8 else given
        if isinstance(given, Image.Image):
            check_size(given.size)
            given = _values(ImageOps.exif_transpose(given))
        return Image.fromarray((255 * _share(given)).round().astype(np.uint8))
    except InputError:
        raise
    except Exception as error:  # decoders raise nearly anything on damaged files
        raise InputError("The mask cannot be read as a picture: save it as PNG.") from error


def _values(mask: Image.Image) -> NDArray[Any]:
    """The numbers of a picture ``[height, width]``: its opacity if any of it is not opaque, else colours or classes."""
    if mask.has_transparency_data:
        opacity = np.asarray(mask.convert("RGBA"))[..., 3]
        if opacity.min() < 255:
            return opacity
    if mask.mode in ("1", "L", "I", "F") or mask.mode.startswith("I;16"):
        return np.asarray(mask)
    colours = np.asarray(mask.convert("RGB"))
    is_class = mask.mode == "P" and np.ptp(colours, axis=2).any()
    return np.asarray(mask) if is_class else colours.max(2)


def _share(values: NDArray[Any]) -> NDArray[np.float64]:
    """The share of each pixel ``[height, width]`` that is the object, from greys, numbers of one class, or a trimap."""
    found = np.unique(values)
    classes, largest = found[(found != 0) & (found != VOID)], float(found[-1])
    if values.ndim == 2 and np.isfinite(found).all() and found[0] >= 0:
        if found[0] == 1 and largest in (2, 3):  # the object, what is around it, and their border
            return np.asarray(values == 1, np.float64)
        if largest <= 1 or len(found) == 1 or (len(found) == 2 and found[0] == 0):
            return values / (largest if len(found) <= 2 and largest else 1.0)
        if len(classes) == 1 and classes[0] < LEAST_GREY and found[0] == 0:
            return np.asarray(values == classes[0], np.float64)
        if (LEAST_WHITE <= largest <= VOID and classes[-1] >= LEAST_GREY) or largest > LEAST_WHITE << 8:
            return values / largest
    shown = ", ".join(map(str, found[:4].tolist()))
    raise InputError("The mask holds {0} and more: make it white on the object, and black elsewhere.", shown)


def _boxes(path: Path) -> dict[str, Boxes]:
    """The boxes of each picture of a file."""
    text, found = path.read_text(encoding="utf-8-sig"), dict[str, Boxes]()
    if path.suffix.lower() == ".json":
        content = json.loads(text)
        images = {one["id"]: one for one in content["images"]}
        names = {one["id"]: str(one["name"]) for one in content.get("categories", ())}
        for one in content["annotations"]:
            image, (x, y, width, height) = images[one["image_id"]], map(float, one["bbox"])
            sides = image.get("width"), image.get("height")
            size = (int(sides[0]), int(sides[1])) if all(sides) else None
            boxes = found.setdefault(str(image["file_name"]), Boxes([], [], tuple(names.values()), size))
            if not one.get("iscrowd"):  # a region of many
                boxes.edges.append([x, y, x + width, y + height])
                boxes.names.append(names.get(one.get("category_id"), ""))
    else:
        for row in csv.DictReader(text.splitlines()):
            name, *box = (row[column] for column in COLUMNS)
            boxes = found.setdefault(name, Boxes([], []))
            boxes.edges.append([float(edge) for edge in box])
            boxes.names.append("")
    return found


def _stem(name: str) -> str:
    return composed(Path(name).as_posix().removesuffix(Path(name).suffix))
