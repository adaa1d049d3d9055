"""The folder of visitors' files: private to this process, bounded, emptied as it ages and when the process ends.

Gradio names each file by a keyed hash of its content, so the path of an upload is known to nobody but its sender. The
key is drawn anew here for each process.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from gradio import processing_utils

from vit_demo.errors import ImageError
from vit_demo.web.limits import KEEP_SECONDS, UPLOAD_BYTES, UPLOADS_TOTAL

GONE = "This picture is not on the server: choose it again."
"""Said of any path that was not uploaded here, whether there is such a file or not."""

_HASH = re.compile(r"[0-9a-f]{64}")
_lock = threading.Lock()
_folder: Path | None = None


def folder() -> Path:
    """The upload folder, made at the first call; Gradio writes into it from then on."""
    global _folder
    with _lock:
        if _folder is None:
            base = os.environ.get("GRADIO_TEMP_DIR")
            if base:
                Path(base).mkdir(parents=True, exist_ok=True)
            _folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="vit_demo-", dir=base)))
            os.environ["GRADIO_TEMP_DIR"] = str(_folder)
            processing_utils.hash_seed = secrets.token_bytes(32)
            atexit.register(remove)
    return _folder


def remove() -> None:
    """Deletes the folder with all that is in it."""
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def is_inside(path: Any) -> bool:
    """Whether a path could be that of an upload; the file system is not asked."""
    if not isinstance(path, str) or "\0" in path or len(path) > 1000:
        return False
    try:
        parts = Path(os.path.normpath(path)).relative_to(folder()).parts
    except ValueError:
        return False
    return len(parts) == 2 and _HASH.fullmatch(parts[0]) is not None and not parts[1].startswith(".")


def find(payload: Any) -> Path:
    """The file that Gradio's description of an upload is about.

    Args:
        payload: ``{"path": ...}``, as a page or a client sends it.

    Raises:
        ImageError: In the same words for anything that is not an upload.
    """
    path = payload.get("path") if isinstance(payload, dict) else payload
    if not isinstance(path, str) or not is_inside(path):
        raise ImageError(GONE)
    found = Path(os.path.normpath(path))
    if found.is_symlink() or not found.is_file():
        raise ImageError(GONE)
    return found


def read(path: Path) -> bytes:
    """The bytes of an upload, which then stays for another while.

    Raises:
        ImageError: If it is gone meanwhile.
    """
    try:
        os.utime(path)
        with path.open("rb") as file:
            return file.read(UPLOAD_BYTES + 1)
    except OSError as error:
        raise ImageError(GONE) from error


class Janitor(threading.Thread):
    """Deletes what is old, and the oldest of what is too much; what is there when it starts stays.

    Args:
        every: Seconds between two rounds.
    """

    def __init__(self, every: float = 60.0) -> None:
        super().__init__(name="janitor", daemon=True)
        self._every = every
        self._keep = set(self._files())
        self._stopped = threading.Event()

    def run(self) -> None:
        """Cleans until it is stopped."""
        while not self._stopped.wait(self._every):
            self.clean(time.time())

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped.set()

    def clean(self, now: float) -> None:
        """One round.

        Args:
            now: In seconds since the epoch.
        """
        found = []
        for path in self._files():
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((status.st_mtime, status.st_size, path))
        found.sort(reverse=True, key=lambda entry: entry[0])
        total = 0
        for changed, size, path in found:
            total += size
            if (now - changed > KEEP_SECONDS or total > UPLOADS_TOTAL) and path not in self._keep:
                path.unlink(missing_ok=True)
                try:
                    path.parent.rmdir()
                except OSError:
                    continue  # other files are in it

    def _files(self) -> list[Path]:
        return [path for path in folder().rglob("*") if path.is_file()]
