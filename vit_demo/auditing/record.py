"""What an audit has done, on disk as it goes, so that a second run goes on where the first was ended."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from vit_demo.errors import InputError

try:
    import fcntl
except ImportError:  # on Windows, where two audits into one folder are not refused
    fcntl = None  # type: ignore[assignment]

FILE = "audit.jsonl"


class Record:
    """Entries by the names of pictures; a folder keeps them, a line each, after a line of what they depend on.

    ``InputError`` if the folder holds an audit by other settings, or cannot be used.
    """

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        path, head = (folder / FILE if folder else Path(os.devnull)), json.dumps(settings)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = path.open("a+", encoding="utf-8")
            if folder and fcntl is not None:  # the system releases the lock when the file is closed
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.file.seek(0)
            if (first := self.file.readline().rstrip("\n")) not in ("", head):
                self.file.close()
                raise InputError(f"{folder} holds an audit of another model or by other choices: name another folder.")
            entries = (json.loads(line) for line in self.file if line.endswith("}\n"))  # one may have been cut off
            self._done = {entry["row"]["file"]: entry for entry in entries}
            self.file.write("\n" if first else f"{head}\n")
        except BlockingIOError as error:
            self.file.close()
            raise InputError(
                f"Another audit writes into {folder}: wait for its end, or name another folder."
            ) from error
        except (OSError, UnicodeError, json.JSONDecodeError, KeyError) as error:
            raise InputError(f"{path} cannot be used ({error}): name another folder.") from error

    def find(self, name: str, stamp: Any) -> dict[str, Any] | None:
        """The entry of a picture, if its file is still the same."""
        found = self._done.get(name)
        return found if found and found["stamp"] == stamp else None

    def add(self, entry: dict[str, Any]) -> None:
        """Keeps an entry."""
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()


def stamp_of(image: Any) -> list[int] | None:
    """Size and time of a picture's file; None for what is no file."""
    try:
        found = Path(image).stat()
    except (OSError, TypeError, ValueError):
        return None
    return [found.st_size, found.st_mtime_ns]


def packed(values: Any) -> dict[str, Any]:
    """An array as JSON values, in half precision."""
    half = np.asarray(values, np.float16)
    return {"shape": half.shape, "half": base64.b64encode(half.tobytes()).decode("ascii")}


def unpacked(values: dict[str, Any]) -> Any:
    """The opposite of ``packed``."""
    return np.frombuffer(base64.b64decode(values["half"]), np.float16).reshape(values["shape"])
