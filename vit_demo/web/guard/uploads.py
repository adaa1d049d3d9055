"""The folder of uploaded files: private to this process, bounded in size and age, deleted when the process ends.

Gradio puts each file into a folder named by a keyed hash of its content, so that only its sender can name an upload's
path. The key is chosen at random for each process.
"""

import atexit
import os
import re
import secrets
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from gradio import processing_utils

from vit_demo.defaults import MAX_PICTURE_BYTES
from vit_demo.errors import ImageError, InputError

UPLOAD_FOLDER_BYTES = 2_000_000_000
"""All files in the upload folder; beyond that the oldest are deleted."""

UPLOAD_FOLDER_FILES = 20_000
"""The number of these files; beyond that the oldest are deleted as well."""

UPLOAD_LIFETIME_SECONDS = 3600.0
"""Time after its last use when an uploaded file is deleted."""

try:
    import fcntl
except ImportError:  # Windows, where the system removes no folders of killed processes, and neither does this
    fcntl = None  # type: ignore[assignment]

NOT_AN_UPLOAD = "This picture is not on the server: choose it again."
"""The message for any path that is not an upload, whether such a file exists or not."""

PREFIX = "vit_demo-"
LOCK = ".lock"

_locks: list[IO[str]] = []
_HASH = re.compile(r"[0-9a-f]{64}")
_lock = threading.Lock()
_folder: Path | None = None


def folder() -> Path:
    """The upload folder, into which Gradio writes; created by the first call, or ``InputError`` if it cannot be."""
    global _folder
    with _lock:
        if _folder is None:
            base = os.environ.get("GRADIO_TEMP_DIR")
            try:
                if base:
                    Path(base).mkdir(parents=True, exist_ok=True)
                _folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=base)))
            except OSError as error:
                where = base or "the temporary folder of this machine"
                raise InputError(
                    f"Uploads cannot be stored in {where} ({error.strerror}): set GRADIO_TEMP_DIR to a folder that can "
                    "be written."
                ) from error
            if fcntl is not None:  # locked for as long as this process lives, however it ends
                _locks.append((_folder / LOCK).open("w"))
                fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            _sweep(_folder.parent)
            os.environ["GRADIO_TEMP_DIR"] = str(_folder)
            processing_utils.hash_seed = secrets.token_bytes(32)
            atexit.register(remove)
    return _folder


def _sweep(base: Path) -> None:
    """Deletes the folders of processes that were killed: those whose lock can be taken."""
    if fcntl is None:
        return
    for lock in base.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("w") as file:  # of another user, or of a process that lives
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def clear() -> None:
    """Deletes everything in the folder, when a server stops."""
    if _folder is not None:
        for path in _folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink(missing_ok=True)


def remove() -> None:
    """Deletes the folder and everything in it."""
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def is_upload_path(path: Any) -> bool:
    """Whether a path has the form of an upload's; the file system is not accessed."""
    if not isinstance(path, str) or "\0" in path or len(path) > 1000:
        return False
    try:
        parts = Path(os.path.normpath(path)).relative_to(folder()).parts
    except ValueError:
        return False
    return len(parts) == 2 and _HASH.fullmatch(parts[0]) is not None and not parts[1].startswith(".")


def find(payload: Any) -> Path:
    """The path of an upload, from Gradio's file data ``{"path": ...}``, as a page or a client sends it.

    ``ImageError`` if it is not an upload; the message is always the same.
    """
    path = payload.get("path") if isinstance(payload, dict) else payload
    if not isinstance(path, str) or not is_upload_path(path):
        raise ImageError(NOT_AN_UPLOAD)
    found = Path(os.path.normpath(path))
    if found.is_symlink() or not found.is_file():
        raise ImageError(NOT_AN_UPLOAD)
    return found


def read(path: Path) -> bytes:
    """The bytes of an upload, whose lifetime starts again; ``ImageError`` if it was deleted in the meantime."""
    try:
        os.utime(path)
        with path.open("rb") as file:
            return file.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise ImageError(NOT_AN_UPLOAD) from error


class UploadCleaner:
    """Deletes old uploads, and the oldest ones if the folder is too large; files of before it was made are kept."""

    def __init__(self) -> None:
        self._kept = set(self._files())

    def clean(self, now: float) -> None:
        """Cleans once, at a time in seconds since the epoch."""
        found = []
        for path in self._files():
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        found.sort(reverse=True, key=lambda entry: entry[0])
        most = min(UPLOAD_FOLDER_BYTES, shutil.disk_usage(folder()).total // 2)  # which in a container may be memory
        total = 0
        for count, (changed, size, path) in enumerate(found, start=1):
            total += size
            is_old = now - changed > UPLOAD_LIFETIME_SECONDS
            if path in self._kept or not (is_old or total > most or count > UPLOAD_FOLDER_FILES):
                continue
            path.unlink(missing_ok=True)
            if path.parent != folder():  # as the file of an upload that broke off
                with suppress(OSError):  # it holds other files
                    path.parent.rmdir()

    def _files(self) -> list[Path]:
        return [path for path in folder().rglob("*") if path.is_file()]
