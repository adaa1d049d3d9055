"""What ``pictures`` and ``truth`` of an audit stand for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from vit_demo.auditing.record import stamp_of
from vit_demo.checks import composed
from vit_demo.errors import InputError
from vit_demo.folders import pictures_by_class, pictures_in


class Item(NamedTuple):
    """A picture of an audit: its name, what ``Explainer`` takes for it, its true class by whatever name, its place."""

    name: str
    image: Any
    truth: Any = None
    number: int = 0


def mark_of(item: Item) -> list[Any]:
    """Marks that differ if a picture or its truth has changed since another run."""
    return [stamp_of(item.image), None if item.truth is None else str(item.truth)]


def items_of(pictures: Any, truth: Any, limit: int | None) -> tuple[Iterator[Item], int | None, set[str]]:
    """The pictures, one after the other, how many there are, if that is known, and the folders that name a class."""
    folders = set[str]()
    if isinstance(pictures, str | os.PathLike):
        folder = Path(pictures)
        found = {"": pictures_in(folder)} if truth is not None and folder.is_dir() else pictures_by_class(folder)
        pictures = [
            Item(path.relative_to(folder).as_posix(), path, name or None)
            for name, files in found.items()
            for path in files
        ]
        folders = {item.truth for item in pictures if item.truth}
    elif isinstance(pictures, Mapping):
        pictures = list(pictures.items())
    elif not isinstance(pictures, Iterable) and not hasattr(pictures, "__getitem__"):
        raise InputError(f"The pictures are a folder, a list or a data set, not {type(pictures).__name__}.")
    if isinstance(truth, Mapping):
        truth = {composed(str(name)): of for name, of in truth.items()}
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
        item = Item(name, image, of, number)
    if truth is not None:
        try:
            item = item._replace(truth=truth.get(composed(item.name)) if isinstance(truth, Mapping) else truth[number])
        except (IndexError, TypeError) as error:
            raise InputError(
                "Truths are a list with one for each picture, or a dict by the pictures' names."
            ) from error
    return item._replace(truth=item.truth.item()) if hasattr(item.truth, "item") else item
