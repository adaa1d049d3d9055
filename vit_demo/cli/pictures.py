"""The pictures that a command's arguments name: files, folders, glob patterns, and standard input."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_demo.checks import composed
from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.errors import ImageError, InputError
from vit_demo.folders import entries, pictures_in, walk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vit_demo.inference.exploration import Exploration
    from vit_demo.methods import Method
    from vit_demo.metrics import Faithfulness

STDIN = "-"

MOST_MATCHES = 10_000  # files of one pattern


@dataclass(frozen=True)
class Picture:
    """A picture to be read: its path or ``-``, and the beginning of the names of its output files, unique in a run."""

    name: str
    stem: str

    def read(self) -> str | bytes:
        """What ``explore`` takes: the path, or the bytes of standard input."""
        return sys.stdin.buffer.read(MAX_PICTURE_BYTES + 1) if self.name == STDIN else self.name


@dataclass(frozen=True)
class ExplainedMap:
    """One map ``[rows, cols]`` of a picture, the options of its method, the other class, and a test of the map."""

    method: Method
    options: dict[str, Any]
    values: NDArray[np.float32]
    against: str | None
    test: Faithfulness | None = None

    @property
    def areas(self) -> dict[str, float]:
        """The areas under the curves of the test, those of random orders beside them; empty without a test."""
        names = ("deletion_area", "random_deletion_area", "insertion_area", "random_insertion_area")
        return {name: getattr(self.test, name) for name in names} if self.test else {}

    @property
    def verdict(self) -> str:
        """The areas in words."""
        return "deletion {:.3f} (random {:.3f}), insertion {:.3f} (random {:.3f})".format(*self.areas.values())


@dataclass(frozen=True)
class Explained:
    """A picture with its result, a map of each method, and the class that they are about, if the model has classes."""

    picture: Picture
    result: Exploration
    maps: list[ExplainedMap]
    label: str | None


def find_pictures(arguments: Sequence[str]) -> list[Picture]:
    """The pictures that arguments stand for, each once, in the order of the arguments.

    An argument is the path of a file, whatever its suffix; a folder, for the pictures directly in it; a pattern such as
    ``photos/**/*.jpg``; or ``-`` for standard input. A folder without pictures, or a pattern that matches nothing,
    raises ``InputError``.
    """
    found: dict[str | Path, str] = {}  # "a.jpg" and "./a.jpg" are one
    for name in (name for argument in arguments for name in _expand(argument)):
        found.setdefault(name if name == STDIN else Path(name), name)
    taken, pictures = set[str](), list[Picture]()
    for name in found.values():
        stem = unique = "image" if name == STDIN else Path(name).stem
        number = 2
        while composed(unique).casefold() in taken:  # some file systems do not tell capitals from small letters
            unique, number = f"{stem}-{number}", number + 1
        taken.add(composed(unique).casefold())
        pictures.append(Picture(name, unique))
    return pictures


def find_picture(argument: str, command: str) -> Picture:
    """The one picture that an argument of a command stands for; ``InputError`` as ``find_pictures``, or for several."""
    [picture, *others] = find_pictures([argument])
    if others:
        raise InputError(f"{argument} matches several pictures: {command} takes one.")
    return picture


def _expand(argument: str) -> list[str]:
    if argument == STDIN:
        return [argument]
    if not argument:
        raise InputError("The name of a picture is empty: give a file, a folder or a pattern.")
    try:
        if Path(argument).is_dir():
            found = list(map(str, pictures_in(Path(argument), deep=False)))
            if not found:
                raise InputError(f"There is no picture in {argument}: give a folder that holds some.")
            return found
        if not Path(argument).exists() and glob.has_magic(argument):
            anchor, *parts = ["", *Path(argument).parts] if not Path(argument).anchor else Path(argument).parts
            found = sorted(map(str, islice(_matches(Path(anchor), parts), MOST_MATCHES + 1)))
            if len(found) > MOST_MATCHES:
                raise InputError(f"More than {MOST_MATCHES:,} files match {argument}: give a narrower pattern.")
            if not found:
                raise InputError(f"No file matches {argument}: check the pattern.")
            return found
    except OSError as error:
        raise ImageError(f"{argument} cannot be read: check the path and that you may read it.") from error
    return [argument]


def _matches(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    """What matches the parts of a pattern; ``**`` stands for each folder once, however many links lead to it."""
    if not parts:
        if os.path.lexists(base) and not base.is_dir():
            yield base
        return
    first, rest, failed = parts[0], parts[1:], list[Path]()
    found: Iterable[Path] = [base / first]
    if first == "**":
        found = (place for place, _ in walk(base, failed)) if base.is_dir() else []
    elif glob.has_magic(first):
        found = (path for path in entries(base) if fnmatch(path.name, first)) if base.is_dir() else []
    for path in found:
        yield from _matches(path, rest)
    yield from failed
