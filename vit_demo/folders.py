"""Which pictures a folder holds, for every command alike."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from vit_demo.defaults import PICTURE_SUFFIXES
from vit_demo.errors import InputError

FOREIGN = frozenset(
    ("@eadir", "@recycle", "#recycle", "$recycle.bin", "__macosx", "lost+found", "system volume information")
)
"""Folders that file servers and systems add."""
SPLITS = frozenset(("train", "training", "val", "valid", "validation", "test", "testing", "dev", "eval"))
"""Folders above those of classes, also with a year or a number, such as ``train2017``."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder is there for a program rather than for its owner."""
    return name.startswith(".") or name.casefold() in FOREIGN


def entries(folder: Path) -> list[Path]:
    """What a folder holds, in order, without what is hidden and links to what holds it; ``OSError`` if unreadable."""
    real = Path(os.path.realpath(folder))
    above = {real, *real.parents}
    own = (path for path in sorted(folder.iterdir()) if not is_hidden(path.name))
    return [path for path in own if not (path.is_symlink() and Path(os.path.realpath(path)) in above)]


def walk(folder: Path, failed: list[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """A folder and each one in it with their files, in order and without hidden ones; ``failed`` gets the unreadable.

    Links are followed. A folder comes once, however many lead to it, and none that holds the first one comes.
    """
    seen = {str(parent) for parent in Path(os.path.realpath(folder)).parents}
    for place, folders, files in os.walk(
        folder, onerror=lambda error: failed.append(Path(error.filename)), followlinks=True
    ):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        yield Path(place), [Path(place, name) for name in sorted(files) if not is_hidden(name)]


def pictures_in(folder: Path, *, deep: bool = True) -> list[Path]:
    """The pictures of a folder, also those of folders in it if ``deep``, by their suffix.

    What cannot be read is among them, a folder as well, so that it is told by what reads them.
    """
    failed = list[Path]()
    places = islice(walk(folder, failed), None if deep else 1)
    found = [file for _, files in places for file in files if file.suffix.lower() in PICTURE_SUFFIXES]
    return sorted(found) + failed


def pictures_by_class(folder: Path) -> dict[str, list[Path]]:
    """The pictures in each subfolder of a folder, by its name, and by an empty one those beside them.

    ``InputError`` if the folder cannot be read, or its subfolders are those of training and of tests.
    """
    try:
        found = {path.name: pictures_in(path) for path in entries(folder) if path.is_dir()}
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}): give a folder of pictures.") from error
    used = [name for name, files in found.items() if files]
    beside = pictures_in(folder, deep=False)
    is_split = used and all(name.casefold().rstrip("0123456789").rstrip("_-") in SPLITS for name in used)
    if is_split and (len(used) > 1 or (not beside and all(file.parent != folder / used[0] for file in found[used[0]]))):
        parts = " and ".join(used)
        raise InputError(f"{folder} holds {parts}, which are no classes: give one of them, as {folder / used[-1]}.")
    return {"": beside, **found}
