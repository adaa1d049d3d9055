"""Files that lie beside the package in the repository, and inside it once it is installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """A folder of the repository, such as ``checkpoints`` or ``docs``, wherever this installation keeps it.

    An installed package looks only inside itself: a folder of that name beside it is somebody else's.
    """
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name
