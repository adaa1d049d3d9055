"""Finds files that are beside the package in the repository, and inside it once it is installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """The path of a folder of the repository, such as ``checkpoints`` or ``docs``.

    An installed package looks only inside itself, because a folder of that name beside it belongs to another package.
    """
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name
